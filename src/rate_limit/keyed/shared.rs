use std::time::Duration;

use super::builder::check_algorithm;
use super::store::{Refused, Store, Undo};
use super::stored::StoredKey;
use super::wait::Waiters;
use crate::clock::{Clock, Nanos};
use crate::rate_limit::algorithm::Shortfall;
use crate::rate_limit::{Algorithm, Allowed, Quota, RateLimited, RateLimitedReason};
use crate::sync::Mutex;
use crate::{ConfigError, Name};

/// What all handles and waiting calls of one keyed limiter share.
pub(super) struct Shared<K> {
    pub(super) store: Store<K>,
    pub(super) waiters: Waiters<K>,
    pub(super) clock: Clock,
    pub(super) name: Option<Name>,
    /// The quota of keys that have none of their own; locked while it is being replaced.
    pub(super) quota: Mutex<Quota>,
    pub(super) algorithm: Algorithm,
    pub(super) period: Duration,
    pub(super) max_keys: usize,
}

impl<K: StoredKey> Shared<K> {
    /// Decides in every case.
    #[inline(never)]
    pub(super) fn decide(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> Result<Allowed, RateLimited> {
        if let Some(own) = own
            && !self.takes(own)
        {
            return Err(self.mismatch(key, now));
        }
        match self.store.decide(key, own, now, cost) {
            Ok(balance) => Ok(Allowed::new(balance)),
            Err(refused) => Err(self.refusal(refused)),
        }
    }

    /// As `decide`, with what undoes an admission.
    pub(super) fn decide_undoably(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> Result<(Allowed, Option<Undo<K>>), RateLimited> {
        if own.is_some_and(|own| !self.takes(own)) {
            return Err(self.mismatch(key, now));
        }
        match self.store.decide_undoably(key, own, now, cost) {
            Ok((balance, undo)) => Ok((Allowed::new(balance), undo)),
            Err(refused) => Err(self.refusal(refused)),
        }
    }

    #[cold]
    fn mismatch(&self, key: K, now: Nanos) -> RateLimited {
        let balance = self.store.balance(key, None, now);
        RateLimited::for_good(self.name.clone(), RateLimitedReason::QuotaMismatch, balance)
    }

    fn takes(&self, own: &Quota) -> bool {
        own.algorithm() == self.algorithm
            && (self.algorithm != Algorithm::SlidingWindow || own.period() == self.period)
    }

    pub(super) fn refusal(&self, refused: Refused) -> RateLimited {
        let name = self.name.clone();
        match refused {
            Refused::Spent(shortfall) => RateLimited::spent(name, shortfall),
            Refused::AboveBurst(balance) => {
                RateLimited::for_good(name, RateLimitedReason::CostAboveBurst, balance)
            }
            Refused::NoRoom(balance) => {
                RateLimited::for_good(name, RateLimitedReason::StoreFull, balance)
            }
        }
    }

    /// Refuses what no wait can help, while others wait for the same key.
    pub(super) fn may_ever_fit(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> Result<(), RateLimited> {
        let name = self.name.clone();
        if own.is_some_and(|own| !self.takes(own)) {
            return Err(self.mismatch(key, now));
        }
        let balance = self.store.balance(key, own, now);
        if cost > balance.quota.burst_size() {
            let reason = RateLimitedReason::CostAboveBurst;
            return Err(RateLimited::for_good(name, reason, balance));
        }
        Ok(())
    }

    /// Refuses a call whose turn would come too late, or for which there is no place to wait.
    pub(super) fn too_late(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        turn: Nanos,
        reason: RateLimitedReason,
    ) -> RateLimited {
        // In nanoseconds, which the distance of the turn is in.
        let balance = self.store.balance(key, own, now).to_nanos();
        let lacking = Nanos::saturating(turn.since(now)).as_u64();
        RateLimited::spent(self.name.clone(), Shortfall { balance, lacking }).with_reason(reason)
    }

    pub(super) fn set_quota(&self, quota: Quota) -> Result<(), ConfigError> {
        check_algorithm(&quota)?;
        if quota.algorithm() != self.algorithm {
            return Err(ConfigError::new(
                "algorithm",
                quota.algorithm(),
                "what the limiter was made with",
            ));
        }
        if !self.takes(&quota) {
            return Err(ConfigError::new(
                "period",
                quota.period(),
                "what the limiter was made with, for a sliding window",
            ));
        }
        {
            let mut current = self.quota.lock();
            self.store.set_quota(quota, self.clock.now());
            *current = quota;
        }
        self.waiters.wake_first();
        Ok(())
    }
}
