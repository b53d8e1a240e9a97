use crossbeam_utils::CachePadded;

use super::hasher::KeyHasher;
use super::stored::StoredKey;
use super::table::{State, Table};
use crate::clock::Nanos;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};

/// Up to so many keys each gets a shard of its own, so that two threads with different keys
/// rarely meet in one cache line: 128 bytes each.
const MOST_LONE_SHARDS: usize = 1_024;
/// Above that, keys per shard: few enough that growing or sweeping one is no pause (4 KiB).
const KEYS_PER_SHARD: usize = 128;
/// A shard so full is full whatever the count of all keys says. Random places never get there; a
/// caller who learned to choose them would crowd one shard, and every probe run ends here.
const CROWDED: usize = 8 * KEYS_PER_SHARD;

/// Calls to a shard, a new key counting for [`NEW_KEY`] of them, that pay for one look at other
/// shards. Each look covers about one shard, so a call costs about half a slot's look.
const CALLS_PER_LOOK: u32 = 256;
const NEW_KEY: u32 = 16;
/// How soon the next look comes after one that found half of what it saw to be fresh.
const CALLS_AFTER_A_FIND: u32 = 8;
/// One look ends after so many slots, or so many shards: empty ones are many in a small store.
const SLOTS_PER_LOOK: usize = KEYS_PER_SHARD;
const SHARDS_PER_LOOK: usize = 8;

/// What decides for the keys of a shard, kept beside them and changed under the same lock.
pub(super) trait Rules<const W: usize>: Copy {
    /// Whether `state` is worth no more than no state at all: a full bucket, an ended window.
    fn is_fresh(&self, state: State<W>, now: Nanos) -> bool;
}

/// The bounded store: which key has which state.
///
/// A key's shard is locked while its state is found (or made) and changed, so that finding and
/// charging are one step and a state can never be charged to the key that had its slot before.
/// Only states that are fresh go. There is no task: calls sweep in passing, a bounded piece each.
pub(super) struct Shards<K, P, const W: usize> {
    shards: Box<[CachePadded<Mutex<Shard<K, P, W>>>]>,
    hasher: KeyHasher,
    max_keys: usize,
    /// Written for new keys and by sweeps only; a known key writes nothing outside its shard.
    shared: CachePadded<Shared>,
}

#[derive(Debug)]
struct Shared {
    keys: AtomicUsize,
    next_look: AtomicUsize,
    evicted: AtomicU64,
}

struct Shard<K, P, const W: usize> {
    table: Table<K, W>,
    rules: P,
    /// The latest reading at which a key was taken out. A call that read the clock before that
    /// and finds no key decides as of then: its key may have been one of them.
    swept_at: Nanos,
    calls: u32,
}

/// No room for a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

impl<K: StoredKey, P: Rules<W>, const W: usize> Shards<K, P, W> {
    pub(super) fn new(rules: P, max_keys: usize) -> Self {
        let count = if max_keys <= MOST_LONE_SHARDS {
            max_keys
        } else {
            (max_keys / KEYS_PER_SHARD).max(MOST_LONE_SHARDS)
        };
        Self::with_shards(rules, max_keys, count.next_power_of_two())
    }

    pub(super) fn with_shards(rules: P, max_keys: usize, count: usize) -> Self {
        let shard = || {
            CachePadded::new(Mutex::new(Shard {
                table: Table::new(),
                rules,
                swept_at: Nanos::ZERO,
                calls: 0,
            }))
        };
        Self {
            shards: std::iter::repeat_with(shard).take(count).collect(),
            hasher: KeyHasher::random(),
            max_keys,
            shared: CachePadded::new(Shared {
                keys: AtomicUsize::new(0),
                next_look: AtomicUsize::new(0),
                evicted: AtomicU64::new(0),
            }),
        }
    }

    pub(super) fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// Decides for `key` and writes its new state, in one step.
    ///
    /// `decide` is given zeros for a key that has no state, and changes no other to zeros. It may
    /// be asked twice.
    ///
    /// # Errors
    ///
    /// The key is new, the state it would get is not zero, and there is no room.
    #[inline]
    pub(super) fn update<R>(
        &self,
        key: K,
        now: Nanos,
        decide: impl Fn(&P, State<W>, Nanos) -> (State<W>, R),
    ) -> Result<R, Full> {
        let place = key.place(&self.hasher);
        let mut shard = self.shard(place).lock();
        if let Some(index) = shard.table.find(place, key) {
            let before = shard.table.state(index);
            let (after, answer) = decide(&shard.rules, before, now);
            if after != before {
                shard.table.set(index, after);
            }
            let due = shard.count_calls(1);
            drop(shard);
            if due {
                self.look_around(place, now);
            }
            return Ok(answer);
        }
        drop(shard);
        self.update_new(place, key, now, decide)
    }

    /// As `update`, for a key that was not there a moment ago.
    #[cold]
    #[inline(never)]
    fn update_new<R>(
        &self,
        place: u64,
        key: K,
        now: Nanos,
        decide: impl Fn(&P, State<W>, Nanos) -> (State<W>, R),
    ) -> Result<R, Full> {
        let (answer, due) = self.try_new(place, key, now, &decide).or_else(|Full| {
            // Someone else's keys may be fresh.
            self.sweep_some(now);
            self.try_new(place, key, now, &decide)
        })?;
        if due {
            self.look_around(place, now);
        }
        Ok(answer)
    }

