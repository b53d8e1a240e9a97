use crossbeam_utils::CachePadded;

use super::KeyedStats;
use super::hasher::KeyHasher;
use super::rules::{KeyRules, OneWord, TwoWords};
use super::shards::Shards;
use super::stored::StoredKey;
use super::table::State;
use crate::WhenFull;
use crate::clock::Nanos;
use crate::rate_limit::Quota;
use crate::rate_limit::algorithm::{Algorithm, Balance, Shortfall};
use crate::sync::{AtomicU64, Mutex, Ordering};

/// The keys of a limiter with as many words each as its algorithm needs.
pub(super) enum Store<K> {
    One(Keys<K, OneWord, 1>),
    Two(Keys<K, TwoWords, 2>),
}

/// The store of keys and what stands in for it when it is full.
pub(super) struct Keys<K, P, const W: usize> {
    shards: Shards<K, P, W>,
    when_full: WhenFull,
    spill: CachePadded<Spill<P, W>>,
}

struct Spill<P, const W: usize> {
    /// The state that all keys without a place share.
    shared: Mutex<(P, State<W>)>,
    overflowed: AtomicU64,
    refused: AtomicU64,
}

/// Why a key was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Spent(Shortfall),
    AboveBurst(Balance),
    NoRoom(Balance),
}

/// What undoes a charge while nothing else has been charged to its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo<K> {
    key: K,
    before: State<2>,
    after: State<2>,
}

/// Calls `$body` with the keys, whatever their states are.
macro_rules! with_keys {
    ($store:expr, $keys:ident => $body:expr) => {
        match $store {
            Store::One($keys) => $body,
            Store::Two($keys) => $body,
        }
    };
}

impl<K: StoredKey> Store<K> {
    /// A store for `quota`, which is not a sliding log.
    pub(super) fn new(quota: Quota, max_keys: usize, when_full: WhenFull) -> Self {
        match quota.algorithm() {
            Algorithm::Gcra => Self::One(Keys::new(OneWord::new(quota), max_keys, when_full)),
            _ => Self::Two(Keys::new(TwoWords::new(quota), max_keys, when_full)),
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
            Self::Two(_) => None,
        }
    }

