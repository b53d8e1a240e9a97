//! The old circuit-breaker component (`maxTime`, `maxCnt`, `tryRecoverCnt`), replayed.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tower::{Layer, Service};
use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitBreakerLayer, CircuitPolicy, CircuitState,
};
use tower_sluice::clock::{Clock, ManualClock, Nanos};

use crate::harness::{call, now};

const CALLERS: u64 = 30;
const MAX_TIME: Duration = Duration::from_millis(500);
const MAX_CNT: u32 = 100;
const TRY_RECOVER_CNT: u64 = 200;

fn component(time: &ManualClock) -> CircuitBreaker {
    let policy = CircuitPolicy::builder()
        .slow_threshold(MAX_TIME)
        .consecutive(MAX_CNT)
        .recover_every(TRY_RECOVER_CNT)
        .probes(1)
        .build()
        .unwrap();
    CircuitBreaker::builder("old", policy).clock(time).build()
}

/// Takes as long as each request says.
#[derive(Clone)]
struct Backend(ManualClock);

struct Working {
    time: ManualClock,
    until: Nanos,
}

impl Service<Duration> for Backend {
    type Response = ();
    type Error = Infallible;
    type Future = Working;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, takes: Duration) -> Working {
        let time = self.0.clone();
        let until = time.now().plus(takes);
        Working { time, until }
    }
}

impl Future for Working {
    type Output = Result<(), Infallible>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if self.time.now() < self.until {
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

/// Thirty callers at the start of one second, each made call taking `base` and up to 99 ms more.
/// Gives the arrivals that were made, by their number since the start, the first being 1.
fn second<S>(service: &S, time: &ManualClock, number: u64, base: Duration) -> Vec<u64>
where
    S: Service<Duration, Error: std::fmt::Debug> + Clone,
{
    let start = Nanos::from(Duration::from_secs(number));
    time.set(start);
    let mut in_flight = Vec::new();
    let mut made = Vec::new();
    for caller in 0..CALLERS {
        let takes = base + Duration::from_millis((caller * 37 + number * 11) % 100);
        let mut response = Box::pin(call(&mut service.clone(), takes));
        let first = tokio_test::task::spawn(()).enter(|cx, _| response.as_mut().poll(cx));
        if first.is_pending() {
            made.push(number * CALLERS + caller + 1);
            in_flight.push((start.plus(takes), response));
        }
    }
    in_flight.sort_by_key(|(ends, _)| *ends);
    for (ends, response) in in_flight {
        time.set(ends);
        now(response).expect("the backend is slow, but answers");
    }
    made
}

#[test]
fn the_old_component_opens_at_a_hundred_slow_calls_and_makes_every_two_hundredth() {
    const FAST: Duration = Duration::from_millis(300);
    const SLOW: Duration = Duration::from_millis(500);
    let time = Clock::manual();
    let breaker = component(&time);
    let service = CircuitBreakerLayer::from(breaker.clone()).layer(Backend(time.clone()));
    let state = || breaker.snapshot().state;

    for number in 0..10 {
        let made = second(&service, &time, number, FAST);
        assert_eq!(
            made.len() as u64,
            CALLERS,
            "all are made while they are fast"
        );
    }
    for number in 10..14 {
        let made = second(&service, &time, number, SLOW);
        assert_eq!(
            made.len() as u64,
            CALLERS,
            "second {number}: not yet a hundred slow"
        );
        let expected = if number < 13 {
            CircuitState::Closed
        } else {
            CircuitState::Open
        };
        assert_eq!(
            state(),
            expected,
            "30 + 30 + 30 slow calls, and ten of the next thirty"
        );
    }

    // All thirty of second 13 had arrived when the hundredth slow call was recorded, so the first
    // arrival of an open circuit is the first of second 14.
    let before = 14 * CALLERS;
    let mut arrived = Vec::new();
    for number in 14..30 {
        arrived.extend(second(&service, &time, number, SLOW));
        assert_eq!(
            state(),
            CircuitState::Open,
            "second {number}: a slow probe reopens"
        );
    }
    let arrivals: Vec<_> = arrived.iter().map(|number| number - before).collect();
    assert_eq!(
        arrivals,
        [200, 400],
        "every two-hundredth arrival is made, and no other"
    );

    let mut closed_at = None;
    for number in 30..40 {
        let made = second(&service, &time, number, FAST);
        match closed_at {
            None => arrived.extend(made),
            Some(_) => assert_eq!(made.len() as u64, CALLERS, "closed: all are made"),
        }
        if state() == CircuitState::Closed {
            closed_at.get_or_insert(number);
        }
    }
    let arrivals: Vec<_> = arrived.iter().map(|number| number - before).collect();
    assert_eq!(
        arrivals,
        [200, 400, 600],
        "the next probe is fast and closes the circuit"
    );
    assert_eq!(closed_at, Some(14 + 600 / CALLERS - 1));
}

#[test]
fn whatever_the_threads_do_one_probe_is_in_flight() {
    let time = Clock::manual();
    let breaker = component(&time);
    let in_flight = Arc::new(AtomicUsize::new(0));
    let overlapped = Arc::new(AtomicBool::new(false));
    let (inside, seen) = (in_flight.clone(), overlapped.clone());
    let made = Arc::new(AtomicU64::new(0));
    let count = made.clone();
    let clock = time.clone();
    let backend = tower::service_fn(move |()| {
        seen.fetch_or(inside.fetch_add(1, Ordering::SeqCst) > 0, Ordering::SeqCst);
        count.fetch_add(1, Ordering::SeqCst);
        // Slow: the probe fails and the circuit stays open.
        clock.advance(MAX_TIME);
        std::thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
        std::future::ready(Ok::<_, Infallible>(()))
    });
    for _ in 0..MAX_CNT {
        breaker.try_acquire().unwrap().failure();
    }
    let service = CircuitBreakerLayer::from(breaker.clone()).layer(backend);
    const EACH: u64 = 5_000;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let mut service = service.clone();
            scope.spawn(move || {
                for _ in 0..EACH {
                    let _ = now(call(&mut service, ()));
                }
            });
        }
    });
    assert!(
        !overlapped.load(Ordering::SeqCst),
        "two probes were in flight at once"
    );
    let made = made.load(Ordering::SeqCst);
    assert!(
        (1..=8 * EACH / TRY_RECOVER_CNT).contains(&made),
        "at most one of {TRY_RECOVER_CNT} arrivals is made, but {made} were"
    );
    assert_eq!(breaker.snapshot().state, CircuitState::Open);
}
