//! The breaker and the limiter in one stack.

use tower::ServiceBuilder;
use tower_sluice::Error;
use tower_sluice::circuit_breaker::{CircuitBreakerLayer, CircuitState};
use tower_sluice::rate_limit::{Quota, RateLimitLayer, RateLimiter};

use crate::harness::{Act, Actor, OPEN, brittle, call, circuit, now};

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
