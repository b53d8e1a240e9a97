//! Calls that pass unguarded.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::Poll;

use parking_lot::Mutex;
use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;
use tower_sluice::Error;
use tower_sluice::circuit_breaker::error::CircuitOpenReason;
use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitBreakerLayer, CircuitBreakers, CircuitOpen, CircuitState,
};
use tower_sluice::clock::Clock;

use crate::harness::{OPEN, brittle, call, circuit, now, panics, poll_ready};
use crate::support::strict::{Echo, NotWell, Readiness, Strict};

/// Requests are numbers; even ones are skipped.
fn is_even(request: &u32) -> bool {
    request.is_multiple_of(2)
}

fn refused<T, E>(answer: Result<T, Error<CircuitOpen, E>>) -> CircuitOpenReason {
    match answer {
        Err(Error::Refused(refusal)) => refusal.reason(),
        _ => panic!("not refused"),
    }
}

#[test]
fn skipped_calls_pass_an_open_circuit_and_are_counted_and_told_nowhere() {
    let heard = Arc::new(Mutex::new(0));
    let count = heard.clone();
    let time = Clock::manual();
    let layer = CircuitBreakerLayer::new("test", brittle().build().unwrap())
        .skip(is_even)
        .clock(&time)
        .counters()
        .on_event(move |_| *count.lock() += 1);
    let breaker = layer.breaker().clone();
    let (strict, counts) = Strict::new(Echo);
    let mut service = layer.layer(strict);
    breaker.force_open();
    let told = *heard.lock();
    for _ in 0..3 {
        assert_eq!(now(call(&mut service, 4)), Ok(4));
    }
    assert_eq!(counts.calls(), 3);
    assert_eq!(*heard.lock(), told, "nothing is told of them");
    let totals = breaker.snapshot().totals.unwrap();
    assert_eq!((totals.admitted, totals.refused), (0, 0));
    assert_eq!(
        refused(now(call(&mut service, 5))),
        CircuitOpenReason::Forced
    );
    assert_eq!(counts.calls(), 3, "the others are refused as ever");
}

#[test]
fn a_skipped_call_that_fails_neither_trips_nor_is_a_probe() {
    let (time, breaker) = circuit(brittle());
    let inner = tower::service_fn(|_: u32| async { Err::<(), _>(NotWell) });
    let (strict, _) = Strict::new(inner);
    let layer = CircuitBreakerLayer::from(breaker.clone()).skip(is_even);
    let mut service = layer.layer(strict);
    assert_eq!(now(call(&mut service, 2)), Err(Error::Inner(NotWell)));
    assert_eq!(breaker.state(), CircuitState::Closed);
    assert!(now(call(&mut service, 1)).is_err());
    time.advance(OPEN);
    assert_eq!(now(call(&mut service, 2)), Err(Error::Inner(NotWell)));
    assert_eq!(
        breaker.state(),
        CircuitState::Open,
        "the probe is due still"
    );
    assert_eq!(breaker.snapshot().trips, 1);
}

#[test]
fn a_skipped_call_spends_the_readiness_of_its_instance() {
    let (_, breaker) = circuit(brittle());
    let (strict, counts) = Strict::new(Echo);
    let mut service = CircuitBreakerLayer::from(breaker)
        .skip(is_even)
        .layer(strict);
    assert_eq!(now(call(&mut service, 2)), Ok(2));
    let unpolled = now(service.call(1));
    assert_eq!(refused(unpolled), CircuitOpenReason::NotReady);
    assert_eq!(
        counts.calls(),
        1,
        "or the inner service would have panicked"
    );
}

#[test]
fn a_call_refused_leaves_its_readiness_to_one_that_is_skipped() {
    let (time, breaker) = circuit(brittle());
    let (strict, counts) = Strict::new(Echo);
    let layer = CircuitBreakerLayer::from(breaker.clone()).skip(is_even);
    let mut service = layer.layer(strict);
    breaker.try_acquire().unwrap().failure();
    assert_eq!(refused(now(call(&mut service, 1))), CircuitOpenReason::Open);
    assert_eq!(now(service.call(2)), Ok(2));
    assert_eq!((counts.polls(), counts.calls()), (1, 1));
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    time.advance(OPEN);
    assert_eq!(
        now(service.call(1)),
        Ok(1),
        "a probe due since is never unready"
    );
}

