//! What a rate limit layer tells its listeners.

use std::time::Duration;

use super::{Allowed, RateLimited};

/// One thing that happened to one call, told to the listeners of
/// [`RateLimitLayer::on_event`](super::RateLimitLayer::on_event) after the fact.
///
/// Each call that is decided for gives one [`Admitted`](Self::Admitted),
/// [`Refused`](Self::Refused) or [`Abandoned`](Self::Abandoned); one that went on to the inner
/// service gives one [`Completed`](Self::Completed) after it. Calls that are skipped, or that a
/// key function exempts, give none.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RateLimitEvent<'a> {
    /// The call goes on to the inner service.
    #[non_exhaustive]
    Admitted {
        /// The layer's name, if it was given one.
        name: Option<&'a str>,
        /// The decision.
        allowed: &'a Allowed,
        /// How long the call waited for its turn; zero without `.wait(…)`.
        waited: Duration,
    },
    /// The call was refused; in shadow mode, would have been.
    #[non_exhaustive]
    Refused {
        /// The refusal, which carries the name.
        refusal: &'a RateLimited,
        /// Whether it went on to the inner service all the same.
        shadow: bool,
        /// How long it had waited; zero without `.wait(…)`.
        waited: Duration,
    },
    /// The call was dropped while it waited for its turn. It spent nothing.
    #[non_exhaustive]
    Abandoned {
        /// The layer's name, if it was given one.
        name: Option<&'a str>,
        /// How long it had waited.
        waited: Duration,
    },
    /// A call that went on to the inner service has ended.
    #[non_exhaustive]
    Completed {
        /// The layer's name, if it was given one.
        name: Option<&'a str>,
        /// The time from the decision to the end or drop of the response future, without the
        /// time waited for a turn.
        elapsed: Duration,
        /// How long the call waited for its turn before that.
        waited: Duration,
        /// How it ended.
        ending: Ending,
    },
}

/// How a call that was admitted has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ending {
    /// With a response.
    Response,
    /// With an error of the inner service, in its readiness or in the call.
    Error,
    /// Before it had either: the caller went away, a timeout outside fired, or the inner service
    /// panicked.
    Dropped,
}
