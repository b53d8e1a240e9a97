//! Errors of the inner service's readiness.

use std::task::Poll;

use tower_layer::Layer;
use tower_sluice::circuit_breaker::{
    CircuitBreakerLayer, CircuitBreakers, CircuitPolicy, CircuitState,
};
use tower_sluice::clock::Clock;
use tower_sluice::{Error, circuit_breaker::CircuitOpen};

use crate::harness::{Act, Actor, OPEN, brittle, call, circuit, now, poll_ready};
use crate::support::strict::{NotWell, Readiness, Strict};

type Ready = Poll<Result<(), Error<CircuitOpen, NotWell>>>;

const NOT_WELL: Ready = Poll::Ready(Err(Error::Inner(NotWell)));

#[test]
fn h64_a_readiness_error_while_closed_is_a_failure() {
    let (_, breaker) = circuit(brittle().consecutive(2));
    let (strict, counts) = Strict::new(Actor);
    let mut service = CircuitBreakerLayer::from(breaker.clone()).layer(strict);
    counts.script([
        Readiness::Error,
        Readiness::Pending,
        Readiness::Ready,
        Readiness::Error,
    ]);
    assert_eq!(
        poll_ready(&mut service),
        NOT_WELL,
        "it reaches the caller typed"
    );
    assert_eq!(breaker.snapshot().consecutive, 1, "and counts");
    assert_eq!(poll_ready(&mut service), Poll::Pending);
    drop(service.clone());
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    assert_eq!(poll_ready(&mut service), NOT_WELL);
    assert_eq!(
        breaker.snapshot().state,
        CircuitState::Open,
        "two in a row open it"
    );
}

#[test]
fn h64_a_readiness_error_while_a_probe_is_due_reopens_and_takes_no_place() {
    let (time, breaker) = circuit(brittle());
    let (strict, counts) = Strict::new(Actor);
    let mut service = CircuitBreakerLayer::from(breaker.clone()).layer(strict);
    breaker.try_acquire().unwrap().failure();
    time.advance(OPEN);
    counts.script([Readiness::Error]);
    assert_eq!(poll_ready(&mut service), NOT_WELL);
    let snapshot = breaker.snapshot();
    assert_eq!(
        snapshot.state,
        CircuitState::Open,
        "as after a failed probe"
    );
    assert_eq!(snapshot.retry_after, Some(OPEN), "with a fresh open time");
    assert_eq!(snapshot.probes_in_flight, 0);
    time.advance(OPEN);
    assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
}

/// Or every call after the first error would meet the dead service, and none be refused.
#[test]
fn h64_a_readiness_error_while_a_probe_is_due_by_count_begins_the_count_anew() {
    let policy = CircuitPolicy::builder().consecutive(1).recover_every(3);
    let (_, breaker) = circuit(policy.probes(1));
    let (strict, counts) = Strict::new(Actor);
    let mut service = CircuitBreakerLayer::from(breaker.clone()).layer(strict);
    breaker.try_acquire().unwrap().failure();
    counts.script([Readiness::Error, Readiness::Error]);
    for _ in 0..2 {
        for _ in 0..2 {
            assert!(now(call(&mut service, Act::Answer)).is_err(), "refused");
        }
        assert_eq!(poll_ready(&mut service), NOT_WELL, "the third is due");
    }
    for _ in 0..2 {
        assert!(now(call(&mut service, Act::Answer)).is_err(), "refused");
    }
    assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
}

#[test]
fn h64_a_readiness_error_while_half_open_reopens() {
    let (time, breaker) = circuit(brittle().probes(2));
    let (strict, counts) = Strict::new(Actor);
    let mut service = CircuitBreakerLayer::from(breaker.clone()).layer(strict);
    breaker.try_acquire().unwrap().failure();
    time.advance(OPEN);
    let _probe = call(&mut service, Act::Hang);
    counts.script([Readiness::Error]);
    assert_eq!(poll_ready(&mut service), NOT_WELL);
    assert_eq!(breaker.snapshot().state, CircuitState::Open);
    time.advance(OPEN);
    assert_eq!(
        now(call(&mut service, Act::Answer)),
        Ok(Act::Answer),
        "no place stayed taken"
    );
}

#[test]
fn h64_a_readiness_error_in_back_pressure_mode_gives_the_place_back() {
    let (time, breaker) = circuit(brittle());
    let (strict, counts) = Strict::new(Actor);
    let layer = CircuitBreakerLayer::from(breaker.clone()).pending_while_open();
    let mut service = layer.layer(strict);
    breaker.try_acquire().unwrap().failure();
    assert_eq!(poll_ready(&mut service), Poll::Pending);
    time.advance(OPEN);
    counts.script([Readiness::Ready, Readiness::Error]);
    assert_eq!(
        poll_ready(&mut service),
        Poll::Ready(Ok(())),
        "the place is reserved"
    );
    assert_eq!(breaker.snapshot().probes_in_flight, 1);
    assert_eq!(poll_ready(&mut service), NOT_WELL);
    let snapshot = breaker.snapshot();
    assert_eq!(snapshot.probes_in_flight, 0);
    assert_eq!(snapshot.state, CircuitState::Open);
    time.advance(OPEN);
    assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
}

#[test]
fn h64_a_readiness_error_under_a_keyed_layer_is_charged_to_no_key() {
    let breakers = CircuitBreakers::builder(brittle().build().unwrap())
        .clock(Clock::manual())
        .build()
        .unwrap();
    let (strict, counts) = Strict::new(Actor);
    let mut service = CircuitBreakerLayer::keyed(&breakers, |_: &Act| 7).layer(strict);
    assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
    counts.script([Readiness::Error, Readiness::Ready]);
    assert_eq!(
        poll_ready(&mut service),
        NOT_WELL,
        "it reaches the caller typed"
    );
    let known = breakers.get(&7).expect("the key was used");
    assert_eq!(known.snapshot().state, CircuitState::Closed);
    assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
}
