//! What a registry does about the keys themselves: their own code, and those that stay.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;
use tower_sluice::WhenFull;
use tower_sluice::circuit_breaker::{CircuitBreakers, CircuitEventKind, RegistryError};
use tower_sluice::clock::Clock;

use crate::harness::{brittle, panics};

thread_local! {
    /// Which part of [`Touchy`] panics.
    static PANICS: Cell<Part> = const { Cell::new(Part::Nothing) };
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Nothing,
    Hash,
    Eq,
    Clone,
    Drop,
}

fn touch(part: Part) {
    if PANICS.get() == part {
        // Not `panic!`: the hook would print each.
        std::panic::resume_unwind(Box::new("a key's own"));
    }
}

/// A key whose own code may panic.
struct Touchy(u32);

impl Hash for Touchy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        touch(Part::Hash);
        self.0.hash(state);
    }
}

impl PartialEq for Touchy {
    fn eq(&self, other: &Self) -> bool {
        touch(Part::Eq);
        self.0 == other.0
    }
}

impl Eq for Touchy {}

impl Clone for Touchy {
    fn clone(&self) -> Self {
        touch(Part::Clone);
        Self(self.0)
    }
}

impl Drop for Touchy {
    fn drop(&mut self) {
        if PANICS.get() == Part::Drop {
            PANICS.set(Part::Nothing); // one at a time, or the process ends
            std::panic::resume_unwind(Box::new("a key's own"));
        }
    }
}

#[test]
fn a_key_whose_own_code_panics_leaves_the_registry_as_usable_as_before() {
    const CAP: usize = 8;
    let policy = brittle().consecutive(2).build().unwrap();
    let breakers = CircuitBreakers::<Touchy>::builder(policy)
        .clock(Clock::manual())
        .max_keys(CAP)
        .when_full(WhenFull::Refuse)
        .build()
        .unwrap();
    let create = |key| breakers.get_or_create(&Touchy(key)).map(drop);
    (0..CAP as u32).for_each(|key| create(key).expect("room"));
    for part in [Part::Hash, Part::Eq, Part::Clone, Part::Drop] {
        for round in 0..100 {
            let (known, new) = (round % 8, 1_000 + round);
            let keys = [Touchy(known), Touchy(new)];
            PANICS.set(part);
            for key in &keys {
                let caught = |work: &dyn Fn()| {
                    let work = std::panic::AssertUnwindSafe(work);
                    let _ = std::panic::catch_unwind(work);
                    PANICS.set(part);
                };
                caught(&|| drop(breakers.get(key)));
                caught(&|| drop(breakers.get_or_create(key)));
                caught(&|| breakers.iter().for_each(drop));
                caught(&|| drop(breakers.remove(key)));
            }
            PANICS.set(Part::Nothing);
            assert_eq!(
                breakers.len(),
                breakers.iter().count(),
                "as many as counted"
            );
            assert!(breakers.len() <= CAP, "the cap holds");
            // All room is there still: as many new keys as the cap find it.
            for key in 0..CAP as u32 {
                create(2_000 + key).expect("room, or an idle one makes it");
            }
            assert_eq!(breakers.len(), CAP, "no room was lost after {part:?}");
        }
    }
}

/// Its clone asks the registry that holds it.
struct Curious(u32, Arc<Mutex<Option<CircuitBreakers<Curious>>>>);

impl Hash for Curious {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for Curious {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Curious {}

impl Clone for Curious {
    fn clone(&self) -> Self {
        let registry = self.1.lock().clone();
        if let Some(registry) = registry {
            assert!(registry.get(self).is_some(), "it is there meanwhile");
        }
        Self(self.0, self.1.clone())
    }
}

#[test]
fn a_key_may_ask_the_registry_as_it_is_cloned() {
    let own = Arc::new(Mutex::new(None));
    let breakers = CircuitBreakers::new(brittle().build().unwrap());
    for number in 0..200 {
        breakers
            .get_or_create(&Curious(number, own.clone()))
            .unwrap();
    }
    *own.lock() = Some(breakers.clone());
    assert_eq!(breakers.iter().count(), 200, "and waits for no lock");
    *own.lock() = None;
}

/// Nothing but a success, or its removal, ends what such a breaker remembers.
#[test]
fn keys_that_failed_once_in_a_row_stay_and_the_others_share_the_overflow_breaker() {
    let by_row = || brittle().consecutive(2);
    let by_ring = || brittle().consecutive(2).failure_rate(1.0).window_calls(20);
    let heard = Arc::new(Mutex::new(Vec::new()));
    for policy in [by_row(), by_ring()] {
        let (time, told) = (Clock::manual(), heard.clone());
        let breakers = CircuitBreakers::<u32>::builder(policy.build().unwrap())
            .clock(&time)
            .max_keys(100)
            .on_overflow_event(move |event| told.lock().push(event.clone()))
            .build()
            .unwrap();
        let fail = |key| {
            let breaker = breakers.get_or_create(&key).unwrap();
            breaker.try_acquire().map(|permit| permit.failure())
        };
        for key in 0..100 {
            fail(key).expect("closed");
        }
        time.advance(std::time::Duration::from_secs(1_000_000));
        for key in 1_000..1_500 {
            let _refused_or_not = fail(key);
            assert_eq!(breakers.len(), 100, "the cap holds");
        }
        assert_eq!(breakers.evicted(), 0, "none was forgotten");
        assert!((0..100).all(|key| breakers.contains(&key)));
        let overflow = breakers.overflow().expect("it was needed");
        assert_eq!(overflow.snapshot().trips, 1, "guarded like any other");
        let told = std::mem::take(&mut *heard.lock());
        let trips = told.iter().filter(|event| {
            assert_eq!(&*event.name, "overflow");
            matches!(event.kind, CircuitEventKind::Transition { .. })
        });
        assert_eq!(trips.count(), 1, "and its listener heard of it");
        breakers.remove(&7);
        breakers.get_or_create(&2_000).unwrap();
        assert!(breakers.contains(&2_000), "removing is what makes room");
    }
}

#[test]
fn a_policy_function_that_panics_makes_no_breaker_and_keeps_no_room() {
    let breakers = CircuitBreakers::<u32>::builder(brittle().build().unwrap())
        .max_keys(1)
        .when_full(WhenFull::Refuse)
        .policy_for(|key| {
            assert!(*key != 13, "the policy of one key");
            None
        })
        .build()
        .unwrap();
    panics(|| breakers.get_or_create(&13));
    assert_eq!(breakers.len(), 0);
    drop(breakers.get_or_create(&1).expect("the room is there still"));
    panics(|| breakers.get_or_create(&13));
    assert_eq!(breakers.len(), 0, "an idle one had made room by then");
    let _held = breakers.get_or_create(&2).expect("which came back");
    let full = breakers.get_or_create(&13).map(drop);
    assert_eq!(
        full,
        Err(RegistryError::Full { max_keys: 1 }),
        "one is held"
    );
}
