use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::error_chain::{ErrorChain, is_refusal};

/// How one admitted call ended, in the breaker's eyes.
///
/// Slow and cancelled are not among them: the breaker finds those itself, from the time the call
/// took and from a future dropped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The dependency answered as it should.
    Success,
    /// The dependency failed; counts against it.
    Failure,
    /// Says nothing about the dependency, for instance a caller's mistake; counts as no call at
    /// all, and gives a probe's place back.
    Ignored,
}

/// What the head of a response tells: the outcome, or that only the end will tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Head<State> {
    /// The outcome is known.
    Done(Outcome),
    /// The outcome is known at the end of the response's body; the state goes along to it.
    ///
    /// Where calls end at the response head, which is the default, nothing that comes later is
    /// looked at: a carried response counts as a success, a carried error as a failure.
    Carry(State),
}

/// Judges how a call went.
///
/// Every closure `Fn(Result<&Response, &Error>) -> Outcome` is a classifier. Without one a layer
/// uses [`ErrorsAsFailures`]. A classifier may look at the end of a streamed response too: it
/// [carries](Head::Carry) a state from the head, and judges it there (for HTTP and gRPC see the
/// module `http`).
///
/// Called once per admitted call, outside every lock, on the task that drives the call. A panic
/// reaches the caller of the service; the call is then recorded as a failure.
///
/// ```
/// use tower_sluice::circuit_breaker::{Classify, Head, Outcome};
///
/// let by_number = |result: Result<&u16, &std::io::Error>| match result {
///     Ok(500..) | Err(_) => Outcome::Failure,
///     Ok(400..) => Outcome::Ignored,
///     Ok(_) => Outcome::Success,
/// };
/// assert_eq!(by_number.head(Ok(&503)), Head::Done(Outcome::Failure));
/// assert_eq!(by_number.head(Ok(&404)), Head::Done(Outcome::Ignored));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot judge a call with response `{Response}` and error `{Error}`",
    label = "this classifier does not fit the inner service",
    note = "`.classify(c)` takes `Fn(Result<&{Response}, &{Error}>) -> Outcome`; write the argument's type out: `|result: Result<&{Response}, &{Error}>| …`",
    note = "or a type that implements `Classify<{Response}, {Error}>`"
)]
pub trait Classify<Response, Error> {
    /// What goes along from the head to the end; [`Infallible`] where the head always tells.
    type State;

    /// Judges the head of a response, or the error that came in its place.
    fn head(&self, result: Result<&Response, &Error>) -> Head<Self::State>;

    /// The least time to stay open that a failed response asks for, such as an upstream
    /// `Retry-After`; `None` where it asks for none.
    ///
    /// Looked at where the outcome was a failure, and heeded where that failure opens the
    /// circuit, up to the policy's
    /// [`retry_after_cap`](super::CircuitPolicyBuilder::retry_after_cap).
    fn retry_floor(&self, _result: Result<&Response, &Error>) -> Option<Duration> {
        None
    }
}

impl<F, Response, Error> Classify<Response, Error> for F
where
    F: Fn(Result<&Response, &Error>) -> Outcome,
{
    type State = Infallible;

    #[inline]
    fn head(&self, result: Result<&Response, &Error>) -> Head<Infallible> {
        Head::Done(self(result))
    }
}

/// Counts errors as failures and every response as a success: the default.
///
/// *Every* error, whatever its type: it asks nothing of it, so it does not see that one is a
/// refusal by a layer of this crate deeper in the stack, which says nothing of the dependency.
/// Put limiters outside of breakers, or use [`RefusalsIgnored`], as
/// [`ignore_refusals`](super::CircuitBreakerLayer::ignore_refusals) does.
///
/// Where a call ends with the body, a body that breaks off is a failure too.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorsAsFailures;

impl<Response, Error> Classify<Response, Error> for ErrorsAsFailures {
    type State = ();

    #[inline]
    fn head(&self, result: Result<&Response, &Error>) -> Head<()> {
        match result {
            Ok(_) => Head::Carry(()),
            Err(_) => Head::Done(Outcome::Failure),
        }
    }
}

/// Counts errors as failures, but for refusals by a layer of this crate anywhere in their
/// [`source`](std::error::Error::source) chain, which it ignores; and every response as a success.
///
/// It takes every [`std::error::Error`], and `tower::BoxError`; which of the two `Via` says, and
/// the compiler infers it.
pub struct RefusalsIgnored<Via>(PhantomData<fn() -> Via>);

impl<Via> RefusalsIgnored<Via> {
    /// Makes the classifier; it has no settings.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<Response, Error, Via> Classify<Response, Error> for RefusalsIgnored<Via>
where
    Error: ErrorChain<Via>,
{
    type State = ();

    fn head(&self, result: Result<&Response, &Error>) -> Head<()> {
        match result {
            Ok(_) => Head::Carry(()),
            Err(error) if is_refusal(error.head()) => Head::Done(Outcome::Ignored),
            Err(_) => Head::Done(Outcome::Failure),
        }
    }
}

impl<Via> Clone for RefusalsIgnored<Via> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Via> Copy for RefusalsIgnored<Via> {}

impl<Via> Default for RefusalsIgnored<Via> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Via> fmt::Debug for RefusalsIgnored<Via> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RefusalsIgnored")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_fail_and_responses_leave_the_verdict_to_the_end() {
        let head = |result| Classify::<u8, &str>::head(&ErrorsAsFailures, result);
        assert_eq!(head(Err(&"down")), Head::Done(Outcome::Failure));
        assert_eq!(head(Ok(&1)), Head::Carry(()), "the body may still break");
    }

    #[test]
    fn a_closure_judges_at_the_head_and_asks_for_no_floor() {
        let odd_fails = |result: Result<&u8, &()>| match result {
            Ok(n) if n % 2 == 0 => Outcome::Success,
            Ok(_) => Outcome::Failure,
            Err(()) => Outcome::Ignored,
        };
        assert_eq!(odd_fails.head(Ok(&2)), Head::Done(Outcome::Success));
        assert_eq!(odd_fails.head(Ok(&3)), Head::Done(Outcome::Failure));
        assert_eq!(odd_fails.head(Err(&())), Head::Done(Outcome::Ignored));
        assert_eq!(odd_fails.retry_floor(Ok(&3)), None);
    }
}
