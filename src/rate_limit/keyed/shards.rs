use crossbeam_utils::CachePadded;

use super::hasher::KeyHasher;
use super::stored::StoredKey;
use super::sweep::{CALLS_PER_LOOK, NEW_KEY};
use super::table::{State, Table};
use crate::clock::Nanos;
use crate::sync::{Arc, AtomicU64, AtomicUsize, Ordering, ShortMutex};

/// Up to so many keys each gets a shard of its own, so that two threads with different keys
/// rarely meet in one cache line: 64 bytes each.
const MOST_LONE_SHARDS: usize = 2_048;
/// Above that, keys per shard: few enough that growing one is no pause (16 KiB), and so many that
/// what stands before the keys stays in a core's own cache.
const KEYS_PER_SHARD: usize = 1_024;
/// A shard so full is full whatever the count of all keys says. Random places never get there; a
/// caller who learned to choose them would crowd one shard, and every probe run ends here.
const CROWDED: usize = 2 * KEYS_PER_SHARD;

/// What decides for the keys of a shard, kept beside them and changed under the same lock.
pub(super) trait Rules<const W: usize> {
    /// Whether `state` is worth no more than no state at all: a full bucket, an ended window.
    fn is_fresh(&self, state: State<W>, now: Nanos) -> bool;
}

/// The bounded store: which key has which state.
///
/// A key's shard is locked while its state is found (or made) and changed, so that finding and
/// charging are one step and a state can never be charged to the key that had its slot before.
/// Only states that are fresh go. There is no task: calls sweep in passing, a bounded piece each.
pub(super) struct Shards<K, P, const W: usize> {
    pub(super) shards: Box<[Line<K, P, W>]>,
    pub(super) hasher: KeyHasher,
    max_keys: usize,
    /// Written for new keys and by sweeps only; a known key writes nothing outside its shard.
    pub(super) shared: CachePadded<Shared>,
}

/// A shard on a cache line of its own.
#[repr(align(64))]
pub(super) struct Line<K, P, const W: usize>(pub(super) ShortMutex<Shard<K, P, W>>);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) keys: AtomicUsize,
    pub(super) next_look: AtomicUsize,
    pub(super) evicted: AtomicU64,
}

/// 56 bytes, or a decision would touch a second line.
pub(super) struct Shard<K, P, const W: usize> {
    pub(super) table: Table<K, W>,
    /// Shared by all shards, and changed shard by shard.
    pub(super) rules: Arc<InForce<P>>,
    /// The latest reading at which a key was taken out. A call that read the clock before that
    /// and finds no key decides as of then: its key may have been one of them.
    pub(super) swept_at: Nanos,
    /// Until the next look at other shards.
    pub(super) calls_left: u32,
    /// How far this shard has been looked through.
    pub(super) looked_to: u32,
}

