use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::place::{Place, Places};
use super::shard::Shard;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};

/// Enough that two threads with keys of their own seldom meet on one lock.
const SHARDS: usize = 64;
/// The entries looked at to make room for one key: the most that a call pays for others' keys.
const SWEEP: usize = 16;
/// Of those, as many in one shard, so that one full of trouble does not hide the rest.
const SWEEP_A_SHARD: usize = 8;

/// A bounded map under short locks, one per shard. Values are cheap to clone, and so are keys,
/// which are shared.
///
/// Nothing of a user's runs under a lock but the key's own `Eq` and `Borrow`, before anything is
/// changed: keys and values are hashed and made before it, and cloned and dropped after it.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    shards: Box<[Locked<K, V>]>,
    hasher: RandomState,
    places: Arc<Places>,
    hand: AtomicUsize,
    evicted: AtomicU64,
}

/// A shard under its lock, on cache lines of its own.
type Locked<K, V> = CachePadded<Mutex<Shard<K, V>>>;

/// What became of a key that was to be put in.
#[derive(Debug)]
pub(super) enum Inserted<V> {
    New(V),
    /// It was there already, or came in meanwhile.
    Known(V),
}

impl<K, V> Table<K, V> {
    pub(super) fn new(max_keys: usize) -> Self {
        let shards = max_keys.min(SHARDS).next_power_of_two();
        Self {
            shards: (0..shards).map(|_| CachePadded::default()).collect(),
            hasher: RandomState::new(),
            places: Arc::new(Places::new(max_keys)),
            hand: AtomicUsize::new(0),
            evicted: AtomicU64::new(0),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.taken()
    }

    /// How many entries have made room for another.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// The count of its keys, which outlives it.
    pub(super) fn places(&self) -> &Arc<Places> {
        &self.places
    }

    pub(super) fn max_keys(&self) -> usize {
        self.places.cap()
    }
}

impl<K: Hash + Eq, V: Clone> Table<K, V> {
    pub(super) fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        self.shard(hash).lock().get(hash, key).cloned()
    }

    pub(super) fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let removed = self.shard(hash).lock().remove(hash, key);
        removed.map(|entry| {
            self.places.give_back();
            entry.value.clone()
        })
    }

    /// The value of `key`, made and put in if it is not there; if need be in the place of an
    /// entry that `may_go`. One that `stays`, new or known, makes room for no other from here on.
    /// `None` where there is no room.
    pub(super) fn get_or_insert(
        &self,
        key: K,
        stays: impl Fn(&V) -> bool,
        make: impl Fn(&K) -> V,
        may_go: impl Fn(&V) -> bool,
    ) -> Option<Inserted<V>> {
        let hash = self.hasher.hash_one(&key);
        let key = Arc::new(key);
        let known = |shard: &mut Shard<K, V>| {
            let known = shard.get(hash, &*key).cloned()?;
            if stays(&known) {
                shard.pin(hash, &*key);
            }
            Some(known)
        };
        loop {
            let mut place = None;
            if self.places.are_taken() {
                if let Some(known) = known(&mut self.shard(hash).lock()) {
                    return Some(Inserted::Known(known));
                }
                place = Some(self.evict(&may_go)?);
            }
            let value = make(&key);
            let pinned = stays(&value);
            let mut shard = self.shard(hash).lock();
            if let Some(known) = known(&mut shard) {
                drop(shard);
                return Some(Inserted::Known(known));
            }
            // Under the lock: two that bring the same key take one place between them, or the
            // second would take the place of a third key.
            if let Some(place) = place.or_else(|| self.places.take()) {
                shard.insert(hash, key.clone(), value.clone(), pinned);
                place.keep();
                drop(shard);
                return Some(Inserted::New(value));
            }
        }
    }

    /// Makes room by taking out an entry that `may_go`.
    fn evict(&self, may_go: impl Fn(&V) -> bool) -> Option<Place<'_>> {
        let mut budget = SWEEP;
        while budget > 0 {
            // Round and round, so that no shard is drained while others are full.
            let shard = self.hand.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            let shard = &self.shards[shard];
            let (looked, gone) = shard.lock().sweep(budget.min(SWEEP_A_SHARD), &may_go);
            if gone.is_some() {
                self.evicted.fetch_add(1, Ordering::Relaxed);
                // Held before the key is dropped, which may panic.
                let place = self.places.inherit();
                drop(gone);
                return Some(place);
            }
            budget = budget.saturating_sub(looked.max(1));
        }
        None
    }

    /// The entries of the shard with this number; `None` past the last one.
    pub(super) fn shard_entries(&self, number: usize) -> Option<Vec<(Arc<K>, V)>> {
        let shard = self.shards.get(number)?.lock();
        Some(
            shard
                .entries()
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect(),
        )
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard<K, V>> {
        // The high bits: the low ones choose the place within the shard.
        let number = (hash >> 48) as usize & (self.shards.len() - 1);
        &self.shards[number]
    }
}
