use std::future::{pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Poll;
use std::time::Duration;

use tower_sluice::Error;
use tower_sluice::circuit_breaker::{CallEnd, CircuitEventKind, CircuitPolicy, CircuitState};

use crate::kit::{SECOND, breaker, succeed, told_breaker, trip, trips_at};

fn caught(work: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "it panics");
}

/// svroonland/rezilience#482: a probe that panicked left the breaker wedged in half-open.
#[test]
fn h05_a_probe_that_panics_fails_and_gives_its_slot_back() {
    let (breaker, time) = breaker(trips_at(1).probes(1).open_growth(1.0));
    trip(&breaker);
    time.advance(SECOND);
    caught(|| {
        let _probe = breaker.try_acquire().expect("the probe");
        resume_unwind(Box::new("while it is held"));
    });
    assert_eq!(breaker.snapshot().retry_after, Some(SECOND), "open anew");

    time.advance(SECOND);
    let mut polled = tokio_test::task::spawn(breaker.call(poll_fn(|_| -> Poll<Result<(), ()>> {
        resume_unwind(Box::new("inside poll"))
    })));
    caught(|| drop(polled.poll()));
    assert_eq!(breaker.snapshot().retry_after, Some(SECOND), "open anew");
    drop(polled);
    assert_eq!(breaker.snapshot().trips, 3, "recorded once");

    time.advance(SECOND);
    succeed(&breaker);
    assert_eq!(breaker.state(), CircuitState::Closed);
}

/// joshrotenberg/tower-resilience#313: one panic under the lock turned every later call into a
/// panic. Here: the open-time function and a listener.
#[test]
fn h70_a_panic_of_the_open_time_function_reaches_the_caller_and_spoils_nothing() {
    let policy = CircuitPolicy::builder()
        .consecutive(1)
        .open_time(|_, _| resume_unwind(Box::new("the backoff")))
        .probes(1);
    let (breaker, time, told) = told_breaker(policy);
    caught(|| {
        breaker.try_acquire().expect("closed").failure();
    });
    let seen = breaker.snapshot();
    assert_eq!(seen.state, CircuitState::Open, "the trip stands");
    let fallback = Duration::from_secs(5);
    assert_eq!(seen.retry_after, Some(fallback), "with the documented time");
    let told = told.take();
    assert!(
        matches!(&told[..], [CircuitEventKind::Completed { .. }, CircuitEventKind::Transition { snapshot, .. }]
            if snapshot.retry_after == Some(fallback)),
        "and is told: {told:?}"
    );
    for _ in 0..100 {
        breaker.try_acquire().expect_err("refused, by no panic");
    }
    time.advance(fallback);
    succeed(&breaker);
    for _ in 0..100 {
        succeed(&breaker);
    }
}

#[test]
fn h70_a_panic_of_a_listener_changes_no_decision() {
    let time = tower_sluice::clock::Clock::manual();
    let policy = trips_at(2).probes(1).build().unwrap();
    let breaker = tower_sluice::circuit_breaker::CircuitBreaker::builder("tested", policy)
        .clock(&time)
        .on_event(|_| resume_unwind(Box::new("a listener")))
        .build();
    for _ in 0..100 {
        succeed(&breaker);
    }
    trip(&breaker);
    for _ in 0..100 {
        breaker.try_acquire().expect_err("open");
    }
    time.advance(SECOND);
    succeed(&breaker);
    let seen = breaker.snapshot();
    assert_eq!(seen.state, CircuitState::Closed);
    let totals = seen.totals.expect("kept");
    assert_eq!((totals.in_flight, totals.refused), (0, 100));
    assert_eq!(seen.listener_panics, 206, "each was caught and counted");
}

/// Its time is asked for when someone notices that a probe ran too long, whoever that is.
#[test]
fn a_panic_of_the_open_time_function_undoes_neither_the_end_of_a_call_nor_a_command() {
    let policy = CircuitPolicy::builder()
        .consecutive(1)
        .open_time(|trips, _| match trips {
            1 => SECOND,
            _ => resume_unwind(Box::new("the backoff")),
        })
        .probes(2)
        .probe_timeout(SECOND);
    for command in [false, true] {
        let (breaker, time, told) = told_breaker(policy.clone());
        trip(&breaker);
        time.advance(SECOND);
        let probes = [(); 2].map(|()| breaker.acquire_owned().expect("a probe"));
        time.advance(SECOND);
        told.take();
        let [first, second] = probes;
        if command {
            caught(|| breaker.force_close());
            assert_eq!(breaker.state(), CircuitState::Closed, "as commanded");
            first.success();
        } else {
            caught(|| {
                first.success();
            });
            assert_eq!(breaker.state(), CircuitState::Open, "the time was up");
        }
        second.success();
        let ended = told.take().into_iter();
        let ended = ended.filter(|event| matches!(event, CircuitEventKind::Discarded { .. }));
        assert_eq!(ended.count(), 2, "each came too late, and is told of");
        let totals = breaker.snapshot().totals.expect("kept");
        assert_eq!(totals.in_flight, 0, "both have ended");
    }
}

/// What a panic may hold at worst.
struct Spiteful;

impl Drop for Spiteful {
    fn drop(&mut self) {
        panic!("as it is dropped");
    }
}

#[test]
fn a_panic_of_the_open_time_function_does_not_end_a_process_that_unwinds_already() {
    let policy = CircuitPolicy::builder()
        .consecutive(1)
        .open_time(|_, _| resume_unwind(Box::new(Spiteful)));
    let (breaker, _) = breaker(policy);
    caught(|| {
        let _held = breaker.try_acquire().expect("closed");
        resume_unwind(Box::new("the call"));
    });
    let seen = breaker.snapshot();
    assert_eq!(seen.state, CircuitState::Open, "a panic is a failure");
    assert_eq!(seen.listener_panics, 1, "the second was caught and counted");
}

#[test]
fn call_records_what_its_future_comes_to() {
    let (breaker, time, told) = told_breaker(trips_at(1));
    let mut good = tokio_test::task::spawn(breaker.call(ready(Ok::<_, ()>(7))));
    assert_eq!(good.poll(), Poll::Ready(Ok(7)));
    let mut left = tokio_test::task::spawn(breaker.call(pending::<Result<(), ()>>()));
    assert!(left.poll().is_pending());
    time.advance(SECOND);
    drop(left);
    let mut bad = tokio_test::task::spawn(breaker.call(ready(Err::<(), _>("no"))));
    assert_eq!(bad.poll(), Poll::Ready(Err(Error::Inner("no"))));
    let mut refused = tokio_test::task::spawn(breaker.call(ready(Ok::<_, ()>(7))));
    assert!(matches!(
        refused.poll(),
        Poll::Ready(Err(Error::Refused(_)))
    ));
    drop(breaker.call(pending::<Result<(), ()>>())); // never polled, so never admitted
    let ends: Vec<_> = told
        .take()
        .into_iter()
        .filter_map(|event| match event {
            CircuitEventKind::Completed { end, elapsed, .. } => Some((end, elapsed)),
            _ => None,
        })
        .collect();
    let expected = [
        (CallEnd::Success, Duration::ZERO),
        (CallEnd::Cancelled, SECOND),
        (CallEnd::Failure, Duration::ZERO),
    ];
    assert_eq!(ends, expected);
}
