use std::borrow::Borrow;
use std::sync::Arc;

use hashbrown::HashTable;

/// One part of a registry's table: an index by hash over a dense list of entries, through which a
/// sweep goes a bounded number of entries at a time, round and round.
#[derive(Debug)]
pub(super) struct Shard<K, V> {
    index: HashTable<usize>,
    entries: Vec<Entry<K, V>>,
    hand: usize,
}

#[derive(Debug)]
pub(super) struct Entry<K, V> {
    /// Shared, so that it can be handed out without its `Clone` under the lock.
    pub(super) key: Arc<K>,
    pub(super) value: V,
    hash: u64,
    pinned: bool,
    /// Looked up since the sweep last came by.
    used: bool,
}

// By hand: a derived one would ask for `K: Default`.
impl<K, V> Default for Shard<K, V> {
    fn default() -> Self {
        Self {
            index: HashTable::new(),
            entries: Vec::new(),
            hand: 0,
        }
    }
}

impl<K: Eq, V> Shard<K, V> {
    /// The value of `key`, marked as used.
    pub(super) fn get<Q>(&mut self, hash: u64, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let place = self.find(hash, key)?;
        let entry = &mut self.entries[place];
        entry.used = true;
        Some(&entry.value)
    }

    /// Keeps the entry of `key`, if there is one, from every sweep.
    pub(super) fn pin<Q>(&mut self, hash: u64, key: &Q)
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        if let Some(place) = self.find(hash, key) {
            self.entries[place].pinned = true;
        }
    }

    /// Puts in a key that is not there yet.
    pub(super) fn insert(&mut self, hash: u64, key: Arc<K>, value: V, pinned: bool) {
        let place = self.entries.len();
        self.entries.push(Entry {
            key,
            value,
            hash,
            pinned,
            used: true,
        });
        let entries = &self.entries;
        self.index
            .insert_unique(hash, place, |&place| entries[place].hash);
    }

    /// Takes `key` out.
    pub(super) fn remove<Q>(&mut self, hash: u64, key: &Q) -> Option<Entry<K, V>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        self.find(hash, key).map(|place| self.take(place))
    }

    /// Looks at up to `budget` entries from where the last sweep stopped, and takes out one that
    /// may go. Says how many were looked at.
    ///
    /// An entry in use since the hand last passed is spared for one that was not, so that busy
    /// keys outlive idle ones; where all are in use, the first that may go goes.
    pub(super) fn sweep(
        &mut self,
        budget: usize,
        may_go: impl Fn(&V) -> bool,
    ) -> (usize, Option<Entry<K, V>>) {
        let mut spared = None;
        let budget = budget.min(self.entries.len());
        for looked in 1..=budget {
            let place = self.hand % self.entries.len();
            self.hand = place + 1;
            let entry = &mut self.entries[place];
            let used = std::mem::take(&mut entry.used);
            if entry.pinned || !may_go(&entry.value) {
                continue;
            }
            if !used {
                return (looked, Some(self.take(place)));
            }
            spared = spared.or(Some(place));
        }
        (budget, spared.map(|place| self.take(place)))
    }

    /// What is in it, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Arc<K>, &V)> {
        self.entries.iter().map(|entry| (&entry.key, &entry.value))
    }

    fn find<Q>(&self, hash: u64, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        // The whole hash first: a key of another is not even looked at.
        let holds = |&place: &usize| {
            let entry = &self.entries[place];
            entry.hash == hash && (*entry.key).borrow() == key
        };
        self.index.find(hash, holds).copied()
    }

    /// Takes the entry at `place` out; the last one moves into its place.
    fn take(&mut self, place: usize) -> Entry<K, V> {
        if let Ok(indexed) = self
            .index
            .find_entry(self.entries[place].hash, |&at| at == place)
        {
            indexed.remove();
        }
        let taken = self.entries.swap_remove(place);
        let from = self.entries.len();
        if let Some(moved) = self.entries.get(place)
            && let Some(indexed) = self.index.find_mut(moved.hash, |&at| at == from)
        {
            *indexed = place;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn hash(key: u8) -> u64 {
        u64::from(key % 3) // collisions on purpose
    }

    #[derive(Clone, Debug)]
    enum Step {
        Put(u8),
        Take(u8),
        Get(u8),
        Sweep(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = 0..20_u8;
        prop_oneof![
            key.clone().prop_map(Step::Put),
            key.clone().prop_map(Step::Take),
            key.prop_map(Step::Get),
            (0..8_usize).prop_map(Step::Sweep),
        ]
    }

    proptest! {
        #[test]
        fn it_holds_what_a_plain_map_holds(steps in prop::collection::vec(step(), 0..60)) {
            let mut shard = Shard::default();
            let mut model = HashMap::new();
            for (turn, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Put(key) => {
                        if let std::collections::hash_map::Entry::Vacant(free) = model.entry(key) {
                            free.insert(turn);
                            shard.insert(hash(key), Arc::new(key), turn, false);
                        }
                    }
                    Step::Take(key) => {
                        let taken = shard.remove(hash(key), &key).map(|entry| entry.value);
                        prop_assert_eq!(taken, model.remove(&key));
                    }
                    Step::Get(key) => {
                        prop_assert_eq!(shard.get(hash(key), &key), model.get(&key));
                    }
                    Step::Sweep(budget) => {
                        let (looked, gone) = shard.sweep(budget, |turn| turn % 2 == 0);
                        prop_assert!(looked <= budget, "the work of a sweep is bounded");
                        if let Some(entry) = gone {
                            prop_assert_eq!(entry.value % 2, 0, "only what may go goes");
                            prop_assert_eq!(model.remove(&*entry.key), Some(entry.value));
                        }
                    }
                }
                let held: HashMap<_, _> = shard.entries().map(|(k, v)| (**k, *v)).collect();
                prop_assert_eq!(&held, &model);
            }
        }
    }

    #[test]
    fn a_sweep_takes_idle_entries_before_busy_ones_and_pinned_ones_never() {
        let mut shard = Shard::default();
        shard.insert(0, Arc::new("pinned"), (), true);
        shard.insert(1, Arc::new("idle"), (), false);
        shard.insert(2, Arc::new("busy"), (), false);
        assert!(
            shard.sweep(3, |()| false).1.is_none(),
            "none may go, the hand has passed all"
        );
        shard.get(2, "busy");
        let (_, gone) = shard.sweep(3, |()| true);
        assert_eq!(gone.map(|entry| *entry.key), Some("idle"));
        shard.get(2, "busy");
        let (_, gone) = shard.sweep(3, |()| true);
        assert_eq!(
            gone.map(|entry| *entry.key),
            Some("busy"),
            "nothing else is left to go"
        );
        assert!(
            shard.sweep(6, |()| true).1.is_none(),
            "a pinned entry never goes"
        );
    }

    #[test]
    fn an_empty_shard_is_swept_without_a_look() {
        let mut shard = Shard::<u8, ()>::default();
        assert_eq!(shard.sweep(8, |()| true).0, 0);
    }
}
