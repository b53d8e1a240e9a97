//! The breaker among other layers.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tower::retry::{Policy, RetryLayer};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tower_sluice::circuit_breaker::{CircuitBreakerLayer, CircuitOpen, CircuitState};
use tower_sluice::{Error, circuit_breaker::CircuitBreaker};

use crate::harness::{Act, Actor, OPEN, brittle, call, circuit, now};
use crate::support::strict::NotWell;

/// Tries up to eight times, and asks a refusal whether to go on.
#[derive(Clone)]
struct EightAttempts {
    left: usize,
    stop_at_refusals: bool,
}

impl<E> Policy<(), (), Error<CircuitOpen, E>> for EightAttempts {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut (),
        result: &mut Result<(), Error<CircuitOpen, E>>,
    ) -> Option<Ready<()>> {
        let error = result.as_ref().err()?;
        let stop = self.stop_at_refusals && error.refused().is_some();
        self.left = self.left.checked_sub(1)?;
        (!stop).then(|| ready(()))
    }

    fn clone_request(&mut self, (): &()) -> Option<()> {
        Some(())
    }
}

fn eight(stop_at_refusals: bool) -> RetryLayer<EightAttempts> {
    let left = 7;
    RetryLayer::new(EightAttempts {
        left,
        stop_at_refusals,
    })
}

fn failing() -> (
    Arc<AtomicUsize>,
    impl Service<(), Response = (), Error = NotWell, Future: Send> + Clone,
) {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let service = service_fn(move |()| {
        count.fetch_add(1, Ordering::SeqCst);
        ready(Err(NotWell))
    });
    (made, service)
}

#[tokio::test]
async fn h41_retry_outside_stops_at_the_refusal() {
    for stop_at_refusals in [true, false] {
        let (_, breaker) = circuit(brittle().consecutive(5));
        let (made, inner) = failing();
        let stack = ServiceBuilder::new()
            .layer(eight(stop_at_refusals))
            .layer(CircuitBreakerLayer::from(breaker))
            .service(inner);
        let error = stack.oneshot(()).await.unwrap_err();
        assert_eq!(
            made.load(Ordering::SeqCst),
            5,
            "five attempts are made, the sixth is refused"
        );
        let refusal = error.refused().expect("the error is the refusal");
        assert_eq!(
            refusal.retry_after(),
            Some(OPEN),
            "it says how long not to try"
        );
    }
}

#[tokio::test]
async fn h41_retry_inside_counts_as_one_call() {
    let (_, breaker) = circuit(brittle().consecutive(5));
    let (made, inner) = failing();
    let inner = service_fn(move |()| {
        let inner = inner.clone();
        async move {
            inner
                .oneshot(())
                .await
                .map_err(Error::<CircuitOpen, _>::Inner)
        }
    });
    let stack = ServiceBuilder::new()
        .layer(CircuitBreakerLayer::from(breaker.clone()))
        .layer(eight(true))
        .service(inner);
    assert!(stack.oneshot(()).await.is_err());
    assert_eq!(made.load(Ordering::SeqCst), 8);
    assert_eq!(
        breaker.snapshot().consecutive,
        1,
        "eight attempts, one failure"
    );
}

#[test]
fn h45_two_breakers_in_a_row_recover_together() {
    let (time, outer) = circuit(brittle());
    let longer = brittle()
        .open_for(OPEN + Duration::from_secs(3))
        .build()
        .unwrap();
    let inner = CircuitBreaker::builder("inner", longer)
        .clock(&time)
        .build();
    let mut stack = ServiceBuilder::new()
        .layer(CircuitBreakerLayer::from(outer.clone()))
        .layer(CircuitBreakerLayer::from(inner.clone()))
        .service(Actor);
    assert!(
        now(call(&mut stack, Act::Fail)).is_err(),
        "one failure opens both"
    );
    time.advance(OPEN);
    let refused = now(call(&mut stack, Act::Answer));
    assert!(
        matches!(refused, Err(Error::Inner(Error::Refused(_)))),
        "the inner is still open"
    );
    assert_eq!(
        outer.snapshot().probes_in_flight,
        0,
        "the outer's probe has ended"
    );
    time.advance(OPEN);
    assert_eq!(
        now(call(&mut stack, Act::Answer)),
        Ok(Act::Answer),
        "a probe of both"
    );
    assert_eq!(outer.snapshot().state, CircuitState::Closed);
    assert_eq!(inner.snapshot().state, CircuitState::Closed);
}
