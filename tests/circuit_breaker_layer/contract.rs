//! The Tower contract, mode by mode, over an inner service that holds its callers to it.

use std::task::Poll;

use tower_layer::Layer;
use tower_service::Service;
use tower_sluice::Error;
use tower_sluice::circuit_breaker::error::CircuitOpenReason;
use tower_sluice::circuit_breaker::{
    CircuitBreakerLayer, CircuitBreakers, CircuitOpen, CircuitState,
};
use tower_sluice::clock::Clock;
use tower_test::assert_request_eq;

use crate::harness::{Act, Actor, OPEN, brittle, call, circuit, now, panics, poll_ready};
use crate::support::strict::{NotWell, Readiness, Strict};

/// Runs `$body` for the layer in each of its modes, `$layer` a fresh one on a closed circuit.
macro_rules! in_each_mode {
    (|$layer:ident| $body:block) => {{
        {
            let $layer = CircuitBreakerLayer::from(circuit(brittle()).1);
            $body
        }
        {
            let $layer = CircuitBreakerLayer::from(circuit(brittle()).1).pending_while_open();
            $body
        }
        {
            let breakers = CircuitBreakers::builder(brittle().build().unwrap())
                .clock(Clock::manual())
                .build()
                .unwrap();
            let $layer = CircuitBreakerLayer::keyed(breakers, |_: &Act| 0_u8);
            $body
        }
    }};
}

#[test]
fn h20_each_call_goes_to_the_instance_that_was_polled_ready() {
    in_each_mode!(|layer| {
        let (strict, counts) = Strict::new(Actor);
        let mut service = layer.layer(strict);
        for _ in 0..100 {
            assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
            let mut clone = service.clone();
            assert_eq!(now(call(&mut clone, Act::Answer)), Ok(Act::Answer));
        }
        assert_eq!(counts.calls(), 200);
        assert_eq!(
            counts.polls(),
            200,
            "one poll of readiness for each call, on its instance"
        );
    });
}

#[test]
fn polling_ready_twice_takes_nothing_twice() {
    in_each_mode!(|layer| {
        let (strict, counts) = Strict::new(Actor);
        let mut service = layer.layer(strict);
        assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
        assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
        assert_eq!(counts.calls(), 1);
    });
}

#[test]
fn a_clone_of_a_ready_instance_is_not_ready_itself() {
    in_each_mode!(|layer| {
        let (strict, counts) = Strict::new(Actor);
        let mut service = layer.layer(strict);
        assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
        let mut clone = service.clone();
        assert_eq!(now(call(&mut clone, Act::Answer)), Ok(Act::Answer));
        assert_eq!(now(service.call(Act::Answer)), Ok(Act::Answer));
        assert_eq!(
            counts.calls(),
            2,
            "both were called, each on its own readiness"
        );
    });
}

#[test]
fn an_inner_service_that_is_pending_and_then_ready_is_called_once() {
    in_each_mode!(|layer| {
        let (strict, counts) = Strict::new(Actor);
        let mut service = layer.layer(strict);
        counts.script([Readiness::Pending, Readiness::Ready]);
        let mut task = tokio_test::task::spawn(());
        let pending = task.enter(|cx, _| Service::<Act>::poll_ready(&mut service, cx));
        assert_eq!(
            pending,
            Poll::Pending,
            "readiness that stays pending passes through"
        );
        counts.wake();
        assert!(task.is_woken(), "the inner service wakes our caller");
        assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
    });
}

#[test]
fn a_ready_instance_that_is_dropped_leaves_nothing_taken() {
    in_each_mode!(|layer| {
        let (strict, counts) = Strict::new(Actor);
        let mut service = layer.layer(strict);
        for _ in 0..10 {
            let mut clone = service.clone();
            assert_eq!(poll_ready(&mut clone), Poll::Ready(Ok(())));
        }
        assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
        assert_eq!(counts.calls(), 1);
    });
}

#[test]
fn an_inner_error_reaches_the_caller_typed_and_the_next_call_is_refused() {
    in_each_mode!(|layer| {
        let (strict, counts) = Strict::new(Actor);
        let mut service = layer.layer(strict);
        let mut other = service.clone();
        assert_eq!(poll_ready(&mut other), Poll::Ready(Ok(())));
        assert_eq!(
            now(call(&mut service, Act::Fail)),
            Err(Error::Inner(NotWell))
        );
        match now(other.call(Act::Answer)) {
            Err(Error::Refused(refusal)) => assert_eq!(refusal.retry_after(), Some(OPEN)),
            answer => panic!("one failure opens this circuit, but the call gave {answer:?}"),
        }
        assert_eq!(
            counts.calls(),
            1,
            "a refused call does not reach the inner service"
        );
    });
}

