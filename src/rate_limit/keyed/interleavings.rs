//! Insert against sweep, over every interleaving: `--cfg sluice_loom`.
//!
//! Each model has one shard: which shard a key falls to is drawn at random for each store, and
//! loom must meet the same locks whenever it takes the same turns.

use loom::thread;

use super::shards::{Full, InForce, Rules, Shards};
use super::table::State;
use crate::clock::Nanos;
use crate::sync::Arc;

/// The state is the instant at which the key is free again; each charge takes 10, at most two fit.
#[derive(Clone, Copy)]
struct Busy;

impl Rules<1> for Busy {
    fn is_fresh(&self, [until]: State<1>, now: Nanos) -> bool {
        until <= now.as_u64()
    }
}

type Store = Shards<u64, Busy, 1>;

fn charge(store: &Store, key: u64, now: u64) -> Result<bool, Full> {
    let decide = |_: &InForce<Busy>, state: &mut State<1>, now: Nanos| {
        let next = state[0].max(now.as_u64()) + 10;
        let fits = next <= now.as_u64() + 20;
        if fits {
            *state = [next];
        }
        Ok(fits)
    };
    store.update(key, Nanos::new(now), decide, || Err(Full))
}

#[test]
fn loom_two_threads_that_bring_one_new_key_share_its_state() {
    loom::model(|| {
        let store = Arc::new(Store::with_shards(Busy, 2, 1));
        let other = store.clone();
        let theirs =
            thread::spawn(move || (0..2).filter(|_| charge(&other, 1, 1) == Ok(true)).count());
        let ours = (0..2).filter(|_| charge(&store, 1, 1) == Ok(true)).count();
        assert_eq!(
            ours + theirs.join().unwrap(),
            2,
            "found or made, and charged, in one step"
        );
        assert_eq!(store.len(), 1);
    });
}

#[test]
fn loom_a_sweep_never_takes_a_key_that_counts_nor_gives_it_a_second_bucket() {
    loom::model(|| {
        let store = Arc::new(Store::with_shards(Busy, 2, 1));
        assert_eq!(charge(&store, 1, 1), Ok(true));
        let other = store.clone();
        // Sweeps at an instant at which the first charge is over.
        let sweeper = thread::spawn(move || other.sweep_all(Nanos::new(11)));
        // A call that read the clock before that.
        let admitted = (0..3).filter(|_| charge(&store, 1, 2) == Ok(true)).count();
        let swept = sweeper.join().unwrap();
        let (_, Ok([until])) = store.read(1) else {
            panic!("there is room for two");
        };
        // Kept: one more fits until 22. Swept first: two fit, but both count from 11 on.
        match swept {
            0 => assert!(admitted == 1 && until == 21, "{admitted} until {until}"),
            _ => assert!(admitted <= 2 && until <= 31, "{admitted} until {until}"),
        }
        assert!(store.len() <= 1);
    });
}

#[test]
fn loom_the_cap_is_hard_and_the_count_true() {
    loom::model(|| {
        let store = Arc::new(Store::with_shards(Busy, 1, 1));
        let other = store.clone();
        let theirs = thread::spawn(move || charge(&other, 1, 1));
        let ours = charge(&store, 2, 1);
        let placed = usize::from(ours.is_ok()) + usize::from(theirs.join().unwrap().is_ok());
        assert_eq!(placed, 1, "one place, one key");
        assert_eq!(store.len(), 1);
        store.sweep_all(Nanos::new(50));
        assert_eq!(store.len(), 0);
    });
}

#[test]
fn loom_what_comes_back_is_never_taken_from_a_key_that_came_after() {
    loom::model(|| {
        let store = Arc::new(Store::with_shards(Busy, 2, 1));
        assert_eq!(charge(&store, 1, 1), Ok(true));
        let other = store.clone();
        // The first charge is over by then, and nothing of it may come back.
        let sweeper = thread::spawn(move || {
            other.sweep_all(Nanos::new(11));
            charge(&other, 1, 12)
        });
        // Read before the lock was had, as a clock may be that went back.
        let refund = |_: &InForce<Busy>, state: &mut State<1>, now: Nanos| {
            let unpaid = 11_u64.saturating_sub(now.as_u64());
            state[0] = state[0].saturating_sub(unpaid);
        };
        store.relieve(1, || Nanos::new(2), refund);
        assert_eq!(sweeper.join().unwrap(), Ok(true));
        let (_, Ok([until])) = store.read(1) else {
            panic!("there is room for two");
        };
        assert_eq!(until, 22, "what was charged later stays charged");
    });
}
