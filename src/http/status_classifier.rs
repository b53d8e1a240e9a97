use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, Response, StatusCode};

use super::classify_end::{ClassifyEnd, unbroken};
use super::error_chain::{ErrorChain, is_refusal};
use super::{Refused, upstream_wait};
use crate::ConfigError;
use crate::circuit_breaker::{Classify, Head, Outcome};

/// Judges calls by the status of the HTTP response.
///
/// | what came | outcome |
/// |---|---|
/// | an error: no connection, a broken one, a timeout | failure |
/// | 5xx | failure |
/// | 429 | ignored: the host is well, and asks for fewer calls |
/// | any other status | success: the host answered, if only that the caller is wrong |
/// | a refusal of this crate, as response or as error, from deeper in the stack | ignored |
/// | a body that breaks off, with `.until_body_end()` | failure |
///
/// 503 is a failure with or without `Retry-After`; the wait it asks for is a floor for the open
/// time if [`retry_after_floor`](Self::retry_after_floor) says so. [`outcome`](Self::outcome)
/// changes any range of statuses.
///
/// It takes responses with any body and all errors that are `std::error::Error` or `BoxError`
/// (`Via` is inferred). Clones are cheap, and independent.
///
/// ```
/// use http::Response;
/// use tower_sluice::circuit_breaker::{Classify, Head, Outcome};
/// use tower_sluice::http::StatusClassifier;
///
/// let classifier = StatusClassifier::new().outcome(501..=501, Outcome::Success);
/// let head = |status: u16| {
///     let response = Response::builder().status(status).body(()).unwrap();
///     classifier.head(Ok::<_, &std::io::Error>(&response))
/// };
/// assert_eq!(head(503), Head::Done(Outcome::Failure));
/// assert_eq!(head(429), Head::Done(Outcome::Ignored));
/// assert_eq!(head(501), Head::Carry(()), "a success, unless the body breaks off");
/// ```
pub struct StatusClassifier<Via> {
    /// Later ones win. Most users have none, and then a clone counts no reference.
    rules: Option<Arc<[Rule]>>,
    retry_after_floor: bool,
    ignored: Option<Arc<[IsIgnored]>>,
    via: PhantomData<fn() -> Via>,
}

type Rule = (RangeInclusive<u16>, Outcome);

type IsIgnored = fn(&(dyn Error + 'static)) -> bool;

impl<Via> StatusClassifier<Via> {
    /// Counts errors and 5xx as failures, as the table says.
    pub const fn new() -> Self {
        Self {
            rules: None,
            retry_after_floor: false,
            ignored: None,
            via: PhantomData,
        }
    }

    /// Counts statuses in `range` as `outcome`. Of ranges that overlap, the later wins.
    ///
    /// # Panics
    ///
    /// If the range is empty or leaves 100 to 999; [`try_outcome`](Self::try_outcome) returns that
    /// as an error.
    #[must_use]
    #[track_caller]
    pub fn outcome(self, range: RangeInclusive<u16>, outcome: Outcome) -> Self {
        match self.try_outcome(range, outcome) {
            Ok(classifier) => classifier,
            Err(error) => panic!("{error}"),
        }
    }

    /// Counts statuses in `range` as `outcome`, as [`outcome`](Self::outcome).
    ///
    /// # Errors
    ///
    /// If the range is empty or leaves 100 to 999.
    pub fn try_outcome(
        mut self,
        range: RangeInclusive<u16>,
        outcome: Outcome,
    ) -> Result<Self, ConfigError> {
        if range.is_empty() || *range.start() < 100 || *range.end() > 999 {
            let allowed = "a range within 100 to 999 that is not empty";
            return Err(ConfigError::new("outcome", range, allowed));
        }
        let before = self.rules.as_deref().unwrap_or_default().iter().cloned();
        self.rules = Some(before.chain([(range, outcome)]).collect());
        Ok(self)
    }

    /// Makes an upstream `Retry-After` (seconds or a date) of a failed response the least time
    /// to stay open, where that failure opens the circuit. Default: not heeded.
    ///
    /// The policy caps what strangers may ask for.
    #[must_use]
    pub fn retry_after_floor(mut self) -> Self {
        self.retry_after_floor = true;
        self
    }

    /// Ignores errors for which `is_ignored` holds, such as those that the caller caused.
    /// Default: only refusals of this crate are ignored.
    ///
    /// It is given the outermost error and may walk its sources; a panic reaches the caller, and
    /// the call is recorded as a failure. Several add up.
    ///
    /// ```
    /// use tower_sluice::http::StatusClassifier;
    ///
    /// let classifier = StatusClassifier::<_>::new()
    ///     .ignore_errors(|error| error.is::<std::num::ParseIntError>());
    /// # fn inferred(_: StatusClassifier<tower_sluice::http::error_chain::Typed>) {}
    /// # inferred(classifier);
    /// ```
    #[must_use]
    pub fn ignore_errors(mut self, is_ignored: fn(&(dyn Error + 'static)) -> bool) -> Self {
        let before = self.ignored.as_deref().unwrap_or_default().iter().copied();
        self.ignored = Some(before.chain([is_ignored]).collect());
        self
    }

    fn of_status(&self, status: StatusCode) -> Outcome {
        let rules = self.rules.as_deref().unwrap_or_default();
        let status = status.as_u16();
        match rules.iter().rfind(|(range, _)| range.contains(&status)) {
            Some(&(_, outcome)) => outcome,
            None => match status {
                429 => Outcome::Ignored,
                500..=599 => Outcome::Failure,
                _ => Outcome::Success,
            },
        }
    }

    fn of_error(&self, error: &(dyn Error + 'static)) -> Outcome {
        let ignored = self.ignored.as_deref().unwrap_or_default();
        if is_refusal(error) || ignored.iter().any(|is_ignored| is_ignored(error)) {
            Outcome::Ignored
        } else {
            Outcome::Failure
        }
    }
}

impl<B, E, Via> Classify<Response<B>, E> for StatusClassifier<Via>
where
    E: ErrorChain<Via>,
{
    type State = ();

    fn head(&self, result: Result<&Response<B>, &E>) -> Head<()> {
        match result {
            Err(error) => Head::Done(self.of_error(error.head())),
            Ok(response) if Refused::marks(response) => Head::Done(Outcome::Ignored),
            Ok(response) => match self.of_status(response.status()) {
                Outcome::Success => Head::Carry(()),
                settled => Head::Done(settled),
            },
        }
    }

    fn retry_floor(&self, result: Result<&Response<B>, &E>) -> Option<Duration> {
        let response = result.ok().filter(|_| self.retry_after_floor)?;
        upstream_wait::retry_after(response.headers())
    }
}

impl<BodyError, Via> ClassifyEnd<(), BodyError> for StatusClassifier<Via> {
    fn end(&self, (): (), _: Option<&HeaderMap>, error: Option<&BodyError>) -> Outcome {
        unbroken(error)
    }
}

impl<Via> Default for StatusClassifier<Via> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Via> Clone for StatusClassifier<Via> {
    fn clone(&self) -> Self {
        Self {
            rules: self.rules.clone(),
            ignored: self.ignored.clone(),
            ..*self
        }
    }
}

impl<Via> fmt::Debug for StatusClassifier<Via> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusClassifier")
            .field("rules", &self.rules.as_deref().unwrap_or_default())
            .field("retry_after_floor", &self.retry_after_floor)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