#[test]
fn a_panic_in_call_or_in_poll_is_a_failure_and_goes_on_to_the_caller() {
    for act in [Act::PanicInCall, Act::PanicInPoll] {
        in_each_mode!(|layer| {
            let (strict, _) = Strict::new(Actor);
            let mut service = layer.layer(strict);
            let mut other = service.clone();
            assert_eq!(poll_ready(&mut other), Poll::Ready(Ok(())));
            panics(|| now(call(&mut service, act)));
            let answer = now(other.call(Act::Answer));
            assert!(
                matches!(answer, Err(Error::Refused(_))),
                "the panic opened the circuit, but a call gave {answer:?}"
            );
        });
    }
}

#[test]
fn a_refused_call_leaves_the_inner_readiness_with_its_instance() {
    let (time, breaker) = circuit(brittle());
    let (strict, counts) = Strict::new(Actor);
    let mut service = CircuitBreakerLayer::from(breaker.clone()).layer(strict);
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    breaker.try_acquire().unwrap().failure();
    assert!(
        now(service.call(Act::Answer)).is_err(),
        "it opened after it was ready"
    );
    time.advance(OPEN);
    assert_eq!(
        now(service.call(Act::Answer)),
        Ok(Act::Answer),
        "the readiness was kept"
    );
    assert_eq!((counts.polls(), counts.calls()), (1, 1));
}

#[test]
fn while_open_the_inner_service_is_not_touched() {
    let (time, breaker) = circuit(brittle());
    let (strict, counts) = Strict::new(Actor);
    let mut service = CircuitBreakerLayer::from(breaker.clone()).layer(strict);
    breaker.try_acquire().unwrap().failure();
    for _ in 0..3 {
        assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
        assert!(now(service.call(Act::Answer)).is_err());
    }
    assert_eq!(
        counts.polls(),
        0,
        "a dead connection must not delay a refusal"
    );
    time.advance(OPEN);
    assert_eq!(
        now(call(&mut service, Act::Answer)),
        Ok(Act::Answer),
        "the probe"
    );
    assert_eq!((counts.polls(), counts.calls()), (1, 1));
}

#[test]
fn a_due_probe_that_meets_an_unpolled_instance_is_refused_and_stays_due() {
    let (time, breaker) = circuit(brittle());
    let (strict, counts) = Strict::new(Actor);
    let mut service = CircuitBreakerLayer::from(breaker.clone()).layer(strict);
    breaker.try_acquire().unwrap().failure();
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    time.advance(OPEN);
    let refusal = match now(service.call(Act::Answer)) {
        Err(Error::Refused(refusal)) => refusal,
        answer => panic!("its inner service was never polled, but the call gave {answer:?}"),
    };
    assert_eq!(refusal.reason(), CircuitOpenReason::NotReady);
    assert_eq!(
        breaker.snapshot().state,
        CircuitState::Open,
        "no transition was made"
    );
    assert_eq!(
        now(call(&mut service, Act::Answer)),
        Ok(Act::Answer),
        "it stayed due"
    );
    assert_eq!(breaker.snapshot().state, CircuitState::Closed);
    assert_eq!(counts.calls(), 1);
}

#[tokio::test]
async fn under_tower_test_calls_and_errors_pass_and_a_refusal_is_not_seen_inside() {
    let (_, breaker) = circuit(brittle());
    let layer = CircuitBreakerLayer::from(breaker).flatten_error();
    let (mut service, mut inner) = tower_test::mock::spawn_layer::<&str, &str, _>(layer);
    inner.allow(0);
    tokio_test::assert_pending!(service.poll_ready());
    inner.allow(2);
    assert!(service.is_woken(), "the inner service wakes our caller");
    tokio_test::assert_ready_ok!(service.poll_ready());
    let mut answered = tokio_test::task::spawn(service.call("one"));
    assert_request_eq!(inner, "one").send_response("fine");
    assert_eq!(tokio_test::assert_ready_ok!(answered.poll()), "fine");
    tokio_test::assert_ready_ok!(service.poll_ready());
    let mut failed = tokio_test::task::spawn(service.call("two"));
    tokio_test::assert_pending!(failed.poll());
    assert_request_eq!(inner, "two").send_error("down");
    assert!(failed.is_woken());
    let error = tokio_test::assert_ready_err!(failed.poll());
    assert!(!error.is::<CircuitOpen>(), "the inner service's own");
    tokio_test::assert_ready_ok!(
        service.poll_ready(),
        "open: ready though nothing is allowed"
    );
    let mut refused = tokio_test::task::spawn(service.call("three"));
    assert!(tokio_test::assert_ready_err!(refused.poll()).is::<CircuitOpen>());
    let mut next = tokio_test::task::spawn(inner.next_request());
    tokio_test::assert_pending!(next.poll(), "the refused call did not reach it");
}