#[test]
fn a_readiness_error_is_seen_while_open_and_counts_when_a_probe_is_due() {
    let (time, breaker) = circuit(brittle());
    let (strict, counts) = Strict::new(Echo);
    let layer = CircuitBreakerLayer::from(breaker.clone()).skip(is_even);
    let mut service = layer.layer(strict);
    breaker.try_acquire().unwrap().failure();
    counts.script([Readiness::Error]);
    let error = poll_ready::<_, u32>(&mut service);
    assert_eq!(error, Poll::Ready(Err(Error::Inner(NotWell))));
    assert_eq!(breaker.snapshot().trips, 1, "nothing is counted while open");
    time.advance(OPEN);
    counts.script([Readiness::Error]);
    assert!(poll_ready::<_, u32>(&mut service).is_ready());
    let seen = breaker.snapshot();
    assert_eq!((seen.trips, seen.retry_after), (2, Some(OPEN)), "reopened");
}

#[test]
fn every_way_of_refusing_and_of_finding_a_breaker_skips() {
    let policy = || brittle().build().unwrap();
    let forced = || {
        let breaker = CircuitBreaker::new("test", policy());
        breaker.force_open();
        breaker
    };
    let keys = || {
        let breakers = CircuitBreakers::<u8>::new(policy());
        breakers.get_or_create(&0).unwrap().force_open();
        breakers
    };

    let layer = CircuitBreakerLayer::from(forced()).skip(is_even);
    let layer = layer.respond_with(|_: &CircuitOpen| 0_u32);
    let infallible = tower::service_fn(|request: u32| async move { Ok::<_, Infallible>(request) });
    let mut service = layer.layer(infallible);
    assert_eq!(now(call(&mut service, 2)), Ok(2));
    assert_eq!(now(call(&mut service, 1)), Ok(0));

    let layer = CircuitBreakerLayer::from(forced()).flatten_error();
    let boxed = tower::service_fn(|request: u32| async move { Ok::<_, BoxError>(request) });
    let mut service = layer.skip(is_even).layer(boxed);
    assert_eq!(now(call(&mut service, 2)).unwrap(), 2);
    assert!(now(call(&mut service, 1)).unwrap_err().is::<CircuitOpen>());

    let layer = CircuitBreakerLayer::keyed(keys(), |_: &u32| 0_u8).skip(is_even);
    let (strict, counts) = Strict::new(Echo);
    let mut service = layer.layer(strict);
    assert_eq!(now(call(&mut service, 2)), Ok(2));
    assert_eq!(
        refused(now(call(&mut service, 1))),
        CircuitOpenReason::Forced
    );
    assert_eq!(now(service.call(2)), Ok(2), "on the readiness left");
    assert_eq!(counts.polls(), 2);

    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    let key = move |_: &u32| {
        *count.lock() += 1;
        Some((0_u8, None))
    };
    let layer = CircuitBreakerLayer::keyed_with(keys(), key);
    let mut service = layer.skip(is_even).layer(Echo);
    assert_eq!(now(call(&mut service, 2)), Ok(2));
    assert_eq!(*asked.lock(), 0, "no key is asked for");
}

#[test]
fn several_functions_each_pick_out_their_own() {
    let (_, breaker) = circuit(brittle());
    breaker.force_open();
    let layer = CircuitBreakerLayer::from(breaker).skip(is_even);
    let layer = layer.skip(|request: &u32| *request > 100);
    let mut service = layer.layer(Strict::new(Echo).0);
    for (request, passes) in [(2, true), (101, true), (1, false)] {
        assert_eq!(
            now(call(&mut service, request)).is_ok(),
            passes,
            "{request}"
        );
    }
}

#[test]
fn a_function_that_panics_takes_nothing() {
    let (_, breaker) = circuit(brittle());
    let layer = CircuitBreakerLayer::from(breaker.clone());
    let layer = layer.skip(|request: &u32| {
        assert!(*request > 0, "a panic of the function's");
        false
    });
    let (strict, counts) = Strict::new(Echo);
    let mut service = layer.layer(strict);
    panics(|| now(call(&mut service, 0)));
    assert_eq!(now(service.call(1)), Ok(1), "the readiness is there still");
    assert_eq!((counts.polls(), counts.calls()), (1, 1));
    assert_eq!(breaker.state(), CircuitState::Closed);
}
