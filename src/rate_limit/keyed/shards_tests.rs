use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// A toy limit: the state is the time at which the key is free again, each charge adds 10.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Busy {
    most: u64,
}

impl Rules<1> for Busy {
    fn is_fresh(&self, [until]: State<1>, now: Nanos) -> bool {
        until <= now.as_u64()
    }
}

fn charge(rules: &Busy, state: &mut State<1>, now: Nanos) -> bool {
    let next = state[0].max(now.as_u64()) + 10;
    let fits = next <= now.as_u64() + rules.most;
    if fits {
        *state = [next];
    }
    fits
}

fn update(
    store: &Shards<u64, Busy, 1>,
    key: u64,
    now: Nanos,
    charge: impl Fn(&Busy, &mut State<1>, Nanos) -> bool,
) -> Result<bool, Full> {
    let decide = |in_force: &InForce<Busy>, state: &mut State<1>, now| {
        Ok(charge(&in_force.rules, state, now))
    };
    store.update(key, now, decide, || Err(Full))
}

fn at(nanos: u64) -> Nanos {
    Nanos::new(nanos)
}

proptest! {
    #[test]
    fn decisions_are_those_of_an_unbounded_map_except_for_new_keys_at_the_cap(
        calls in proptest::collection::vec((0..60_u64, 0..15_u64), 0..600),
        max_keys in 1..40_usize,
        shards in prop_oneof![Just(1_usize), Just(2), Just(8)],
    ) {
        let rules = Busy { most: 30 };
        let store = Shards::with_shards(rules, max_keys, shards);
        let mut model = HashMap::<u64, State<1>>::new();
        let mut now = 1;
        for (key, pause) in calls {
            now += pause;
            let before = model.get(&key).copied().unwrap_or_default();
            let mut after = before;
            let expected = charge(&rules, &mut after, at(now));
            match update(&store, key, at(now), charge) {
                Ok(decided) => {
                    prop_assert_eq!(decided, expected, "key {} at {}", key, now);
                    model.insert(key, after);
                }
                Err(Full) => {
                    prop_assert!(rules.is_fresh(before, at(now)), "only a new key finds no room");
                    prop_assert_eq!(store.len(), max_keys, "and only at the cap");
                }
            }
            prop_assert!(store.len() <= max_keys, "the cap is hard");
        }
    }
}

#[test]
fn a_full_store_takes_no_new_key_until_one_is_fresh_and_never_forgets_one_that_is_not() {
    let store = Shards::with_shards(Busy { most: 10 }, 2, 2);
    assert_eq!(update(&store, 1, at(1), charge), Ok(true));
    assert_eq!(update(&store, 2, at(5), charge), Ok(true));
    assert_eq!(
        update(&store, 3, at(6), charge),
        Err(Full),
        "both are in use"
    );
    assert_eq!(
        update(&store, 1, at(6), charge),
        Ok(false),
        "and remembered"
    );
    assert_eq!(
        update(&store, 3, at(11), charge),
        Ok(true),
        "the first is fresh"
    );
    assert_eq!(
        update(&store, 2, at(11), charge),
        Ok(false),
        "the other stays"
    );
    assert_eq!((store.len(), store.evicted()), (2, 1));
}

#[test]
fn a_call_that_read_the_clock_before_its_key_was_swept_gets_no_second_bucket() {
    let store = Shards::with_shards(Busy { most: 10 }, 8, 1);
    assert_eq!(update(&store, 1, at(1), charge), Ok(true));
    assert_eq!(store.sweep_all(at(11)), 1);
    assert_eq!(
        update(&store, 1, at(2), charge),
        Ok(true),
        "decided as of 11"
    );
    let (_, state) = store.read(1);
    assert_eq!(state, Ok([21]), "booked after the sweep, not before it");
}

#[test]
fn traffic_of_one_key_sweeps_all_others() {
    let store = Shards::new(Busy { most: 10 }, 20_000);
    for key in 0..20_000 {
        assert_eq!(update(&store, key, at(1), charge), Ok(true));
    }
    let full = store.bytes();
    for now in 0..60_000 {
        let _ = update(&store, 7, at(20_000_000_000 + now), charge);
    }
    assert_eq!(store.len(), 1, "only the key in use is kept");
    assert!(
        store.bytes() - 128 * 1_024 < full / 50,
        "memory is given back"
    );
}

#[test]
fn one_call_looks_at_a_bounded_number_of_slots() {
    let store = Shards::new(Busy { most: 1 << 40 }, 100_000);
    for key in 0..100_000 {
        assert_eq!(update(&store, key, at(1), charge), Ok(true));
    }
    let largest = store
        .shards
        .iter()
        .map(|Line(shard)| shard.lock().table.slots());
    assert!(
        largest.max() < Some(512),
        "growing or sweeping one shard is no pause"
    );
}

#[test]
fn new_rules_reach_every_key() {
    let store = Shards::with_shards(Busy { most: 100 }, 100, 4);
    for key in 0..20 {
        assert_eq!(update(&store, key, at(1), charge), Ok(true));
    }
    store.set_rules(Busy { most: 5 }, at(1), |old, _new, [until]| {
        assert_eq!(
            old.most, 100,
            "the state is read under the rules it was written under"
        );
        [until.min(5)]
    });
    for key in 0..20 {
        let (in_force, state) = store.read(key);
        assert_eq!((in_force.rules, state), (Busy { most: 5 }, Ok([5])));
        assert_eq!(update(&store, key, at(5), charge), Ok(false));
    }
}

#[test]
fn distinct_new_keys_and_sweeps_on_threads_lose_no_charge_and_keep_the_count() {
    for _ in 0..20 {
        let store = Shards::with_shards(Busy { most: 40 }, 64, 2);
        let admitted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mine = (0..64)
                            .filter(|key| update(&store, key % 8, at(1), charge) == Ok(true));
                        let mine = mine.count();
                        store.sweep_all(at(1));
                        mine
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(admitted, 8 * 4, "each of 8 keys exactly 4 times");
        assert_eq!(store.len(), 8);
        store.sweep_all(at(100));
        assert_eq!(store.len(), 0, "the count comes back to nothing");
    }
}
