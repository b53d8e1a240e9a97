//! Breakers by key.

use std::sync::Arc;

use parking_lot::Mutex;
use tower_layer::Layer;
use tower_sluice::WhenFull;
use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitBreakerLayer, CircuitBreakers, CircuitState, RegistryError,
};
use tower_sluice::clock::{Clock, ManualClock};

use crate::harness::{Act, Actor, OPEN, brittle, call, now};
use crate::support::alloc::allocations;

fn registry(max_keys: usize, when_full: WhenFull) -> (ManualClock, CircuitBreakers<String>) {
    let time = Clock::manual();
    let breakers = CircuitBreakers::builder(brittle().consecutive(2).build().unwrap())
        .clock(&time)
        .max_keys(max_keys)
        .when_full(when_full)
        .build()
        .unwrap();
    (time, breakers)
}

fn fail(breaker: &CircuitBreaker) {
    breaker.try_acquire().expect("closed").failure();
}

#[test]
fn h52_the_cap_holds_and_only_breakers_like_fresh_ones_make_room() {
    let (_, breakers) = registry(500, WhenFull::Overflow);
    let host = |number: u32| format!("host-{number}");
    let keep = |number: u32| breakers.get_or_create(&host(number)).unwrap();
    // One with a failure in a row, one open, one forced, and one whose handle a user holds.
    fail(&keep(0));
    fail(&keep(1));
    fail(&keep(1));
    keep(2).force_open();
    let held = keep(3);
    for number in 4..10_000 {
        let breaker = keep(number);
        breaker.try_acquire().unwrap().success();
        assert!(breakers.len() <= 500, "the cap is exact");
    }
    assert!(
        breakers.evicted() >= 9_000,
        "healthy keys made room for one another"
    );
    assert_eq!(breakers.turned_away(), 0, "there was room for every key");
    let state = |number: u32| {
        breakers
            .get(&host(number))
            .expect("never evicted")
            .snapshot()
    };
    assert_eq!(state(0).consecutive, 1, "a failure in its row");
    assert_eq!(state(1).state, CircuitState::Open);
    assert!(state(2).command.is_some());
    held.force_open();
    assert!(
        state(3).command.is_some(),
        "the handle acts on the state that the registry has"
    );

    // One that was evicted and made again decides as before.
    let again = keep(10);
    fail(&again);
    assert_eq!(again.snapshot().state, CircuitState::Closed);
    fail(&again);
    assert_eq!(again.snapshot().state, CircuitState::Open);
}

#[test]
fn where_none_may_go_new_keys_share_the_overflow_breaker_or_are_refused() {
    for when_full in [WhenFull::Overflow, WhenFull::Refuse] {
        let (_, breakers) = registry(2, when_full);
        fail(&breakers.get_or_create("a").unwrap());
        fail(&breakers.get_or_create("b").unwrap());
        let third = breakers.get_or_create("c");
        assert_eq!((breakers.len(), breakers.turned_away()), (2, 1));
        match when_full {
            WhenFull::Overflow => {
                fail(&third.unwrap());
                fail(&breakers.get_or_create("d").unwrap());
                let shared = breakers.overflow().expect("in use").snapshot();
                assert_eq!(shared.state, CircuitState::Open, "they fail together");
            }
            _ => assert_eq!(third.unwrap_err(), RegistryError::Full { max_keys: 2 }),
        }
    }
}

#[test]
fn a_layer_over_a_full_registry_refuses_by_name_and_reason() {
    let (_, breakers) = registry(1, WhenFull::Refuse);
    fail(&breakers.get_or_create("a").unwrap());
    let layer = CircuitBreakerLayer::keyed(&breakers, |_: &Act| "b".to_owned());
    let error = now(call(&mut layer.layer(Actor), Act::Answer)).unwrap_err();
    let refusal = error.refused().expect("a refusal");
    assert_eq!(refusal.retry_after(), None);
    assert_eq!(refusal.name(), "keyed");
}

#[test]
fn removing_a_key_makes_its_next_use_fresh_and_leaves_handles_at_work() {
    let (_, breakers) = registry(10, WhenFull::Refuse);
    let handle = breakers.get_or_create("a").unwrap();
    handle.force_open();
    assert!(breakers.contains("a") && !breakers.contains("b"));
    assert!(breakers.remove("a").is_some());
    assert!(breakers.remove("a").is_none() && breakers.is_empty());
    assert!(breakers.get_or_create("a").unwrap().try_acquire().is_ok());
    assert!(handle.try_acquire().is_err());
}

