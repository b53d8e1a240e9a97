use std::convert::Infallible;
use std::time::Duration;

use ::http::HeaderMap;

use crate::circuit_breaker::{ErrorsAsFailures, Outcome, RefusalsIgnored};

/// Judges a call where its response's body ends: the second step of a
/// [`Classify`](crate::circuit_breaker::Classify) whose first step
/// [carried](crate::circuit_breaker::Head::Carry) a state.
///
/// Every classifier that always tells at the head has it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot judge the end of a body that fails with `{BodyError}`",
    note = "`.until_body_end()` takes closures, `ErrorsAsFailures`, `http::StatusClassifier`, `grpc::CodeClassifier`, or a type that implements `http::ClassifyEnd`"
)]
pub trait ClassifyEnd<State, BodyError> {
    /// Judges the end: the trailers if there were any, or the error that broke the body off.
    fn end(&self, state: State, trailers: Option<&HeaderMap>, error: Option<&BodyError>)
    -> Outcome;

    /// Whether the verdict waits for trailers, so that a body which has yielded all of its
    /// declared length has not ended yet. Default: no.
    fn needs_trailers(&self, _state: &State) -> bool {
        false
    }

    /// The least time to stay open that the trailers of a failed call ask for. Default: none.
    fn end_retry_floor(&self, _trailers: &HeaderMap) -> Option<Duration> {
        None
    }
}

// Not recommended, so that what is missing is told in the trait's own words.
#[diagnostic::do_not_recommend]
impl<C, BodyError> ClassifyEnd<Infallible, BodyError> for C {
    fn end(
        &self,
        state: Infallible,
        _trailers: Option<&HeaderMap>,
        _error: Option<&BodyError>,
    ) -> Outcome {
        match state {}
    }
}

impl<BodyError> ClassifyEnd<(), BodyError> for ErrorsAsFailures {
    fn end(&self, (): (), _trailers: Option<&HeaderMap>, error: Option<&BodyError>) -> Outcome {
        unbroken(error)
    }
}

impl<Via, BodyError> ClassifyEnd<(), BodyError> for RefusalsIgnored<Via> {
    fn end(&self, (): (), _trailers: Option<&HeaderMap>, error: Option<&BodyError>) -> Outcome {
        unbroken(error)
    }
}

/// A body that breaks off is a failure.
pub(super) fn unbroken<BodyError>(error: Option<&BodyError>) -> Outcome {
    match error {
        None => Outcome::Success,
        Some(_) => Outcome::Failure,
    }
}
