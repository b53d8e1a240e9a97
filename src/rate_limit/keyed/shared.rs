use std::time::Duration;

use super::builder::check_quotas;
use super::desks::{Desks, Verdict};
use super::keys::Decision;
use super::rules::Refused;
use super::store::Store;
use super::stored::StoredKey;
use crate::clock::{Clock, Nanos};
use crate::rate_limit::answer::{Apart, allowed};
use crate::rate_limit::{Algorithm, Allowed, Quota, RateLimited, RateLimitedReason, Standing};
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::{ConfigError, Name};

/// What all handles, waiting calls and reservations of one keyed limiter share.
pub(super) struct Shared<K> {
    pub(super) store: Store<K>,
    pub(super) desks: Desks<K>,
    pub(super) clock: Clock,
    pub(super) name: Option<Name>,
    pub(super) shadow: bool,
    pub(super) held_back: AtomicU64,
    /// The quotas of keys that have none of their own; locked while they are being replaced.
    pub(super) quotas: Mutex<Vec<Quota>>,
    /// What every later set of quotas agrees in.
    pub(super) kinds: Box<[(Algorithm, Duration)]>,
    pub(super) max_keys: usize,
}

/// What a quota must agree in with the one whose states it is to read.
pub(super) fn kind(quota: &Quota) -> (Algorithm, Duration) {
    match quota.algorithm() {
        // Its two counts are of periods, and mean nothing in another.
        Algorithm::SlidingWindow => (Algorithm::SlidingWindow, quota.period()),
        algorithm => (algorithm, Duration::ZERO),
    }
}

impl<K: StoredKey> Shared<K> {
    /// As [`decide`](Self::decide).
    #[inline(never)]
    pub(super) fn decide_apart(&self, key: K, own: Option<&Quota>, now: Nanos, cost: u32) -> Apart {
        self.decide(key, own, now, cost).into()
    }

    /// Decides in every case; in shadow mode refusals turn into admissions and count.
    pub(super) fn decide(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> Result<Allowed, RateLimited> {
        self.check_own(key, own, now)
            .and_then(|()| self.outcome(self.store.decide(key, own, now, cost)))
            .or_else(|refusal| self.held_back(refusal))
    }

    /// Puts a decision in the words of the handle.
    pub(super) fn outcome(&self, decision: Decision) -> Result<Allowed, RateLimited> {
        let Decision { outcome, standings } = decision;
        let name = || self.name.clone();
        let refusal = match outcome {
            Ok(balance) => return Ok(allowed(balance, standings, None)),
            Err(Refused::Spent(shortfall)) => RateLimited::spent(name(), shortfall),
            Err(Refused::AboveBurst(balance)) => {
                RateLimited::for_good(name(), RateLimitedReason::CostAboveBurst, balance)
            }
            Err(Refused::NoRoom(balance)) => {
                RateLimited::for_good(name(), RateLimitedReason::StoreFull, balance)
            }
        };
        Err(with_standings(refusal, standings))
    }

    /// Refuses, except in shadow mode.
    #[cold]
    pub(super) fn held_back(&self, refusal: RateLimited) -> Result<Allowed, RateLimited> {
        if !self.shadow {
            return Err(refusal);
        }
        self.held_back.fetch_add(1, Ordering::Relaxed);
        let standings = refusal.standings().to_vec();
        Ok(allowed(standings[0].0, standings, Some(refusal)))
    }

    /// Refuses a quota of a key's own that the limiter cannot count by.
    pub(super) fn check_own(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
    ) -> Result<(), RateLimited> {
        match own {
            Some(own) if *self.kinds != [kind(own)] => {
                Err(self.refuse_for(RateLimitedReason::QuotaMismatch, key, now))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    pub(super) fn refuse_for(&self, reason: RateLimitedReason, key: K, now: Nanos) -> RateLimited {
        let (balance, standings) = self.store.slowest(key, None, now, 1);
        let refusal = RateLimited::for_good(self.name.clone(), reason, balance);
        with_standings(refusal, standings)
    }

    /// Refuses a call whose turn would come too late, or for which there is no place to wait.
    pub(super) fn too_late(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        turn: Nanos,
        (cost, reason): (u32, RateLimitedReason),
    ) -> Verdict {
        let (balance, standings) = self.store.slowest(key, own, now, cost);
        let wait = turn.since(now);
        let refusal = RateLimited::for_now(self.name.clone(), reason, balance, wait);
        Err(with_standings(refusal, standings))
    }

    /// Quotas that read the states of the keys as those do that the limiter was made with.
    fn same_kinds(&self, quotas: &[Quota]) -> Result<(), ConfigError> {
        if quotas.len() != self.kinds.len() {
            return Err(ConfigError::new("quota", quotas, AS_MANY));
        }
        for (quota, (algorithm, period)) in quotas.iter().zip(&*self.kinds) {
            let (new_algorithm, new_period) = kind(quota);
            if new_algorithm != *algorithm {
                return Err(ConfigError::new("algorithm", new_algorithm, SAME_ALGORITHM));
            }
            if new_period != *period {
                return Err(ConfigError::new("period", new_period, SAME_PERIOD));
            }
        }
        Ok(())
    }

    pub(super) fn set_quotas(&self, quotas: &[Quota]) -> Result<(), ConfigError> {
        check_quotas(quotas)?;
        let now = self.clock.now();
        {
            let mut current = self.quotas.lock();
            self.same_kinds(quotas)?;
            if *current != quotas {
                self.store.set_quotas(quotas, now);
                *current = quotas.to_vec();
            }
        }
        self.plan_anew(now);
        Ok(())
    }
}

const AS_MANY: &str = "as many quotas as the limiter was made with";
const SAME_ALGORITHM: &str = "what the limiter was made with";
const SAME_PERIOD: &str = "what the limiter was made with, for a sliding window";

fn with_standings(refusal: RateLimited, standings: Vec<Standing>) -> RateLimited {
    if standings.is_empty() {
        return refusal;
    }
    refusal.with_standings(standings)
}