#[test]
fn the_same_key_registered_with_another_policy_is_an_error() {
    let (_, breakers) = registry(2, WhenFull::Overflow);
    let make =
        |calls| CircuitBreaker::new("billing", brittle().consecutive(calls).build().unwrap());
    let first = breakers.register("billing".to_owned(), make(7)).unwrap();
    let again = breakers.register("billing".to_owned(), make(7)).unwrap();
    again.force_open();
    assert!(
        first.try_acquire().is_err(),
        "the one that was there is kept"
    );
    let other = breakers.register("billing".to_owned(), make(8));
    assert_eq!(other.unwrap_err(), RegistryError::PolicyMismatch);
    drop((first, again));
    breakers.get("billing").unwrap().release();
    for number in 0..100 {
        breakers.get_or_create(&number.to_string()).unwrap();
    }
    assert!(
        breakers.contains("billing"),
        "a registered breaker makes room for none"
    );
}

#[test]
fn a_key_may_have_a_policy_of_its_own_and_keeps_it() {
    let time = Clock::manual();
    let strict = brittle().build().unwrap();
    let breakers = CircuitBreakers::<u8>::builder(brittle().consecutive(3).build().unwrap())
        .clock(&time)
        .policy_for(move |&key| (key == 1).then(|| strict.clone()))
        .name_of(|key| format!("number {key}").into())
        .build()
        .unwrap();
    fail(&breakers.get_or_create(&1).unwrap());
    fail(&breakers.get_or_create(&2).unwrap());
    let state = |key| breakers.get(&key).unwrap().snapshot().state;
    assert_eq!(
        (state(1), state(2)),
        (CircuitState::Open, CircuitState::Closed)
    );
    assert_eq!(breakers.get(&1).unwrap().name(), "number 1");
    let lenient = brittle().consecutive(9).build().unwrap();
    let third = breakers.get_or_create_with(&3, lenient.clone()).unwrap();
    let again = breakers
        .get_or_create_with(&3, brittle().build().unwrap())
        .unwrap();
    assert_eq!((third.policy(), again.policy()), (lenient.clone(), lenient));
}

#[test]
fn keys_out_of_range_are_errors_that_name_the_field() {
    let build = || CircuitBreakers::<u8>::builder(brittle().build().unwrap());
    assert_eq!(build().max_keys(0).build().unwrap_err().field(), "max_keys");
    for share in [0.0, -1.0, 1.1, f64::NAN] {
        let error = build().max_open_share(share).build().unwrap_err();
        assert_eq!(error.field(), "max_open_share");
    }
}

#[test]
fn a_known_borrowed_key_costs_no_allocation() {
    let (_, breakers) = registry(10, WhenFull::Refuse);
    let layer = CircuitBreakerLayer::keyed_ref(&breakers, |request: &String| request.as_str());
    let mut service = layer.layer(tower::service_fn(|_: String| {
        std::future::ready(Ok::<_, std::convert::Infallible>(()))
    }));
    let mut requests = vec!["a".to_owned(), "a".to_owned()];
    now(call(&mut service, requests.pop().unwrap())).unwrap();
    let request = requests.pop().unwrap();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let (count, _) = allocations(|| {
        use tower_service::Service;
        assert!(service.poll_ready(&mut cx).is_ready());
        let mut response = std::pin::pin!(service.call(request));
        assert!(std::future::Future::poll(response.as_mut(), &mut cx).is_ready());
    });
    assert_eq!(count, 0, "a known key is found by what the request lends");
    assert_eq!(breakers.len(), 1);
}

#[test]
fn keys_share_nothing_and_clones_of_the_registry_share_all() {
    let (_, breakers) = registry(10, WhenFull::Refuse);
    let mut service = CircuitBreakerLayer::keyed_ref(breakers.clone(), |act: &Act| match act {
        Act::Fail => "bad",
        _ => "good",
    })
    .layer(Actor);
    for _ in 0..2 {
        let _ = now(call(&mut service, Act::Fail));
    }
    assert!(
        now(call(&mut service, Act::Fail))
            .unwrap_err()
            .refused()
            .is_some()
    );
    assert_eq!(
        now(call(&mut service, Act::Answer)),
        Ok(Act::Answer),
        "another key"
    );
    let mut keys: Vec<_> = breakers
        .iter()
        .map(|(key, breaker)| (key, breaker.state()))
        .collect();
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [("bad", CircuitState::Open), ("good", CircuitState::Closed)];
    assert_eq!(keys, expected.map(|(key, state)| (key.to_owned(), state)));
}