/// The rules of a shard.
#[derive(Debug)]
pub(super) struct InForce<P> {
    pub(super) rules: P,
    /// Counts changes of the rules: a charge from before one gives nothing back.
    pub(super) generation: u64,
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
        let rules = Arc::new(InForce {
            rules,
            generation: 0,
        });
        let shard = || {
            Line(ShortMutex::new(Shard {
                table: Table::new(),
                rules: rules.clone(),
                swept_at: Nanos::ZERO,
                calls_left: CALLS_PER_LOOK,
                looked_to: 0,
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

    #[inline]
    pub(super) fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// Where `key` lies.
    #[inline]
    pub(super) fn place(&self, key: K) -> u64 {
        key.place(&self.hasher)
    }

    /// Decides for `key`, at `place`, and changes its state, in one step, if it is here.
    ///
    /// `decide` makes no state zero.
    #[inline(always)] // with `decide` in the midst of it: the path of every known key
    pub(super) fn update_known<R>(
        &self,
        place: u64,
        key: K,
        now: Nanos,
        decide: impl FnOnce(&InForce<P>, &mut State<W>) -> R,
    ) -> Option<R> {
        let mut guard = self.shard(place).lock();
        let shard = &mut *guard;
        let index = shard.table.find(place, key)?;
        let answer = decide(&shard.rules, shard.table.state_mut(index));
        let due = shard.count_calls(1);
        drop(guard);
        if due {
            self.look_around(place, now);
        }
        Some(answer)
    }

    /// Decides for `key` and changes its state, in one step; `full` answers where the key is new,
    /// the state it would get is not zero, and there is no room.
    ///
    /// `decide` is given zeros for a key that has no state, and makes no other zero. It may be
    /// asked twice.
    pub(super) fn update<R>(
        &self,
        key: K,
        now: Nanos,
        decide: impl Fn(&InForce<P>, &mut State<W>, Nanos) -> R,
        full: impl FnOnce() -> R,
    ) -> R {
        let place = self.place(key);
        let known = self.update_known(place, key, now, |rules, state| decide(rules, state, now));
        match known {
            Some(answer) => answer,
            None => self
                .update_new(place, key, now, decide)
                .unwrap_or_else(|Full| full()),
        }
    }

    /// As `update`, for a key that was not there a moment ago.
    #[cold]
    #[inline(never)]
    fn update_new<R>(
        &self,
        place: u64,
        key: K,
        now: Nanos,
        decide: impl Fn(&InForce<P>, &mut State<W>, Nanos) -> R,
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
        decide: &impl Fn(&InForce<P>, &mut State<W>, Nanos) -> R,
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
            self.sweep_long_fresh(shard, now);
        }
        if shard.table.len() < CROWDED && self.count_key() {
            return Ok(());
        }
        if self.sweep_piece(shard, now, now).gone > 0 && self.count_key() {
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

    /// Reads the state of `key` and the rules it is under; `Full` where it has none and there is no
    /// room for one, unless some key has become fresh.
    pub(super) fn read(&self, key: K) -> (Arc<InForce<P>>, Result<State<W>, Full>) {
        let place = self.place(key);
        let shard = self.shard(place).lock();
        let state = match shard.table.find(place, key) {
            Some(index) => Ok(shard.table.state(index)),
            None if shard.table.len() < CROWDED && self.len() < self.max_keys => Ok([0; W]),
            None => Err(Full),
        };
        (shard.rules.clone(), state)
    }

    /// Changes the state of `key`, if that is here, towards fresh; one that becomes so goes. `change`
    /// is asked for the time under the lock, and given the latest at which a key was taken out if
    /// that is later: so a key that came after one that was can be told from it.
    pub(super) fn relieve<R>(
        &self,
        key: K,
        now: impl FnOnce() -> Nanos,
        change: impl FnOnce(&InForce<P>, &mut State<W>, Nanos) -> R,
    ) -> Option<R> {
        let place = self.place(key);
        let mut guard = self.shard(place).lock();
        let shard = &mut *guard;
        let index = shard.table.find(place, key)?;
        let now = now().max(shard.swept_at);
        let state = shard.table.state_mut(index);
        let answer = change(&shard.rules, state, now);
        if *state == [0; W] || shard.rules.rules.is_fresh(*state, now) {
            shard.table.remove(index, &self.hasher);
            shard.swept_at = now;
            self.shared.keys.fetch_sub(1, Ordering::Relaxed);
        }
        Some(answer)
    }

    /// Takes `key` out, whatever its state; whether it was there.
    pub(super) fn forget(&self, key: K) -> bool {
        let place = self.place(key);
        let mut shard = self.shard(place).lock();
        let Some(index) = shard.table.find(place, key) else {
            return false;
        };
        shard.table.remove(index, &self.hasher);
        self.shared.keys.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Puts every key under `rules`, its state as `carry` makes it, at `now`, of the old rules and
    /// state.
    ///
    /// Key by key exact: each shard changes under its lock. Calls of this must not overlap.
    pub(super) fn set_rules(
        &self,
        rules: P,
        now: Nanos,
        carry: impl Fn(&P, &P, State<W>) -> State<W>,
    ) {
        let Line(first) = &self.shards[0];
        let generation = first.lock().rules.generation + 1;
        let next = Arc::new(InForce { rules, generation });
        for Line(shard) in &self.shards {
            let mut shard = shard.lock();
            let old = std::mem::replace(&mut shard.rules, next.clone());
            let before = shard.table.len();
            let carry = |state| carry(&old.rules, &next.rules, state);
            shard.table.carry(carry, &self.hasher);
            let gone = before - shard.table.len();
            if gone > 0 {
                shard.swept_at = shard.swept_at.max(now);
            }
            self.shared.keys.fetch_sub(gone, Ordering::Relaxed);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.shared.keys.load(Ordering::Relaxed)
    }

    pub(super) fn evicted(&self) -> u64 {
        self.shared.evicted.load(Ordering::Relaxed)
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let tables = self
            .shards
            .iter()
            .map(|Line(shard)| shard.lock().table.bytes());
        size_of_val(&*self.shards) + tables.sum::<usize>()
    }

    /// The high half of the place, of which the table uses the low one.
    #[inline]
    pub(super) fn shard(&self, place: u64) -> &ShortMutex<Shard<K, P, W>> {
        &self.shards[(place >> 32) as usize & (self.shards.len() - 1)].0
    }
}

#[cfg(all(test, not(sluice_loom)))]
#[path = "shards_tests.rs"]
mod tests;
