//! Back-pressure mode under tower's balancer.

use std::convert::Infallible;

use tower::balance::p2c::Balance;
use tower::discover::ServiceList;
use tower::load::Constant;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};
use tower_sluice::circuit_breaker::{CircuitBreaker, CircuitBreakerLayer, CircuitState};

use crate::harness::{OPEN, brittle, circuit};

#[tokio::test]
async fn a_balancer_sends_calls_elsewhere_while_one_circuit_is_open() {
    let (time, breaker) = circuit(brittle());
    let guarded = |name: &'static str, breaker: CircuitBreaker| {
        let layer = CircuitBreakerLayer::from(breaker).pending_while_open();
        let answer = service_fn(move |()| std::future::ready(Ok::<_, Infallible>(name)));
        Constant::new(layer.layer(answer).map_err(BoxError::from), 0_u32)
    };
    let (_, healthy) = circuit(brittle());
    let endpoints = [
        guarded("first", breaker.clone()),
        guarded("second", healthy),
    ];
    let mut balancer = Balance::new(ServiceList::new(endpoints));
    breaker.try_acquire().unwrap().failure();
    for _ in 0..50 {
        let answer = balancer.ready().await.unwrap().call(()).await.unwrap();
        assert_eq!(answer, "second", "the first is not ready");
    }
    time.advance(OPEN);
    let mut firsts = 0;
    for _ in 0..200 {
        let answer = balancer.ready().await.unwrap().call(()).await.unwrap();
        firsts += usize::from(answer == "first");
    }
    assert!(
        firsts > 0,
        "woken by its open time, with nobody polling for it"
    );
    assert_eq!(breaker.state(), CircuitState::Closed);
}
