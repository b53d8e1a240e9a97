use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use ::http::{HeaderMap, Response, StatusCode};

use super::{Code, Dialect, error_code, status};
use crate::circuit_breaker::{Classify, Head, Outcome};
use crate::http::error_chain::{ErrorChain, is_refusal};
use crate::http::{ClassifyEnd, Refused};

/// Judges calls by their gRPC status, in the headers or in the trailers.
///
/// | codes | outcome by default |
/// |---|---|
/// | `UNKNOWN`, `DEADLINE_EXCEEDED`, `INTERNAL`, `UNAVAILABLE`, `DATA_LOSS` | failure |
/// | `CANCELLED`, `RESOURCE_EXHAUSTED` | ignored: the caller went away; the host is well and asks for fewer calls |
/// | all others | success: the host answered, if only that the caller is wrong |
///
/// [`outcome`](Self::outcome) changes any of the 17.
///
/// The status of most calls comes in the trailers, so this classifier is for
/// `.until_body_end()`; without it only a status in the headers (a call that failed before its
/// first message) is seen. On a server that speaks gRPC-Web it belongs inside of the layer that
/// translates (tonic-web's), where the status still stands in the trailers.
///
/// | where no single status stands | counts as |
/// |---|---|
/// | HTTP status 429 without `grpc-status` | `RESOURCE_EXHAUSTED` |
/// | any other but 200 without `grpc-status` | the code of [the mapping](https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md) |
/// | an error in the headers | that, whatever the trailers say |
/// | `OK` in the headers, nothing in the trailers | `OK` |
/// | nothing in either, and the response is gRPC-Web | `OK`: its status stands within the body, which is not read |
/// | nothing in either | `UNKNOWN` |
/// | a number that is no code, or two that differ | `UNKNOWN` |
/// | an error in place of a response, or a body that breaks off | failure; with feature `tonic`, the code of the `tonic::Status` it is or has as source |
/// | a refusal of this crate, as response or as error, from deeper in the stack | ignored |
///
/// It takes responses with any body and all errors that are `std::error::Error` or `BoxError`
/// (`Via` is inferred).
///
/// ```
/// use tower_sluice::circuit_breaker::Outcome;
/// use tower_sluice::grpc::{Code, CodeClassifier};
///
/// # use tower_sluice::http::error_chain::Typed;
/// let classifier = CodeClassifier::new()
///     .outcome(Code::ResourceExhausted, Outcome::Failure)
///     .outcome(Code::Aborted, Outcome::Ignored);
/// # let _: CodeClassifier<Typed> = classifier;
/// ```
pub struct CodeClassifier<Via> {
    outcomes: [Outcome; 17],
    pushback_floor: bool,
    via: PhantomData<fn() -> Via>,
}

impl<Via> CodeClassifier<Via> {
    /// Judges by the default table.
    pub fn new() -> Self {
        Self {
            outcomes: Code::ALL.map(by_default),
            pushback_floor: false,
            via: PhantomData,
        }
    }

    /// Counts `code` as `outcome`.
    #[must_use]
    pub fn outcome(mut self, code: Code, outcome: Outcome) -> Self {
        self.outcomes[code as usize] = outcome;
        self
    }

    /// Makes the `grpc-retry-pushback-ms` of a failed call the least time to stay open, where that
    /// failure opens the circuit. Default: not heeded.
    ///
    /// The policy caps what strangers may ask for.
    #[must_use]
    pub fn retry_pushback_floor(mut self) -> Self {
        self.pushback_floor = true;
        self
    }

    fn of(&self, code: Code) -> Outcome {
        self.outcomes[code as usize]
    }

    fn floor(&self, headers: &HeaderMap) -> Option<Duration> {
        self.pushback_floor
            .then(|| status::retry_pushback(headers))
            .flatten()
    }
}

fn by_default(code: Code) -> Outcome {
    match code {
        Code::Unknown
        | Code::DeadlineExceeded
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => Outcome::Failure,
        Code::Cancelled | Code::ResourceExhausted => Outcome::Ignored,
        _ => Outcome::Success,
    }
}

impl<B, E, Via> Classify<Response<B>, E> for CodeClassifier<Via>
where
    E: ErrorChain<Via>,
{
    /// The code that holds if the trailers have none.
    type State = Code;

    fn head(&self, result: Result<&Response<B>, &E>) -> Head<Code> {
        let response = match result {
            Ok(response) => response,
            Err(error) if is_refusal(error.head()) => return Head::Done(Outcome::Ignored),
            Err(error) => return Head::Done(self.of_error(error_code::in_chain(error.head()))),
        };
        if Refused::marks(response) {
            return Head::Done(Outcome::Ignored);
        }
        match status::code(response.headers()) {
            Some(Code::Ok) => Head::Carry(Code::Ok),
            Some(code) => Head::Done(self.of(code)),
            None => match response.status() {
                StatusCode::OK => Head::Carry(without_status(response.headers())),
                // Deliberately not `UNAVAILABLE`, as a client is to take it: the host is well.
                StatusCode::TOO_MANY_REQUESTS => Head::Done(self.of(Code::ResourceExhausted)),
                other => Head::Done(self.of(status::code_of_http(other))),
            },
        }
    }

    fn retry_floor(&self, result: Result<&Response<B>, &E>) -> Option<Duration> {
        self.floor(result.ok()?.headers())
    }
}

/// The code of a call whose headers and trailers have none.
fn without_status(headers: &HeaderMap) -> Code {
    match Dialect::of(headers) {
        Some(Dialect::Web | Dialect::WebText) => Code::Ok,
        Some(Dialect::Http2) | None => Code::Unknown,
    }
}

impl<Via> CodeClassifier<Via> {
    fn of_error(&self, code: Option<Code>) -> Outcome {
        code.map_or(Outcome::Failure, |code| self.of(code))
    }
}

impl<BodyError: 'static, Via> ClassifyEnd<Code, BodyError> for CodeClassifier<Via> {
    fn end(
        &self,
        otherwise: Code,
        trailers: Option<&HeaderMap>,
        error: Option<&BodyError>,
    ) -> Outcome {
        match error {
            Some(error) => self.of_error(error_code::of(error)),
            None => self.of(trailers.and_then(status::code).unwrap_or(otherwise)),
        }
    }

    fn needs_trailers(&self, _otherwise: &Code) -> bool {
        true
    }

    fn end_retry_floor(&self, trailers: &HeaderMap) -> Option<Duration> {
        self.floor(trailers)
    }
}

impl<Via> Default for CodeClassifier<Via> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Via> Clone for CodeClassifier<Via> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Via> Copy for CodeClassifier<Via> {}

impl<Via> fmt::Debug for CodeClassifier<Via> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(Code::ALL.map(|code| (code, self.of(code))))
            .finish()
    }
}

#[cfg(test)]
mod tests;
