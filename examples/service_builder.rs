//! Both layers among tower's own, in the right order, and why.
//!
//! `cargo run --example service_builder`
//!
//! Each layer is tried once: the service answers, hangs, fails, and is asked too often. Time is
//! tokio's, paused, so the run takes none.

use std::future::{Ready, pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tower::retry::Policy;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};
use tower_sluice::circuit_breaker::CircuitState;
use tower_sluice::{
    CircuitBreaker, CircuitBreakerLayer, CircuitOpen, CircuitPolicy, Quota, RateLimitLayer,
    RateLimited,
};

/// What the service is asked to do.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    Answer,
    FailOnce,
    Hang,
}

/// Tries again up to twice, unless the circuit is open: it said how long to wait, and another
/// attempt would only be refused again.
#[derive(Clone)]
struct Again(u32);

impl Policy<Ask, &'static str, BoxError> for Again {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut Ask,
        result: &mut Result<&'static str, BoxError>,
    ) -> Option<Ready<()>> {
        let failed = result.as_ref().err()?;
        if failed.is::<CircuitOpen>() || self.0 == 0 {
            return None;
        }
        self.0 -= 1;
        Some(ready(()))
    }

    fn clone_request(&mut self, ask: &Ask) -> Option<Ask> {
        Some(*ask)
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let policy = CircuitPolicy::builder()
        .consecutive(3)
        .open_for(Duration::from_secs(10))
        .open_jitter(0.0)
        .build()
        .expect("a valid policy");
    let breaker = CircuitBreaker::new("backend", policy);
    let attempts = Arc::new(AtomicU32::new(0));

    let counted = attempts.clone();
    let backend = move |ask: Ask| {
        let attempt = counted.fetch_add(1, Ordering::Relaxed);
        async move {
            match ask {
                Ask::Answer => Ok::<_, BoxError>("answered"),
                Ask::FailOnce if attempt.is_multiple_of(2) => Err("failed".into()),
                Ask::FailOnce => Ok("answered at the second attempt"),
                Ask::Hang => pending().await,
            }
        }
    };

    let mut service = ServiceBuilder::new()
        // A queue in front of all, so that callers need no instance of their own. Outside both
        // layers: a refused call leaves its readiness with its instance for the next call.
        .buffer(16)
        // At the limit below, refuse instead of queueing …
        .load_shed()
        // … and outside both layers too: inside, a refused call would keep its slot.
        .concurrency_limit(8)
        // A caller's call counts once, however often it is tried.
        .layer(RateLimitLayer::new(Quota::per_second(5)).flatten_error())
        .retry(Again(2))
        // Inside the retry: each attempt is judged, and an open circuit ends the attempts.
        .layer(CircuitBreakerLayer::from(breaker.clone()).flatten_error())
        // Inside the breaker: a call that hangs ends as a failure, with the time it took.
        .timeout(Duration::from_secs(1))
        .service_fn(backend);
    let mut ask = async |ask| service.ready().await?.call(ask).await;

    println!("{:?}", ask(Ask::Answer).await);
    assert_eq!(ask(Ask::Answer).await.expect("it is well"), "answered");

    println!("a failure is tried again:");
    let answer = ask(Ask::FailOnce).await;
    println!(
        "  {answer:?} after {} attempts in all",
        attempts.load(Ordering::Relaxed)
    );
    assert_eq!(
        answer.expect("the second attempt"),
        "answered at the second attempt"
    );

    println!("a hanging call is tried three times, which opens the circuit:");
    let timed_out = ask(Ask::Hang).await.expect_err("it hangs");
    println!("  {timed_out}; the circuit is {}", breaker.state());
    assert!(
        timed_out.is::<tower::timeout::error::Elapsed>(),
        "the timeout's own error"
    );
    assert_eq!(breaker.state(), CircuitState::Open);

    println!("the next call is refused at once and not tried again:");
    let before = attempts.load(Ordering::Relaxed);
    let refused = ask(Ask::Answer).await.expect_err("the circuit is open");
    let open = refused
        .downcast_ref::<CircuitOpen>()
        .expect("found through all the layers");
    println!("  {open}");
    assert_eq!(open.retry_after(), Some(Duration::from_secs(10)));
    assert_eq!(
        attempts.load(Ordering::Relaxed),
        before,
        "the service was left alone"
    );

    println!("asked six times in no time, the limit refuses the sixth:");
    tokio::time::advance(Duration::from_secs(10)).await;
    let mut limited = None;
    for _ in 0..6 {
        limited = ask(Ask::Answer).await.err();
    }
    let limited = limited.expect("five a second");
    let limited = limited
        .downcast_ref::<RateLimited>()
        .expect("found through all the layers");
    println!("  {limited}");
    assert!(
        limited
            .retry_after()
            .is_some_and(|wait| wait <= Duration::from_millis(200))
    );
    assert_eq!(
        breaker.state(),
        CircuitState::Closed,
        "the probes in between were well"
    );
}
