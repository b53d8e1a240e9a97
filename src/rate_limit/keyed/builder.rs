use std::fmt;
use std::marker::PhantomData;

use super::lanes::words_of;
use super::rules::MOST_WORDS;
use super::{Key, KeyedRateLimiter};
use crate::clock::Clock;
use crate::rate_limit::{Algorithm, Quota};
use crate::{ConfigError, Name, WhenFull};

const MAX_KEYS: usize = 100_000;
/// What a gigabyte or two can hold; the number of shards is derived from it.
const MOST_KEYS: usize = 1 << 30;
const MAX_WAITERS: usize = 1_024;

const KEYS: &str = "from 1 to 1,073,741,824";
const QUOTAS: &str =
    "as many quotas as fit into eight words a key, one for each GCRA quota and two for each window";
const NO_LOG: &str =
    "anything but a sliding log, whose memory grows with each key's limit: use a sliding window";

/// Builds a [`KeyedRateLimiter`] with other settings than the usual; from
/// [`KeyedRateLimiter::builder`].
pub struct KeyedRateLimiterBuilder<K: ?Sized> {
    pub(super) quotas: Vec<Quota>,
    pub(super) shadow: bool,
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
            quotas: vec![quota],
            shadow: false,
            max_keys: MAX_KEYS,
            when_full: WhenFull::default(),
            max_waiters: MAX_WAITERS,
            name: None,
            clock: None,
            key: PhantomData,
        }
    }

    /// Adds a quota for each key. All of them are one decision: a call is admitted when every quota
    /// of its key admits it, and is then charged to each; otherwise to none.
    ///
    /// As many as fit into eight words of state a key: one for each GCRA quota, two for each
    /// window. Room is taken for 1, 2, 3, 4 or 8 (see [`KeyedRateLimiter`] for the bytes).
    ///
    /// ```
    /// use tower_sluice::clock::Clock;
    /// use tower_sluice::rate_limit::{KeyedRateLimiter, Quota};
    ///
    /// let time = Clock::manual();
    /// let clients = KeyedRateLimiter::<u64>::builder(Quota::per_second(10))
    ///     .quota(Quota::per_hour(1_000).burst(15))
    ///     .clock(&time)
    ///     .build()?;
    /// clients.check_n(&7, 10)?;
    /// assert_eq!(clients.check(&7).unwrap_err().quota().limit(), 10, "a second's are gone");
    /// time.advance(std::time::Duration::from_secs(1));
    /// clients.check_n(&7, 5)?;
    /// let refusal = clients.check(&7).unwrap_err();
    /// assert_eq!(refusal.quota().limit(), 1_000, "an hour's burst is gone, and is the longer wait");
    /// assert_eq!(refusal.standings()[0].remaining(), 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn quota(mut self, quota: Quota) -> Self {
        self.quotas.push(quota);
        self
    }

    /// Refuses nothing: what would have been refused is admitted without being charged, marked
    /// ([`Allowed::held_back`](crate::rate_limit::Allowed::held_back)) and counted
    /// ([`KeyedStats::held_back`](super::KeyedStats::held_back)). Nor does anything wait.
    ///
    /// For trying out quotas on live traffic. It counts as the enforced limiter would: a call that
    /// would have been refused spends nothing.
    ///
    /// ```
    /// use tower_sluice::rate_limit::{KeyedRateLimiter, Quota};
    ///
    /// let clients = KeyedRateLimiter::<u64>::builder(Quota::per_hour(1)).shadow().build()?;
    /// assert!(clients.check(&7)?.held_back().is_none());
    /// let refusal = clients.check(&7)?.held_back().cloned().expect("it would have been refused");
    /// assert_eq!(refusal.quota(), &Quota::per_hour(1));
    /// assert_eq!(clients.stats().held_back, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shadow(mut self) -> Self {
        self.shadow = true;
        self
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

    /// Sets how many calls may wait at once, over all keys (default: 1,024; at least 1).
    ///
    /// Each is a parked task holding its request, so this is a bound on memory; too small a number
    /// refuses calls that would soon have been served.
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
    /// Where `max_keys` is 0 or above 2³⁰, `max_waiters` is 0, a quota is a sliding log, which would
    /// take memory by the call and not by the key, or there are more quotas than fit.
    pub fn build(self) -> Result<KeyedRateLimiter<K>, ConfigError> {
        if self.max_keys == 0 || self.max_keys > MOST_KEYS {
            return Err(ConfigError::new("max_keys", self.max_keys, KEYS));
        }
        if self.max_waiters == 0 {
            return Err(ConfigError::new(
                "max_waiters",
                self.max_waiters,
                "1 or more",
            ));
        }
        check_quotas(&self.quotas)?;
        Ok(KeyedRateLimiter::from_builder(self))
    }
}

pub(super) fn check_quotas(quotas: &[Quota]) -> Result<(), ConfigError> {
    let log = quotas
        .iter()
        .find(|quota| quota.algorithm() == Algorithm::SlidingLog);
    if let Some(log) = log {
        return Err(ConfigError::new("algorithm", log.algorithm(), NO_LOG));
    }
    if quotas.iter().map(words_of).sum::<usize>() > MOST_WORDS {
        return Err(ConfigError::new("quota", quotas, QUOTAS));
    }
    Ok(())
}

impl<K: ?Sized> fmt::Debug for KeyedRateLimiterBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedRateLimiterBuilder")
            .field("quotas", &self.quotas)
            .field("shadow", &self.shadow)
            .field("max_keys", &self.max_keys)
            .field("when_full", &self.when_full)
            .field("max_waiters", &self.max_waiters)
            .field("name", &self.name)
            .field("clock", &self.clock)
            .finish()
    }
}
