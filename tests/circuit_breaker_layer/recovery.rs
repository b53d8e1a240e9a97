//! Probes through the layer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tower::{Layer, Service, ServiceExt, service_fn};
use tower_sluice::Error;
use tower_sluice::circuit_breaker::{CircuitBreakerLayer, CircuitState};

use crate::harness::{Act, Actor, OPEN, brittle, call, circuit, now, panics};

#[tokio::test]
async fn h04_of_a_hundred_calls_after_the_open_time_one_is_made() {
    let (time, breaker) = circuit(brittle());
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let made = Arc::new(AtomicUsize::new(0));
    let (passing, count) = (gate.clone(), made.clone());
    let inner = service_fn(move |()| {
        let (gate, made) = (passing.clone(), count.clone());
        async move {
            made.fetch_add(1, Ordering::SeqCst);
            gate.acquire()
                .await
                .expect("the gate is never closed")
                .forget();
            Err::<(), _>("still down")
        }
    });
    let service = CircuitBreakerLayer::from(breaker.clone()).layer(inner);
    let hundred = || {
        let calls = (0..100).map(|_| tokio::spawn(service.clone().oneshot(())));
        calls.collect::<Vec<_>>()
    };

    breaker.try_acquire().unwrap().failure();
    time.advance(OPEN);
    let calls = hundred();
    while made.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    let mut refused = 0;
    for call in calls {
        match call.await.unwrap() {
            Err(Error::Refused(_)) => refused += 1,
            Err(Error::Inner(error)) => assert_eq!(error, "still down"),
            Ok(()) => panic!("nothing succeeds here"),
        }
    }
    assert_eq!(refused, 99, "all but the probe are refused, typed");
    assert_eq!(
        made.load(Ordering::SeqCst),
        1,
        "exactly one call reached the service"
    );
    assert_eq!(
        breaker.snapshot().state,
        CircuitState::Open,
        "the probe failed"
    );
    for call in hundred() {
        assert!(
            matches!(call.await.unwrap(), Err(Error::Refused(_))),
            "open again"
        );
    }
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[test]
fn h05_a_probe_that_panics_reopens_and_a_later_one_closes() {
    for act in [Act::PanicInCall, Act::PanicInPoll] {
        let (time, breaker) = circuit(brittle());
        let mut service = CircuitBreakerLayer::from(breaker.clone()).layer(Actor);
        breaker.try_acquire().unwrap().failure();
        time.advance(OPEN);
        panics(|| now(call(&mut service, act)));
        let snapshot = breaker.snapshot();
        assert_eq!(
            snapshot.state,
            CircuitState::Open,
            "the panic counts as a failure"
        );
        assert_eq!(snapshot.retry_after, Some(OPEN), "with a fresh open time");
        assert_eq!(snapshot.probes_in_flight, 0, "its place came back");
        assert!(now(service.call(Act::Answer)).is_err());
        time.advance(OPEN);
        assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
        assert_eq!(
            breaker.snapshot().state,
            CircuitState::Closed,
            "a healthy probe closes"
        );
    }
}

#[test]
fn a_probe_that_is_dropped_gives_its_place_back() {
    let (time, breaker) = circuit(brittle());
    let mut service = CircuitBreakerLayer::from(breaker.clone()).layer(Actor);
    breaker.try_acquire().unwrap().failure();
    time.advance(OPEN);
    drop(call(&mut service, Act::Hang));
    assert_eq!(breaker.snapshot().probes_in_flight, 0);
    assert_eq!(
        now(call(&mut service, Act::Answer)),
        Ok(Act::Answer),
        "another probe goes out"
    );
    assert_eq!(breaker.snapshot().state, CircuitState::Closed);
}

#[test]
fn an_outer_panic_while_a_call_is_in_flight_is_a_cancellation_and_no_failure() {
    let (_, breaker) = circuit(brittle());
    let mut service = CircuitBreakerLayer::from(breaker.clone()).layer(Actor);
    let in_flight = call(&mut service, Act::Hang);
    panics(move || {
        let _dropped_by_the_unwinding = in_flight;
        panic!("not the inner service's doing");
    });
    assert_eq!(breaker.snapshot().state, CircuitState::Closed);
}