#[test]
fn threads_that_ask_for_the_same_new_keys_get_the_same_breakers() {
    for _ in 0..50 {
        let (_, breakers) = registry(16, WhenFull::Overflow);
        let made = std::thread::scope(|scope| {
            let ask = || {
                let keys = (0..16).map(|number: u32| number.to_string());
                keys.map(|key| breakers.get_or_create(&key).unwrap())
                    .collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect::<Vec<_>>()
        });
        assert_eq!(
            breakers.len(),
            16,
            "the cap is exact, and each key is in once"
        );
        made[0].iter().for_each(CircuitBreaker::force_open);
        let all = made.iter().flatten();
        assert!(
            all.clone().all(|breaker| breaker.try_acquire().is_err()),
            "one state per key"
        );
    }
}

#[test]
fn no_more_than_the_share_of_keys_that_may_be_open_open_at_once() {
    let time = Clock::manual();
    let breakers = CircuitBreakers::<u32>::builder(brittle().build().unwrap())
        .clock(&time)
        .max_open_share(0.2)
        .build()
        .unwrap();
    let handles: Vec<_> = (0..10)
        .map(|key| breakers.get_or_create(&key).unwrap())
        .collect();
    let open = || {
        handles
            .iter()
            .filter(|breaker| breaker.state() == CircuitState::Open)
            .count()
    };
    handles.iter().for_each(fail);
    assert_eq!(open(), 2, "a fifth of ten");
    assert_eq!(breakers.trips_withheld(), 8);
    handles[9].force_open();
    assert_eq!(open(), 3, "a command is not bound by it");
    time.advance(OPEN);
    handles[0].try_acquire().unwrap().failure();
    assert_eq!(open(), 3, "a probe that fails reopens within its own part");
    handles[1].try_acquire().unwrap().success();
    fail(&handles[2]);
    assert_eq!(open(), 3, "one that closed makes room for another");
    handles[0].reset();
    fail(&handles[3]);
    fail(&handles[4]);
    assert_eq!(open(), 3, "as does one that is reset");
}

#[test]
fn a_key_in_use_that_is_registered_makes_room_for_no_other() {
    let (time, breakers) = registry(1, WhenFull::Refuse);
    let policy = breakers.get_or_create("kept").unwrap().policy();
    let ours = CircuitBreaker::builder("kept", policy).clock(&time).build();
    breakers.register("kept".to_owned(), ours).unwrap();
    assert!(breakers.get_or_create("other").is_err(), "full for good");
    assert!(breakers.contains("kept"));
}

#[test]
fn a_key_that_is_removed_while_open_leaves_its_part_of_the_share_to_others() {
    let breakers = CircuitBreakers::<u32>::builder(brittle().build().unwrap())
        .clock(Clock::manual())
        .max_open_share(0.5)
        .build()
        .unwrap();
    let [first, second] = [1, 2].map(|key| breakers.get_or_create(&key).unwrap());
    fail(&first);
    breakers.remove(&1);
    fail(&second);
    assert_eq!(second.state(), CircuitState::Open);
    assert_eq!(first.state(), CircuitState::Open, "its handle goes on");
}

/// What a panic may hold at worst.
struct Spiteful;

impl Drop for Spiteful {
    fn drop(&mut self) {
        panic!("as it is dropped");
    }
}

#[test]
fn a_key_that_finds_the_registry_full_is_reported() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = heard.clone();
    let breakers = CircuitBreakers::<String>::builder(brittle().consecutive(2).build().unwrap())
        .max_keys(1)
        .on_full(|_| std::panic::panic_any(Spiteful))
        .on_full(move |key: &String| listener.lock().push(key.clone()))
        .build()
        .unwrap();
    fail(&breakers.get_or_create("a").unwrap());
    breakers.get_or_create("b").unwrap();
    breakers.get_or_create("a").unwrap();
    breakers.get_or_create("c").unwrap();
    assert_eq!(*heard.lock(), ["b", "c"]);
    assert_eq!((breakers.turned_away(), breakers.listener_panics()), (2, 2));
}
