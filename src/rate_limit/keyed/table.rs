use std::ops::{AddAssign, Range};

use super::hasher::KeyHasher;
use super::stored::StoredKey;

/// The state of a key in `W` words. All words zero is the state of a key never seen, so a slot
/// that holds zeros is vacant: the table needs no bytes to say which slots are taken.
pub(super) type State<const W: usize> = [u64; W];

/// One shard's keys: open addressing with linear probing, the state beside the key.
///
/// Grows by a quarter and shrinks when mostly empty, so that it never holds much more than its
/// keys need; one shard is small, so neither is a pause. Moving the rest of a probe run over a
/// removed key leaves no tombstones to clean up later.
#[derive(Debug)]
pub(super) struct Table<K, const W: usize> {
    slots: Box<[Slot<K, W>]>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot<K, const W: usize> {
    key: K,
    state: State<W>,
}

/// What a sweep came by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Swept {
    pub(super) slots: usize,
    pub(super) kept: usize,
    pub(super) gone: usize,
}

impl AddAssign for Swept {
    fn add_assign(&mut self, more: Self) {
        self.slots += more.slots;
        self.kept += more.kept;
        self.gone += more.gone;
    }
}

/// Where a key is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Index(usize);

impl<K: StoredKey, const W: usize> Table<K, W> {
    pub(super) fn new() -> Self {
        Self {
            slots: Box::default(),
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Heap memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    #[inline]
    pub(super) fn find(&self, place: u64, key: K) -> Option<Index> {
        let mut at = self.home(place);
        // An empty table has no home to look at.
        while let Some(slot) = self.slots.get(at) {
            if slot.is_vacant() {
                return None;
            }
            if slot.key == key {
                return Some(Index(at));
            }
            at = self.next(at);
        }
        None
    }

    #[inline]
    pub(super) fn state(&self, Index(at): Index) -> State<W> {
        self.slots[at].state
    }

    /// The state of a key, which is not to be made zero: that would mean vacant.
    #[inline]
    pub(super) fn state_mut(&mut self, Index(at): Index) -> &mut State<W> {
        &mut self.slots[at].state
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Whether one more key makes the table grow.
    pub(super) fn is_crowded(&self) -> bool {
        // Four fifths: runs stay short (3 slots to a key that is there, 13 to one that is not).
        self.len + 1 > self.slots.len() / 5 * 4
    }

    /// Adds a key that is not in the table, with a state that is not zero.
    pub(super) fn insert(&mut self, key: K, state: State<W>, hasher: &KeyHasher) {
        debug_assert_ne!(state, [0; W], "a zero state means vacant");
        if self.is_crowded() {
            let more = (self.slots.len() / 4).next_multiple_of(5).max(5);
            self.resize(self.slots.len() + more, hasher);
        }
        self.place(Slot { key, state }, hasher);
        self.len += 1;
    }

    /// Takes a key out.
    pub(super) fn remove(&mut self, Index(at): Index, hasher: &KeyHasher) {
        let mut hole = at;
        let mut at = self.next(hole);
        while !self.slots[at].is_vacant() {
            let home = self.home(self.slots[at].key.place(hasher));
            // A key may move back into the hole unless that would put it before its home.
            if self.distance(home, at) >= self.distance(hole, at) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
            at = self.next(at);
        }
        self.slots[hole] = Slot::vacant();
        self.len -= 1;
    }

    /// Takes out of the `slots` the keys whose state is `fresh`, and gives back what room that
    /// leaves over.
    pub(super) fn sweep(
        &mut self,
        slots: Range<usize>,
        fresh: impl Fn(State<W>) -> bool,
        hasher: &KeyHasher,
    ) -> Swept {
        let mut swept = Swept::default();
        let mut at = slots.start;
        let end = slots.end.min(self.slots.len());
        while at < end {
            let slot = &self.slots[at];
            if !slot.is_vacant() && fresh(slot.state) {
                // What moved into this slot is looked at next, so `at` stays.
                self.remove(Index(at), hasher);
                swept.gone += 1;
            } else {
                swept.kept += usize::from(!slot.is_vacant());
                at += 1;
            }
        }
        swept.slots = end.saturating_sub(slots.start);
        if swept.gone > 0 || self.len == 0 {
            self.shrink(hasher);
        }
        swept
    }

    /// Replaces every state by what `carry` makes of it; a key that comes out at zero goes.
    pub(super) fn carry(&mut self, carry: impl Fn(State<W>) -> State<W>, hasher: &KeyHasher) {
        let vacant = vec![Slot::vacant(); self.slots.len()].into();
        let slots = std::mem::replace(&mut self.slots, vacant);
        self.len = 0;
        for slot in slots.iter().filter(|slot| !slot.is_vacant()) {
            let state = carry(slot.state);
            if state != [0; W] {
                self.place(Slot { state, ..*slot }, hasher);
                self.len += 1;
            }
        }
    }

    fn shrink(&mut self, hasher: &KeyHasher) {
        // Two fifths: half of what makes it grow, so that the two do not chase each other.
        if self.len < self.slots.len() / 5 * 2 || self.len == 0 {
            let enough = (self.len + self.len / 2).next_multiple_of(5);
            if enough < self.slots.len() {
                self.resize(enough, hasher);
            }
        }
    }

    fn resize(&mut self, slots: usize, hasher: &KeyHasher) {
        let vacant = vec![Slot::vacant(); slots].into();
        let old = std::mem::replace(&mut self.slots, vacant);
        for slot in old.iter().filter(|slot| !slot.is_vacant()) {
            self.place(*slot, hasher);
        }
    }

    /// Puts a slot at the end of its run.
    fn place(&mut self, slot: Slot<K, W>, hasher: &KeyHasher) {
        let mut at = self.home(slot.key.place(hasher));
        while !self.slots[at].is_vacant() {
            at = self.next(at);
        }
        self.slots[at] = slot;
    }

    /// Where a key at `place` would lie in an empty table: the low half of the place, scaled to
    /// the number of slots, which need not be a power of two.
    #[inline]
    fn home(&self, place: u64) -> usize {
        ((u64::from(place as u32) * self.slots.len() as u64) >> 32) as usize
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() {
            0
        } else {
            at + 1
        }
    }

    /// Steps forward from one slot to another, around the end.
    fn distance(&self, from: usize, to: usize) -> usize {
        if from <= to {
            to - from
        } else {
            to + self.slots.len() - from
        }
    }
}

impl<K: StoredKey, const W: usize> Slot<K, W> {
    fn vacant() -> Self {
        Self {
            key: K::default(),
            state: [0; W],
        }
    }

    #[inline]
    fn is_vacant(&self) -> bool {
        self.state == [0; W]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Put(u64, u64),
        Sweep(u64),
        Carry(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => (0..200_u64, 1..50_u64).prop_map(|(key, state)| Step::Put(key, state)),
            1 => (0..50_u64).prop_map(Step::Sweep),
            1 => (0..5_u64).prop_map(Step::Carry),
        ];
        proptest::collection::vec(step, 0..400)
    }

    fn put(table: &mut Table<u64, 1>, key: u64, state: u64, hasher: &KeyHasher) {
        match table.find(key.place(hasher), key) {
            Some(index) => *table.state_mut(index) = [state],
            None => table.insert(key, [state], hasher),
        }
    }

    proptest! {
        #[test]
        fn a_table_is_a_map(steps in steps()) {
            let hasher = KeyHasher::random();
            let mut table = Table::<u64, 1>::new();
            let mut model = HashMap::new();
            for step in steps {
                match step {
                    Step::Put(key, state) => {
                        put(&mut table, key, state, &hasher);
                        model.insert(key, state);
                    }
                    Step::Sweep(limit) => {
                        let before = model.len();
                        model.retain(|_, state| *state > limit);
                        let swept = table.sweep(0..usize::MAX, |[state]| state <= limit, &hasher).gone;
                        prop_assert_eq!(swept, before - model.len(), "every fresh key goes");
                    }
                    Step::Carry(less) => {
                        table.carry(|[state]| [state.saturating_sub(less)], &hasher);
                        model.retain(|_, state| { *state = state.saturating_sub(less); *state > 0 });
                    }
                }
                prop_assert_eq!(table.len(), model.len(), "the count is the number of keys");
                prop_assert!(table.len() <= table.slots.len() / 5 * 4, "a run always ends");
            }
            for key in 0..200 {
                let found = table.find(key.place(&hasher), key).map(|index| table.state(index)[0]);
                prop_assert_eq!(found, model.get(&key).copied(), "no key is lost or made up");
            }
        }
    }

    #[test]
    fn an_emptied_table_holds_no_memory() {
        let hasher = KeyHasher::random();
        let mut table = Table::<u64, 2>::new();
        for key in 0..1_000 {
            table.insert(key, [1, 0], &hasher);
        }
        let full = table.bytes();
        assert!(full >= 24_000, "the words of a thousand keys");
        table.sweep(0..usize::MAX, |_| true, &hasher);
        assert_eq!((table.len(), table.bytes()), (0, 0), "all was given back");
    }

    #[test]
    fn a_growing_table_is_never_much_larger_than_its_keys() {
        let hasher = KeyHasher::random();
        let mut table = Table::<u64, 1>::new();
        for key in 0..10_000_usize {
            table.insert(key as u64, [1], &hasher);
            if key > 100 {
                assert!(
                    table.bytes() <= 27 * key,
                    "at least 60 % full at {key} keys"
                );
            }
        }
    }
}
