//! The breaker and the limiter in one stack.

use std::time::Duration;

use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use tower_sluice::Error;
use tower_sluice::circuit_breaker::{CallEnd, CircuitBreakerLayer, CircuitState};
use tower_sluice::rate_limit::{Quota, RateLimitLayer, RateLimiter};

use crate::harness::{Act, Actor, OPEN, brittle, call, circuit, now};
use crate::slow::{THREE_SECONDS, recorded, slow_from_one_second, work};

/// A limiter under which the second of two calls waits three seconds.
fn one_in_three_seconds() -> RateLimitLayer {
    RateLimitLayer::new(Quota::with_period(1, THREE_SECONDS))
}

#[tokio::test(start_paused = true)]
async fn h56_a_wait_outside_of_the_breaker_is_not_the_calls_time() {
    let (breaker, records) = recorded(slow_from_one_second());
    let mut service = ServiceBuilder::new()
        .layer(
            one_in_three_seconds()
                .wait(Duration::from_secs(10))
                .flatten_error(),
        )
        .layer(CircuitBreakerLayer::from(breaker).flatten_error())
        .service(service_fn(|()| async {
            work(()).await.map_err(BoxError::from)
        }));
    for _ in 0..2 {
        service.ready().await.unwrap();
        tower::Service::call(&mut service, ()).await.unwrap();
    }
    let expected = (CallEnd::Success, false, Duration::from_millis(100));
    assert_eq!(
        *records.lock(),
        [expected, expected],
        "the three seconds are not in it"
    );
}

#[tokio::test(start_paused = true)]
async fn h56_a_wait_inside_of_the_breaker_is_the_calls_time() {
    let (breaker, records) = recorded(slow_from_one_second());
    let mut service = ServiceBuilder::new()
        .layer(CircuitBreakerLayer::from(breaker).flatten_error())
        .layer(
            one_in_three_seconds()
                .wait(Duration::from_secs(10))
                .flatten_error(),
        )
        .service(service_fn(|()| async {
            work(()).await.map_err(BoxError::from)
        }));
    for _ in 0..2 {
        service.ready().await.unwrap();
        tower::Service::call(&mut service, ()).await.unwrap();
    }
    let first = (CallEnd::Success, false, Duration::from_millis(100));
    let second = (CallEnd::Success, true, Duration::from_millis(3_000));
    assert_eq!(
        *records.lock(),
        [first, second],
        "to the breaker the dependency was slow"
    );
}

#[test]
fn h45_a_refusal_deeper_in_the_stack_is_ignored_where_that_is_asked_for() {
    let (time, breaker) = circuit(brittle());
    let quota = Quota::with_period(1, OPEN);
    let limiter = RateLimiter::builder(quota).clock(&time).build().unwrap();
    let layer = CircuitBreakerLayer::from(breaker.clone());
    let limit = RateLimitLayer::from(limiter.clone());
    let mut typed = ServiceBuilder::new()
        .layer(layer.clone().ignore_refusals())
        .layer(limit.clone())
        .service(Actor);
    let mut boxed = ServiceBuilder::new()
        .layer(layer.clone().ignore_refusals().flatten_error())
        .layer(limit.clone().flatten_error())
        .service(service_fn(|act: Act| async move { Ok::<_, BoxError>(act) }));
    limiter.check().expect("the one token goes elsewhere");
    assert!(now(call(&mut typed, Act::Answer)).is_err());
    assert!(now(call(&mut boxed, Act::Answer)).is_err());
    assert_eq!(
        breaker.state(),
        CircuitState::Closed,
        "they say nothing of the dependency"
    );

    breaker.try_acquire().unwrap().failure();
    time.advance(OPEN);
    limiter.check().expect("a new token, which goes elsewhere");
    assert!(
        now(call(&mut typed, Act::Answer)).is_err(),
        "the probe is refused inside"
    );
    assert_eq!(
        breaker.snapshot().probes_in_flight,
        0,
        "and gives its place back"
    );
    time.advance(OPEN);
    assert_eq!(
        now(call(&mut typed, Act::Answer)),
        Ok(Act::Answer),
        "another probe, at once"
    );
    assert_eq!(breaker.state(), CircuitState::Closed);

    time.advance(OPEN);
    assert!(now(call(&mut typed, Act::Fail)).is_err());
    assert_eq!(
        breaker.state(),
        CircuitState::Open,
        "other errors are failures still"
    );
}

#[test]
fn h45_a_probe_that_a_limiter_refuses_inside_ends_and_a_later_one_recovers() {
    let (time, breaker) = circuit(brittle());
    let quota = Quota::with_period(1, 3 * OPEN);
    let limiter = RateLimiter::builder(quota).clock(&time).build().unwrap();
    let mut stack = ServiceBuilder::new()
        .layer(CircuitBreakerLayer::from(breaker.clone()))
        .layer(RateLimitLayer::from(limiter.clone()))
        .service(Actor);
    limiter.check().expect("the one token goes elsewhere");
    breaker.try_acquire().unwrap().failure();
    for _ in 0..2 {
        time.advance(OPEN);
        let refused = now(call(&mut stack, Act::Answer));
        assert!(
            matches!(refused, Err(Error::Inner(Error::Refused(_)))),
            "by the limiter"
        );
        let snapshot = breaker.snapshot();
        assert_eq!(snapshot.probes_in_flight, 0, "the probe has ended");
        assert_eq!(
            snapshot.state,
            CircuitState::Open,
            "an error is a failure by default"
        );
    }
    time.advance(OPEN);
    assert_eq!(
        now(call(&mut stack, Act::Answer)),
        Ok(Act::Answer),
        "the limiter admits again"
    );
    assert_eq!(
        breaker.snapshot().state,
        CircuitState::Closed,
        "within one open time"
    );
}