    /// Charges `cost` to `key`, under the store's quota or its `own`.
    pub(super) fn decide(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Refused> {
        with_keys!(self, keys => keys.decide(key, own, now, cost))
    }

    /// As `decide`, with what undoes an admission; that of the shared state stays.
    pub(super) fn decide_undoably(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> Result<(Balance, Option<Undo<K>>), Refused> {
        with_keys!(self, keys => keys.decide_undoably(key, own, now, cost))
    }

    /// Undoes a charge, unless the key was charged since; whether it did.
    pub(super) fn undo(&self, undo: Undo<K>) -> bool {
        with_keys!(self, keys => keys.shards.undo(undo.key, words(undo.before), words(undo.after)))
    }

    /// What `decide` would find for one call now.
    pub(super) fn peek(&self, key: K, now: Nanos) -> Result<Balance, Refused> {
        with_keys!(self, keys => keys.peek(key, now))
    }

    /// What `key` has left.
    pub(super) fn balance(&self, key: K, own: Option<&Quota>, now: Nanos) -> Balance {
        with_keys!(self, keys => keys.balance(key, own, now))
    }

    /// When `cost` would be admitted to `key` after all of `ahead` have been.
    pub(super) fn plan<'a>(
        &self,
        key: K,
        now: Nanos,
        queue: impl Iterator<Item = (Option<&'a Quota>, u32)>,
    ) -> Nanos {
        with_keys!(self, keys => keys.plan(key, now, queue))
    }

    /// Puts all keys under `quota`, which is of the store's algorithm. Calls must not overlap.
    pub(super) fn set_quota(&self, quota: Quota, now: Nanos) {
        match self {
            Self::One(keys) => keys.set_rules(OneWord::new(quota), now),
            Self::Two(keys) => keys.set_rules(TwoWords::new(quota), now),
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

impl<K: StoredKey> Keys<K, OneWord, 1> {
    #[inline]
    pub(super) fn hasher(&self) -> &KeyHasher {
        self.shards.hasher()
    }

    /// Decides where a known key makes it plain; `None` where that takes [`Store::decide`].
    #[inline(always)] // part of `KeyedRateLimiter::settle_at`
    pub(super) fn decide_plain(
        &self,
        key: K,
        now: Nanos,
        cost: u32,
    ) -> Option<Result<Balance, Shortfall>> {
        let place = self.shards.place(key);
        let decided = self.shards.update_known(place, key, now, |rules, state| {
            rules.decide_plain(state, now, cost)
        });
        match decided? {
            Ok(balance) => Some(Ok(balance)),
            Err(shortfall) => shortfall.map(Err),
        }
    }
}

impl<K: StoredKey, P: KeyRules<W>, const W: usize> Keys<K, P, W> {
    fn new(rules: P, max_keys: usize, when_full: WhenFull) -> Self {
        Self {
            shards: Shards::new(rules, max_keys),
            when_full,
            spill: CachePadded::new(Spill {
                shared: Mutex::new((rules, [0; W])),
                overflowed: AtomicU64::new(0),
                refused: AtomicU64::new(0),
            }),
        }
    }

    fn decide(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Refused> {
        self.shards.update(
            key,
            now,
            |rules, state, now| charge(rules, own, state, now, cost),
            || self.decide_without_room(own, now, cost),
        )
    }

    fn decide_undoably(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> Result<(Balance, Option<Undo<K>>), Refused> {
        self.shards.update(
            key,
            now,
            |rules, state, now| {
                let before = words(*state);
                let balance = charge(rules, own, state, now, cost)?;
                let after = words(*state);
                Ok((balance, Some(Undo { key, before, after })))
            },
            || Ok((self.decide_without_room(own, now, cost)?, None)),
        )
    }

    #[cold]
    fn decide_without_room(
        &self,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Refused> {
        let mut shared = self.spill.shared.lock();
        let (rules, state) = &mut *shared;
        let no_room = Refused::NoRoom(rules.balance(own, [0; W], now));
        if self.when_full == WhenFull::Refuse {
            self.spill.refused.fetch_add(1, Ordering::Relaxed);
            return Err(no_room);
        }
        self.spill.overflowed.fetch_add(1, Ordering::Relaxed);
        // Under the store's quota: a key's own is for that key. What only fits that one finds no
        // room here, but may when the key has a place.
        charge(rules, None, state, now, cost).map_err(|refused| match (refused, own) {
            (Refused::AboveBurst(_), Some(_)) => no_room,
            (refused, _) => refused,
        })
    }

    fn peek(&self, key: K, now: Nanos) -> Result<Balance, Refused> {
        let (rules, state) = self.shards.read(key);
        let unspent = rules.balance(None, state, now);
        charge(&rules, None, &mut state.clone(), now, 1).map(|_| unspent)
    }

    fn balance(&self, key: K, own: Option<&Quota>, now: Nanos) -> Balance {
        let (rules, state) = self.shards.read(key);
        rules.balance(own, state, now)
    }

    fn plan<'a>(
        &self,
        key: K,
        now: Nanos,
        queue: impl Iterator<Item = (Option<&'a Quota>, u32)>,
    ) -> Nanos {
        let (rules, mut state) = self.shards.read(key);
        queue.fold(now, |from, (own, cost)| {
            rules.plan(own, &mut state, from, cost)
        })
    }

    fn set_rules(&self, rules: P, now: Nanos) {
        {
            let mut shared = self.spill.shared.lock();
            let (old, state) = *shared;
            *shared = (rules, rules.carry(&old, state, now));
        }
        self.shards
            .set_rules(rules, |old, state| rules.carry(old, state, now));
    }

    fn stats(&self) -> KeyedStats {
        KeyedStats {
            keys: self.shards.len(),
            bytes: size_of::<Self>() + self.shards.bytes(),
            evicted: self.shards.evicted(),
            refused_new: self.spill.refused.load(Ordering::Relaxed),
            overflowed: self.spill.overflowed.load(Ordering::Relaxed),
        }
    }
}

/// The words of a state in another number of them.
fn words<const W: usize, const V: usize>(state: State<W>) -> State<V> {
    std::array::from_fn(|at| state.get(at).copied().unwrap_or(0))
}

#[inline(always)]
fn charge<P: KeyRules<W>, const W: usize>(
    rules: &P,
    own: Option<&Quota>,
    state: &mut State<W>,
    now: Nanos,
    cost: u32,
) -> Result<Balance, Refused> {
    // Every burst is 1 or more: the usual cost needs no look at it.
    if cost > 1
        && let Some(balance) = above_burst(rules, own, *state, now, cost)
    {
        return Err(Refused::AboveBurst(balance));
    }
    match rules.decide(own, state, now, cost) {
        Ok(balance) => Ok(balance),
        Err(shortfall) => Err(Refused::Spent(shortfall)),
    }
}

#[cold]
fn above_burst<P: KeyRules<W>, const W: usize>(
    rules: &P,
    own: Option<&Quota>,
    state: State<W>,
    now: Nanos,
    cost: u32,
) -> Option<Balance> {
    let balance = rules.balance(own, state, now);
    (cost > balance.quota.burst_size()).then_some(balance)
}
