use super::{Quota, RateLimiter};
use crate::clock::Clock;
use crate::{ConfigError, Name};

/// Makes a [`RateLimiter`]. From [`RateLimiter::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RateLimiterBuilder {
    pub(super) quotas: Vec<Quota>,
    pub(super) name: Option<Name>,
    pub(super) clock: Clock,
    pub(super) shadow: bool,
    pub(super) max_waiters: usize,
}

/// How many calls may wait where nothing else is said: at 1,000 a second, a second's worth.
const MAX_WAITERS: usize = 1_024;

impl RateLimiterBuilder {
    pub(super) fn new(quota: Quota) -> Self {
        Self {
            quotas: vec![quota],
            name: None,
            clock: Clock::default(),
            shadow: false,
            max_waiters: MAX_WAITERS,
        }
    }

    /// Adds a quota. All of them are one decision: a call is admitted when every quota admits it,
    /// and is then charged to each; otherwise to none.
    pub fn quota(mut self, quota: Quota) -> Self {
        self.quotas.push(quota);
        self
    }

    /// Names the limiter in refusals and events (default: no name).
    pub fn name(mut self, name: impl Into<Name>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Reads the time from `clock` (default: [`Clock::tokio`]).
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }

    /// Refuses nothing: what would have been refused is admitted without being charged, marked
    /// ([`Allowed::held_back`](super::Allowed::held_back)) and counted
    /// ([`Snapshot::held_back`](super::Snapshot::held_back)).
    ///
    /// For trying out a quota on live traffic. It counts as the enforced limiter would: a call
    /// that would have been refused spends nothing.
    pub fn shadow(mut self) -> Self {
        self.shadow = true;
        self
    }

    /// Sets how many calls may wait at a time (default 1,024; at least 1).
    ///
    /// Each is a parked task holding its request, so this is a bound on memory; too small a
    /// number refuses calls that would soon have been served.
    pub fn max_waiters(mut self, max_waiters: usize) -> Self {
        self.max_waiters = max_waiters;
        self
    }

    /// Makes the limiter.
    ///
    /// # Errors
    ///
    /// Where `max_waiters` is 0.
    pub fn build(self) -> Result<RateLimiter, ConfigError> {
        if self.max_waiters == 0 {
            return Err(ConfigError::new(
                "max_waiters",
                self.max_waiters,
                "1 or more",
            ));
        }
        Ok(RateLimiter::from_builder(self))
    }
}
