//! What is set on a layer.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tower::{Layer, Service};
use tower_sluice::circuit_breaker::{
    CircuitBreakerLayer, CircuitBreakers, CircuitEvent, CircuitEventKind, CircuitPolicy,
    CircuitState, Transition,
};
use tower_sluice::clock::Clock;

use crate::harness::{Act, Actor, OPEN, brittle, call, circuit, now, panics};
use crate::support::alloc::allocations;

fn transition(event: &CircuitEvent) -> Option<(CircuitState, CircuitState)> {
    match &event.kind {
        CircuitEventKind::Transition {
            transition: Transition { from, to, .. },
            ..
        } => Some((*from, *to)),
        _ => None,
    }
}

#[test]
fn listeners_and_a_clock_may_be_set_on_the_layer_in_any_order() {
    use CircuitState::{Closed, HalfOpen, Open};
    let time = Clock::manual();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (first, second) = (heard.clone(), heard.clone());
    let layer = CircuitBreakerLayer::new("test", brittle().build().unwrap())
        .on_event(move |event: &CircuitEvent| {
            first
                .lock()
                .extend(transition(event).map(|change| (1, change)));
        })
        .clock(&time)
        .on_event(move |event: &CircuitEvent| {
            second
                .lock()
                .extend(transition(event).map(|change| (2, change)));
        })
        .counters();
    let mut service = layer.layer(Actor);
    let _ = now(call(&mut service, Act::Fail));
    time.advance(OPEN);
    let _ = now(call(&mut service, Act::Answer));
    let chain = [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed)];
    let expected: Vec<_> = chain
        .iter()
        .flat_map(|change| [(1, *change), (2, *change)])
        .collect();
    assert_eq!(*heard.lock(), expected, "each hears of each, in order");
    assert_eq!(
        layer.breaker().snapshot().totals.expect("counted").admitted,
        2
    );
}

#[test]
fn a_listener_on_a_keyed_layer_hears_the_key() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = heard.clone();
    let layer = CircuitBreakerLayer::keyed(brittle().build().unwrap(), |act: &Act| *act as u8)
        .named("hosts")
        .clock(Clock::manual())
        .on_event(move |key: &u8, event: &CircuitEvent| {
            listener
                .lock()
                .extend(transition(event).map(|change| (*key, change)));
        });
    let mut service = layer.layer(Actor);
    let _ = now(call(&mut service, Act::Answer));
    let _ = now(call(&mut service, Act::Fail));
    let opened = (CircuitState::Closed, CircuitState::Open);
    assert_eq!(*heard.lock(), [(Act::Fail as u8, opened)]);
    assert_eq!(layer.breakers().len(), 2);
    let refused = now(call(&mut service, Act::Fail)).unwrap_err();
    assert_eq!(refused.refused().expect("open").name(), "hosts");
}

#[test]
fn what_would_be_lost_on_a_breaker_in_use_is_a_panic_that_says_so() {
    let (_, breaker) = circuit(brittle());
    panics(|| CircuitBreakerLayer::from(breaker.clone()).clock(Clock::manual()));
    let layer = CircuitBreakerLayer::new("test", brittle().build().unwrap());
    layer.breaker().force_open();
    panics(|| layer.on_event(|_: &CircuitEvent| {}));
    let breakers = CircuitBreakers::<u8>::new(brittle().build().unwrap());
    panics(|| CircuitBreakerLayer::keyed(&breakers, |_: &Act| 0_u8).clock(Clock::manual()));
}

/// The allocations of one call that is ready at once.
fn allocations_of<S: Service<Act>>(service: &mut S, act: Act) -> u64 {
    let mut cx = Context::from_waker(Waker::noop());
    let (count, _) = allocations(|| {
        assert!(service.poll_ready(&mut cx).is_ready());
        let mut response = std::pin::pin!(service.call(act));
        assert!(std::future::Future::poll(response.as_mut(), &mut cx).is_ready());
    });
    count
}

#[test]
fn a_call_through_the_layer_allocates_nothing_closed_or_open() {
    let policies = [
        brittle(),
        brittle().slow_threshold(Duration::from_secs(1)),
        CircuitPolicy::builder(),
        CircuitPolicy::builder().window_calls(100),
    ];
    for policy in policies {
        let (_, breaker) = circuit(policy);
        let layer = CircuitBreakerLayer::from(breaker.clone());
        let mut service = layer.layer(Actor);
        assert_eq!(
            allocations_of(&mut service, Act::Answer),
            0,
            "closed, {}",
            breaker.policy()
        );
        let mut waiting = layer.clone().pending_while_open().layer(Actor);
        assert_eq!(
            allocations_of(&mut waiting, Act::Answer),
            0,
            "closed, in back-pressure mode"
        );
        breaker.force_open();
        assert_eq!(allocations_of(&mut service, Act::Answer), 0, "forced open");
        breaker.release();
        for _ in 0..100 {
            let _ = breaker.try_acquire().map(|permit| permit.failure());
        }
        assert_eq!(breaker.state(), CircuitState::Open);
        assert_eq!(allocations_of(&mut service, Act::Answer), 0, "open");
    }
}
