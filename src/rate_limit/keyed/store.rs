use super::KeyedStats;
use super::hasher::KeyHasher;
use super::keys::{Asked, Decision, Granted, Keys};
use super::lanes::{Lanes, words_of};
use super::one_word::OneWord;
use super::rules::{Charge, PerQuota};
use super::stored::StoredKey;
use crate::WhenFull;
use crate::clock::Nanos;
use crate::rate_limit::algorithm::{Algorithm, Balance};
use crate::rate_limit::{Quota, Standing};

/// The keys of a limiter, with as many words of state each as its quotas need.
pub(super) enum Store<K> {
    One(Keys<K, OneWord, 1>),
    Two(Keys<K, Lanes, 2>),
    Three(Keys<K, Lanes, 3>),
    Four(Keys<K, Lanes, 4>),
    Eight(Keys<K, Lanes, 8>),
}

/// Calls `$body` with the keys, whatever their states are.
macro_rules! with_keys {
    ($store:expr, $keys:ident => $body:expr) => {
        match $store {
            Store::One($keys) => $body,
            Store::Two($keys) => $body,
            Store::Three($keys) => $body,
            Store::Four($keys) => $body,
            Store::Eight($keys) => $body,
        }
    };
}

impl<K: StoredKey> Store<K> {
    /// A store for `quotas`, of which none is a sliding log and which fit into eight words.
    pub(super) fn new(quotas: &[Quota], max_keys: usize, when_full: WhenFull) -> Self {
        if let &[quota] = quotas
            && quota.algorithm() == Algorithm::Gcra
        {
            return Self::One(Keys::new(OneWord::new(quota), max_keys, when_full));
        }
        let lanes = Lanes::new(quotas);
        match quotas.iter().map(words_of).sum() {
            0..=2 => Self::Two(Keys::new(lanes, max_keys, when_full)),
            3 => Self::Three(Keys::new(lanes, max_keys, when_full)),
            4 => Self::Four(Keys::new(lanes, max_keys, when_full)),
            _ => Self::Eight(Keys::new(lanes, max_keys, when_full)),
        }
    }

    pub(super) fn hasher(&self) -> &KeyHasher {
        with_keys!(self, keys => keys.shards.hasher())
    }

    /// The keys where one word is enough.
    #[inline(always)]
    pub(super) fn one_word(&self) -> Option<&Keys<K, OneWord, 1>> {
        match self {
            Self::One(keys) => Some(keys),
            _ => None,
        }
    }

    /// Charges `cost` to `key`, under the store's quotas or its `own`.
    pub(super) fn decide(&self, key: K, own: Option<&Quota>, now: Nanos, cost: u32) -> Decision {
        with_keys!(self, keys => keys.decide(key, own, now, cost))
    }

    /// Charges `cost` at `now` if it fits at `at` too, an instant not later, so that some of it can
    /// be given back; but nothing of what went to the shared state.
    pub(super) fn grant(
        &self,
        key: K,
        own: Option<&Quota>,
        at: Nanos,
        now: Nanos,
        cost: u32,
    ) -> (Decision, Option<Granted>) {
        with_keys!(self, keys => keys.grant(key, own, at, now, cost))
    }

    /// Gives back up to `cost` of a charge under `own` or the quotas of that `generation`, as far
    /// as time has not given it back yet; how much.
    pub(super) fn refund(
        &self,
        key: K,
        own: Option<&Quota>,
        now: impl FnOnce() -> Nanos,
        cost: u32,
        generation: u64,
        charge: &Charge,
    ) -> Option<PerQuota> {
        with_keys!(self, keys => keys.refund(key, own, now, cost, generation, charge))
    }

    /// Charges `cost` whether it fits or not.
    pub(super) fn charge(&self, key: K, now: Nanos, cost: u32) {
        with_keys!(self, keys => keys.charge(key, now, cost));
    }

    /// What `decide` would find for one call now.
    pub(super) fn peek(&self, key: K, now: Nanos) -> Decision {
        with_keys!(self, keys => keys.peek(key, now))
    }

    /// What `key` has left of the quota that is the last to admit `cost`, and of all.
    pub(super) fn slowest(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> (Balance, Vec<Standing>) {
        with_keys!(self, keys => keys.slowest(key, own, now, cost))
    }

    /// Tells `turn` when each call of `queue` would be admitted to `key` after those before it, if
    /// ever.
    pub(super) fn plan<'a>(
        &self,
        key: K,
        now: Nanos,
        queue: impl Iterator<Item = Asked<'a>>,
        turn: impl FnMut(Option<Nanos>),
    ) {
        with_keys!(self, keys => keys.plan(key, now, queue, turn));
    }

    /// Puts all keys under `quotas`, which are of the store's algorithms. Calls must not overlap.
    pub(super) fn set_quotas(&self, quotas: &[Quota], now: Nanos) {
        match self {
            Self::One(keys) => keys.set_rules(OneWord::new(quotas[0]), now),
            Self::Two(keys) => keys.set_rules(Lanes::new(quotas), now),
            Self::Three(keys) => keys.set_rules(Lanes::new(quotas), now),
            Self::Four(keys) => keys.set_rules(Lanes::new(quotas), now),
            Self::Eight(keys) => keys.set_rules(Lanes::new(quotas), now),
        }
    }

    pub(super) fn sweep(&self, now: Nanos) -> usize {
        with_keys!(self, keys => keys.shards.sweep_all(now))
    }

    pub(super) fn forget(&self, key: K) -> bool {
        with_keys!(self, keys => keys.shards.forget(key))
    }

    pub(super) fn len(&self) -> usize {
        with_keys!(self, keys => keys.shards.len())
    }

    pub(super) fn stats(&self) -> KeyedStats {
        with_keys!(self, keys => keys.stats())
    }
}
