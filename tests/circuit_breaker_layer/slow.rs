//! Elapsed time, slow calls and calls that are dropped.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use tower_sluice::circuit_breaker::{
    CallEnd, Cancel, CircuitBreaker, CircuitBreakerLayer, CircuitEvent, CircuitEventKind,
    CircuitOpen, CircuitPolicy, CircuitState,
};

pub const THREE_SECONDS: Duration = Duration::from_secs(3);

pub type Records = Arc<Mutex<Vec<(CallEnd, bool, Duration)>>>;

/// A breaker on paused time, and a record of each call that completed: end, slow, elapsed.
pub fn recorded(policy: CircuitPolicy) -> (CircuitBreaker, Records) {
    let records = Records::default();
    let heard = records.clone();
    let breaker = CircuitBreaker::builder("recorded", policy)
        .on_event(move |event: &CircuitEvent| {
            if let CircuitEventKind::Completed {
                end, slow, elapsed, ..
            } = event.kind
            {
                heard.lock().push((end, slow, elapsed));
            }
        })
        .build();
    (breaker, records)
}

fn half_slow(cancel: Cancel) -> CircuitPolicy {
    CircuitPolicy::builder()
        .slow_threshold(Duration::from_secs(2))
        .slow_rate(0.5)
        .min_calls(10)
        .window(Duration::from_secs(600))
        .cancel(cancel)
        .build()
        .unwrap()
}

/// Twenty calls to a service that hangs, each given up after three seconds; how many were refused.
async fn twenty_hanging_calls(breaker: &CircuitBreaker) -> usize {
    let service = ServiceBuilder::new()
        .timeout(THREE_SECONDS)
        .layer(CircuitBreakerLayer::from(breaker.clone()).flatten_error())
        .service(service_fn(|()| {
            std::future::pending::<Result<(), BoxError>>()
        }));
    let mut refused = 0;
    for _ in 0..20 {
        let error = service.clone().oneshot(()).await.unwrap_err();
        refused += usize::from(error.is::<CircuitOpen>());
    }
    refused
}

#[tokio::test(start_paused = true)]
async fn h09_hanging_calls_that_are_given_up_outside_count_as_slow() {
    let (breaker, records) = recorded(half_slow(Cancel::SlowIfOverdue));
    assert_eq!(
        twenty_hanging_calls(&breaker).await,
        10,
        "open after the tenth"
    );
    let records = records.lock();
    assert_eq!(records.len(), 10);
    assert!(
        records
            .iter()
            .all(|record| *record == (CallEnd::Cancelled, true, THREE_SECONDS)),
        "each dropped future is recorded with its elapsed time: {records:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn h09_with_the_opposite_setting_they_count_for_nothing() {
    let (breaker, records) = recorded(half_slow(Cancel::Ignore));
    assert_eq!(twenty_hanging_calls(&breaker).await, 0);
    assert_eq!(breaker.snapshot().state, CircuitState::Closed);
    assert_eq!(records.lock().len(), 20, "recorded all the same");
}

#[tokio::test(start_paused = true)]
async fn h69_each_admitted_call_leaves_one_record_the_dropped_ones_too() {
    let policy = CircuitPolicy::builder().consecutive(1_000).build().unwrap();
    let (breaker, records) = recorded(policy);
    let service = ServiceBuilder::new()
        .timeout(Duration::from_millis(500))
        .layer(CircuitBreakerLayer::from(breaker).flatten_error())
        .service(service_fn(|hangs: bool| async move {
            let time = if hangs { u64::MAX >> 32 } else { 100 };
            tokio::time::sleep(Duration::from_millis(time)).await;
            Ok::<_, BoxError>(())
        }));
    for call in 0..40 {
        let hangs = call % 4 == 3;
        let mut response = std::pin::pin!(service.clone().oneshot(hangs));
        // Kept until after it has resolved: its drop must add nothing.
        assert_eq!(response.as_mut().await.is_err(), hangs);
    }
    let records = records.lock();
    assert_eq!(
        records.len(),
        40,
        "one entry for each admitted call, none twice"
    );
    let ended = |end| records.iter().filter(|record| record.0 == end).count();
    assert_eq!(
        (ended(CallEnd::Success), ended(CallEnd::Cancelled)),
        (30, 10)
    );
    let mut elapsed: Vec<_> = records.iter().map(|record| record.2).collect();
    elapsed.sort();
    assert_eq!(elapsed[20], Duration::from_millis(100), "the median");
    assert_eq!(elapsed[36], Duration::from_millis(500), "the tail shows");
}

/// A service that takes 100 ms.
pub async fn work(_: ()) -> Result<(), Infallible> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(())
}

pub fn slow_from_one_second() -> CircuitPolicy {
    let builder = CircuitPolicy::builder().slow_threshold(Duration::from_secs(1));
    builder.consecutive(100).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_time_runs_from_call_and_neither_from_readiness_nor_from_the_first_poll() {
    let (breaker, records) = recorded(slow_from_one_second());
    let mut service = ServiceBuilder::new()
        .layer(CircuitBreakerLayer::from(breaker))
        .service(service_fn(work));
    service.ready().await.unwrap();
    tokio::time::advance(Duration::from_secs(5)).await;
    let response = tower::Service::call(&mut service, ());
    tokio::time::advance(Duration::from_secs(2)).await;
    response.await.unwrap();
    let elapsed = Duration::from_millis(2_100);
    assert_eq!(*records.lock(), [(CallEnd::Success, true, elapsed)]);
}