    fn try_new<R>(
        &self,
        place: u64,
        key: K,
        now: Nanos,
        decide: &impl Fn(&P, State<W>, Nanos) -> (State<W>, R),
    ) -> Result<(R, bool), Full> {
        let mut shard = self.shard(place).lock();
        // Looked for again: another thread may have brought it while the lock was free.
        let known = shard.table.find(place, key);
        let (before, as_of) = match known {
            Some(index) => (shard.table.state(index), now),
            None => ([0; W], now.max(shard.swept_at)),
        };
        let (after, answer) = decide(&shard.rules, before, as_of);
        if after != before {
            match known {
                Some(index) => shard.table.set(index, after),
                None => {
                    self.reserve(&mut shard, now)?;
                    shard.table.insert(key, after, &self.hasher);
                }
            }
        }
        Ok((answer, shard.count_calls(NEW_KEY)))
    }

    /// Makes room for one more key in `shard` and counts it.
    fn reserve(&self, shard: &mut MutexGuard<'_, Shard<K, P, W>>, now: Nanos) -> Result<(), Full> {
        let swept = shard.table.is_crowded();
        if swept {
            // Before it grows: room may be found instead of bought.
            self.sweep(shard, now);
        }
        if self.count_key() {
            if shard.table.len() < CROWDED {
                return Ok(());
            }
            self.shared.keys.fetch_sub(1, Ordering::Relaxed);
            return Err(Full);
        }
        if !swept && self.sweep(shard, now) > 0 && self.count_key() {
            return Ok(());
        }
        Err(Full)
    }

    /// Counts one more key, unless that makes too many.
    fn count_key(&self) -> bool {
        let more = |keys| (keys < self.max_keys).then_some(keys + 1);
        self.shared
            .keys
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Reads the state of `key` and the rules it is under.
    pub(super) fn read(&self, key: K) -> (P, State<W>) {
        let place = key.place(&self.hasher);
        let shard = self.shard(place).lock();
        let state = match shard.table.find(place, key) {
            Some(index) => shard.table.state(index),
            None => [0; W],
        };
        (shard.rules, state)
    }

    /// Takes `key` out, whatever its state; whether it was there.
    pub(super) fn forget(&self, key: K) -> bool {
        let place = key.place(&self.hasher);
        let mut shard = self.shard(place).lock();
        let Some(index) = shard.table.find(place, key) else {
            return false;
        };
        shard.table.remove(index, &self.hasher);
        self.shared.keys.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Puts every key under `rules`, its state as `carry` makes it of the old rules and state.
    ///
    /// Key by key exact: each shard changes under its lock. Calls of this must not overlap.
    pub(super) fn set_rules(&self, rules: P, carry: impl Fn(&P, State<W>) -> State<W>) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            let old = std::mem::replace(&mut shard.rules, rules);
            let before = shard.table.len();
            shard.table.carry(|state| carry(&old, state), &self.hasher);
            let gone = before - shard.table.len();
            self.shared.keys.fetch_sub(gone, Ordering::Relaxed);
        }
    }

    /// Takes out every fresh key, shard by shard.
    pub(super) fn sweep_all(&self, now: Nanos) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| self.sweep(&mut shard.lock(), now)).sum()
    }

    /// Sweeps in passing; soon again from the shard at `place` if that found much.
    #[cold]
    #[inline(never)]
    fn look_around(&self, place: u64, now: Nanos) {
        if self.sweep_some(now) {
            self.shard(place).lock().calls = CALLS_PER_LOOK - CALLS_AFTER_A_FIND;
        }
    }

    /// Sweeps the next few shards in turn; whether at least half of their keys were fresh.
    fn sweep_some(&self, now: Nanos) -> bool {
        let (mut seen, mut gone, mut slots) = (0, 0, 0);
        for _ in 0..SHARDS_PER_LOOK.min(self.shards.len()) {
            let at = self.shared.next_look.fetch_add(1, Ordering::Relaxed);
            let mut shard = self.shards[at & (self.shards.len() - 1)].lock();
            seen += shard.table.len();
            slots += shard.table.slots();
            gone += self.sweep(&mut shard, now);
            if slots >= SLOTS_PER_LOOK {
                break;
            }
        }
        gone > 0 && gone >= seen - gone
    }

    fn sweep(&self, shard: &mut MutexGuard<'_, Shard<K, P, W>>, now: Nanos) -> usize {
        let rules = shard.rules;
        let gone = shard
            .table
            .sweep(|state| rules.is_fresh(state, now), &self.hasher);
        if gone > 0 {
            shard.swept_at = shard.swept_at.max(now);
            self.shared.keys.fetch_sub(gone, Ordering::Relaxed);
            self.shared
                .evicted
                .fetch_add(gone as u64, Ordering::Relaxed);
        }
        gone
    }

    pub(super) fn len(&self) -> usize {
        self.shared.keys.load(Ordering::Relaxed)
    }

    pub(super) fn evicted(&self) -> u64 {
        self.shared.evicted.load(Ordering::Relaxed)
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let tables = self.shards.iter().map(|shard| shard.lock().table.bytes());
        size_of_val(&*self.shards) + tables.sum::<usize>()
    }

    /// The high half of the place, of which the table uses the low one.
    #[inline]
    fn shard(&self, place: u64) -> &Mutex<Shard<K, P, W>> {
        &self.shards[(place >> 32) as usize & (self.shards.len() - 1)]
    }
}

impl<K, P, const W: usize> Shard<K, P, W> {
    /// Counts calls; whether enough have come to pay for a look at other shards.
    #[inline]
    fn count_calls(&mut self, calls: u32) -> bool {
        self.calls += calls;
        let due = self.calls >= CALLS_PER_LOOK;
        if due {
            self.calls = 0;
        }
        due
    }
}

#[cfg(all(test, not(sluice_loom)))]
#[path = "shards_tests.rs"]
mod tests;
