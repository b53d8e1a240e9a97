use std::fmt;
use std::marker::PhantomData;

use super::{Key, KeyedRateLimiter};
use crate::clock::Clock;
use crate::rate_limit::{Algorithm, Quota};
use crate::{ConfigError, Name, WhenFull};

const MAX_KEYS: usize = 100_000;
/// What a gigabyte or two can hold; the number of shards is derived from it.
const MOST_KEYS: usize = 1 << 30;
const MAX_WAITERS: usize = 1_024;

const KEYS: &str = "from 1 to 1,073,741,824";
const NO_LOG: &str =
    "anything but a sliding log, whose memory grows with each key's limit: use a sliding window";

/// Builds a [`KeyedRateLimiter`] with other settings than the usual; from
/// [`KeyedRateLimiter::builder`].
pub struct KeyedRateLimiterBuilder<K: ?Sized> {
    pub(super) quota: Quota,
    pub(super) max_keys: usize,
    pub(super) when_full: WhenFull,
    pub(super) max_waiters: usize,
    pub(super) name: Option<Name>,
    pub(super) clock: Option<Clock>,
    key: PhantomData<fn(&K)>,
}

impl<K: Key + ?Sized> KeyedRateLimiterBuilder<K> {
    pub(super) fn new(quota: Quota) -> Self {
        Self {
            quota,
            max_keys: MAX_KEYS,
            when_full: WhenFull::default(),
            max_waiters: MAX_WAITERS,
            name: None,
            clock: None,
            key: PhantomData,
        }
    }

    /// Sets how many keys are kept, from 1 to 2³⁰ (default: 100,000). A hard limit.
    ///
    /// Only keys whose state is not fresh are worth a place, so what is needed is the number of
    /// different keys within the time that the quota takes to fill. Too few, and new clients share
    /// one state under load; too many cost only memory (see [`KeyedRateLimiter`]).
    #[must_use]
    pub fn max_keys(mut self, max_keys: usize) -> Self {
        self.max_keys = max_keys;
        self
    }

    /// Sets what happens to a new key when there is no room (default: [`WhenFull::Overflow`]:
    /// all keys without a place share one state, under the limiter's quota). A refused one is
    /// refused for [`StoreFull`](crate::rate_limit::RateLimitedReason::StoreFull).
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Sets how many calls may wait at once, over all keys (default: 1,024). 0 lets none wait.
    #[must_use]
    pub fn max_waiters(mut self, max_waiters: usize) -> Self {
        self.max_waiters = max_waiters;
        self
    }

    /// Sets the name that refusals carry.
    #[must_use]
    pub fn name(mut self, name: impl Into<Name>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets what time is read from (default: [`Clock::tokio`]).
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// Builds the limiter.
    ///
    /// # Errors
    ///
    /// Where `max_keys` is 0 or above 2³⁰, or the quota is a sliding log, which would take memory
    /// by the call and not by the key.
    pub fn build(self) -> Result<KeyedRateLimiter<K>, ConfigError> {
        if self.max_keys == 0 || self.max_keys > MOST_KEYS {
            return Err(ConfigError::new("max_keys", self.max_keys, KEYS));
        }
        check_algorithm(&self.quota)?;
        Ok(KeyedRateLimiter::from_builder(self))
    }
}

pub(super) fn check_algorithm(quota: &Quota) -> Result<(), ConfigError> {
    if quota.algorithm() == Algorithm::SlidingLog {
        return Err(ConfigError::new("algorithm", quota.algorithm(), NO_LOG));
    }
    Ok(())
}

impl<K: ?Sized> fmt::Debug for KeyedRateLimiterBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedRateLimiterBuilder")
            .field("quota", &self.quota)
            .field("max_keys", &self.max_keys)
            .field("when_full", &self.when_full)
            .field("max_waiters", &self.max_waiters)
            .field("name", &self.name)
            .field("clock", &self.clock)
            .finish()
    }
}
