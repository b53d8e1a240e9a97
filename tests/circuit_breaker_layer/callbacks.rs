//! User code that panics or calls back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tower::Layer;
use tower_sluice::Error;
use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitBreakerLayer, CircuitBreakers, CircuitEvent, CircuitEventKind,
    CircuitState, Outcome,
};
use tower_sluice::clock::Clock;

use crate::harness::{Act, Actor, OPEN, brittle, call, circuit, now, panics};
use crate::support::strict::NotWell;

/// After user code panicked: a hundred calls on clones are answered, a failure still opens the
/// circuit, and a probe still closes it.
macro_rules! decides_rightly {
    ($service:expr, $time:expr) => {{
        for _ in 0..100 {
            let mut clone = $service.clone();
            assert_eq!(now(call(&mut clone, Act::Answer)), Ok(Act::Answer));
        }
        assert_eq!(
            now(call(&mut $service, Act::Fail)),
            Err(Error::Inner(NotWell))
        );
        let refused = now(call(&mut $service, Act::Answer));
        assert!(
            matches!(refused, Err(Error::Refused(_))),
            "never switched to unguarded"
        );
        $time.advance(OPEN);
        assert_eq!(
            now(call(&mut $service, Act::Answer)),
            Ok(Act::Answer),
            "no permit was lost"
        );
        assert_eq!(now(call(&mut $service, Act::Answer)), Ok(Act::Answer));
    }};
}

#[test]
fn h70_a_classifier_that_panics() {
    let (time, breaker) = circuit(brittle());
    let broken = Arc::new(AtomicBool::new(true));
    let switch = broken.clone();
    let layer = CircuitBreakerLayer::from(breaker.clone()).classify(
        move |result: Result<&Act, &NotWell>| {
            assert!(!switch.load(Ordering::SeqCst), "a broken classifier");
            if result.is_ok() {
                Outcome::Success
            } else {
                Outcome::Failure
            }
        },
    );
    let mut service = layer.layer(Actor);
    panics(|| now(call(&mut service, Act::Answer)));
    assert_eq!(
        breaker.snapshot().state,
        CircuitState::Open,
        "recorded as a failure"
    );
    time.advance(OPEN);
    panics(|| now(call(&mut service, Act::Answer)));
    assert_eq!(
        breaker.snapshot().probes_in_flight,
        0,
        "its probe's place came back"
    );
    broken.store(false, Ordering::SeqCst);
    time.advance(OPEN);
    assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
    decides_rightly!(service, time);
}

#[test]
fn h70_a_key_function_that_panics() {
    let time = Clock::manual();
    let policy = brittle().build().unwrap();
    let breakers = CircuitBreakers::builder(policy)
        .clock(&time)
        .build()
        .unwrap();
    let broken = Arc::new(AtomicBool::new(true));
    let switch = broken.clone();
    let layer = CircuitBreakerLayer::keyed(&breakers, move |_: &Act| {
        assert!(!switch.load(Ordering::SeqCst), "a broken key function");
        1_u32
    });
    let mut service = layer.layer(Actor);
    panics(|| call(&mut service, Act::Answer));
    assert!(breakers.is_empty(), "no key, no breaker");
    broken.store(false, Ordering::SeqCst);
    decides_rightly!(service, time);
}

#[test]
fn h70_a_policy_or_name_function_of_the_registry_that_panics() {
    let time = Clock::manual();
    let broken = Arc::new(AtomicUsize::new(2));
    let (policy_switch, name_switch) = (broken.clone(), broken.clone());
    let breakers = CircuitBreakers::<u32>::builder(brittle().build().unwrap())
        .policy_for(move |_| {
            assert!(
                policy_switch.load(Ordering::SeqCst) != 2,
                "a broken policy function"
            );
            None
        })
        .name_of(move |key| {
            assert!(
                name_switch.load(Ordering::SeqCst) != 1,
                "a broken name function"
            );
            key.to_string().into()
        })
        .clock(&time)
        .max_keys(1)
        .build()
        .unwrap();
    let mut service = CircuitBreakerLayer::keyed(&breakers, |_: &Act| 1_u32).layer(Actor);
    panics(|| call(&mut service, Act::Answer));
    broken.store(1, Ordering::SeqCst);
    panics(|| call(&mut service, Act::Answer));
    broken.store(0, Ordering::SeqCst);
    assert!(breakers.is_empty(), "the room for it was given back");
    decides_rightly!(service, time);
}

#[test]
fn h70_a_listener_that_panics_is_caught_and_counted() {
    let time = Clock::manual();
    let policy = brittle().build().unwrap();
    let layer = CircuitBreakerLayer::from(
        CircuitBreaker::builder("test", policy)
            .clock(&time)
            .on_event(|_: &CircuitEvent| panic!("a broken listener"))
            .build(),
    );
    let mut service = layer.layer(Actor);
    decides_rightly!(service, time);
    assert!(
        layer.breaker().snapshot().listener_panics > 100,
        "one for each event"
    );
}

#[test]
fn h70_a_responder_that_panics() {
    let (time, breaker) = circuit(brittle());
    let respond = |_: &_| -> Act { panic!("a broken responder") };
    let layer = CircuitBreakerLayer::from(breaker.clone());
    let mut broken = layer.clone().respond_with(respond).layer(Actor);
    breaker.try_acquire().unwrap().failure();
    panics(|| call(&mut broken, Act::Answer));
    time.advance(OPEN);
    let mut service = layer.layer(Actor);
    decides_rightly!(service, time);
}

#[test]
fn h11_a_listener_may_list_the_registry_and_command_another_breaker() {
    let time = Clock::manual();
    let registry: Arc<Mutex<Option<CircuitBreakers<u32>>>> = Arc::default();
    let seen: Arc<Mutex<Vec<(CircuitState, CircuitState, usize)>>> = Arc::default();
    let (listed, heard) = (registry.clone(), seen.clone());
    let breakers = CircuitBreakers::<u32>::builder(brittle().build().unwrap())
        .clock(&time)
        .on_event(move |key: &u32, event: &CircuitEvent| {
            let CircuitEventKind::Transition {
                transition,
                snapshot,
            } = &event.kind
            else {
                return;
            };
            let breakers = listed.lock().clone().expect("set before the first call");
            let own = breakers.get(key).expect("its own breaker is there");
            assert_eq!(own.snapshot().state, transition.to, "it sees the new state");
            assert_eq!(snapshot.state, transition.to);
            if *key == 1 {
                let other = breakers.get_or_create(&2).unwrap();
                other.force_open();
                other.reset();
                heard
                    .lock()
                    .push((transition.from, transition.to, breakers.iter().count()));
            }
        })
        .build()
        .unwrap();
    *registry.lock() = Some(breakers.clone());
    let mut service = CircuitBreakerLayer::keyed(&breakers, |_: &Act| 1_u32).layer(Actor);
    assert!(now(call(&mut service, Act::Fail)).is_err());
    time.advance(OPEN);
    assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
    let (closed, open, half) = (
        CircuitState::Closed,
        CircuitState::Open,
        CircuitState::HalfOpen,
    );
    assert_eq!(
        *seen.lock(),
        [(closed, open, 2), (open, half, 2), (half, closed, 2)]
    );
    registry.lock().take();
}
