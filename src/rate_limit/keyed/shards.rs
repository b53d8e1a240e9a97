use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::hasher::KeyHasher;
use super::stored::StoredKey;
use super::table::{State, Table};
use crate::clock::Nanos;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};

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

/// How long a key is kept after it became fresh, while there is room: one that is called again and
/// again is not taken out and put back each time.
const KEPT_FRESH: Duration = Duration::from_secs(10);

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
    shards: Box<[Locked<K, P, W>]>,
    hasher: KeyHasher,
    max_keys: usize,
    /// Written for new keys and by sweeps only; a known key writes nothing outside its shard.
    shared: CachePadded<Shared>,
}

type Locked<K, P, const W: usize> = CachePadded<Mutex<Shard<K, P, W>>>;

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

    /// Decides for `key` and changes its state, in one step; `full` answers where the key is new,
    /// the state it would get is not zero, and there is no room.
    ///
    /// `decide` is given zeros for a key that has no state, and makes no other zero. It may be
    /// asked twice.
    #[inline]
    pub(super) fn update<R>(
        &self,
        key: K,
        now: Nanos,
        decide: impl Fn(&P, &mut State<W>, Nanos) -> R,
        full: impl FnOnce() -> R,
    ) -> R {
        let place = key.place(&self.hasher);
        let mut guard = self.shard(place).lock();
        let shard = &mut *guard;
        let Some(index) = shard.table.find(place, key) else {
            drop(guard);
            return self
                .update_new(place, key, now, decide)
                .unwrap_or_else(|Full| full());
        };
        let answer = decide(&shard.rules, shard.table.state_mut(index), now);
        let due = shard.count_calls(1);
        drop(guard);
        if due {
            self.look_around(place, now);
        }
        answer
    }

    /// As `update`, for a key that was not there a moment ago.
    #[cold]
    #[inline(never)]
    fn update_new<R>(
        &self,
        place: u64,
        key: K,
        now: Nanos,
        decide: impl Fn(&P, &mut State<W>, Nanos) -> R,
    ) -> Result<R, Full> {
        let (answer, due) = self.try_new(place, key, now, &decide).or_else(|Full| {
            // Someone else's keys may be fresh.
            self.sweep_some(now, now);
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
        decide: &impl Fn(&P, &mut State<W>, Nanos) -> R,
    ) -> Result<(R, bool), Full> {
        let mut guard = self.shard(place).lock();
        let shard = &mut *guard;
        // Looked for again: another thread may have brought it while the lock was free.
        let answer = if let Some(index) = shard.table.find(place, key) {
            decide(&shard.rules, shard.table.state_mut(index), now)
        } else {
            let mut state = [0; W];
            let answer = decide(&shard.rules, &mut state, now.max(shard.swept_at));
            if state != [0; W] {
                self.reserve(shard, now)?;
                shard.table.insert(key, state, &self.hasher);
            }
            answer
        };
        Ok((answer, shard.count_calls(NEW_KEY)))
    }

    /// Makes room for one more key in `shard` and counts it.
    fn reserve(&self, shard: &mut Shard<K, P, W>, now: Nanos) -> Result<(), Full> {
        if shard.table.is_crowded() {
            // Before it grows: room may be found instead of bought.
            self.sweep(shard, since_long(now), now);
        }
        if shard.table.len() < CROWDED && self.count_key() {
            return Ok(());
        }
        if self.sweep(shard, now, now) > 0 && self.count_key() {
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

    /// Puts the state of `key` back to `before`, if it still is `after`; whether it was.
    pub(super) fn undo(&self, key: K, before: State<W>, after: State<W>) -> bool {
        let place = key.place(&self.hasher);
        let mut shard = self.shard(place).lock();
        let Some(index) = shard.table.find(place, key) else {
            return false;
        };
        if shard.table.state(index) != after {
            return false;
        }
        if before == [0; W] {
            shard.table.remove(index, &self.hasher);
            self.shared.keys.fetch_sub(1, Ordering::Relaxed);
        } else {
            *shard.table.state_mut(index) = before;
        }
        true
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
        shards
            .map(|shard| self.sweep(&mut shard.lock(), now, now))
            .sum()
    }

    /// Sweeps in passing; soon again from the shard at `place` if that found much.
    #[cold]
    #[inline(never)]
    fn look_around(&self, place: u64, now: Nanos) {
        if self.sweep_some(since_long(now), now) {
            self.shard(place).lock().calls = CALLS_PER_LOOK - CALLS_AFTER_A_FIND;
        }
    }

    /// Sweeps the next few shards in turn of what was fresh at `since`; whether that was at least
    /// half of their keys.
    fn sweep_some(&self, since: Nanos, now: Nanos) -> bool {
        let (mut seen, mut gone, mut slots) = (0, 0, 0);
        for _ in 0..SHARDS_PER_LOOK.min(self.shards.len()) {
            let at = self.shared.next_look.fetch_add(1, Ordering::Relaxed);
            let mut shard = self.shards[at & (self.shards.len() - 1)].lock();
            seen += shard.table.len();
            slots += shard.table.slots();
            gone += self.sweep(&mut shard, since, now);
            if slots >= SLOTS_PER_LOOK {
                break;
            }
        }
        gone > 0 && gone >= seen - gone
    }

    /// Takes out of one shard what was fresh at `since` already, which is `now` or earlier.
    fn sweep(&self, shard: &mut Shard<K, P, W>, since: Nanos, now: Nanos) -> usize {
        let rules = shard.rules;
        let gone = shard
            .table
            .sweep(|state| rules.is_fresh(state, since), &self.hasher);
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

fn since_long(now: Nanos) -> Nanos {
    Nanos::from(now.since(Nanos::from(KEPT_FRESH)))
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
