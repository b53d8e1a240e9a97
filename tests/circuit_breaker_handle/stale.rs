use std::time::Duration;

use tower_sluice::circuit_breaker::{
    CallEnd, CircuitEventKind, CircuitPolicy, CircuitState, Recorded,
};

use crate::kit::{SECOND, told_breaker, trip, trips_at};

/// How calls ended, and after what time: discarded ones marked.
fn ends(events: Vec<CircuitEventKind>) -> Vec<(CallEnd, Duration, bool)> {
    let ends = events.into_iter().filter_map(|event| match event {
        CircuitEventKind::Completed { end, elapsed, .. } => Some((end, elapsed, false)),
        CircuitEventKind::Discarded { end, elapsed, .. } => Some((end, elapsed, true)),
        _ => None,
    });
    ends.collect()
}

/// sony/gobreaker#122: a result handed in after a state change vanished with no sign.
#[test]
fn h06_a_result_that_is_too_late_changes_nothing_and_says_so() {
    let (breaker, time, told) = told_breaker(trips_at(1).probes(2));
    trip(&breaker);
    time.advance(SECOND);
    let late = breaker.try_acquire().expect("a probe");
    breaker.try_acquire().expect("another").failure();
    told.take();
    let before = breaker.snapshot();
    time.advance(SECOND);
    assert_eq!(late.success(), Recorded::Stale, "the caller is told");
    let events = told.take();
    assert_eq!(
        ends(events),
        [(CallEnd::Success, SECOND, true)],
        "and listeners"
    );
    let after = breaker.snapshot();
    assert_eq!((after.state, after.epoch), (before.state, before.epoch));
}

/// App-vNext/Polly#223: calls begun while closed came back while open or half-open.
#[test]
fn h38_calls_begun_while_closed_decide_nothing_later() {
    let (breaker, time, told) = told_breaker(trips_at(1).probes(2));
    let [first, second, third] = [(); 3].map(|()| breaker.try_acquire().expect("closed"));
    trip(&breaker);
    told.take();
    time.advance(SECOND / 2);
    assert_eq!(first.failure(), Recorded::Stale);
    let seen = breaker.snapshot();
    assert_eq!((seen.state, seen.trips), (CircuitState::Open, 1));
    assert_eq!(seen.retry_after, Some(SECOND / 2), "not extended");

    time.advance(SECOND / 2);
    let probe = breaker.try_acquire().expect("a probe");
    assert_eq!(second.success(), Recorded::Stale);
    assert_eq!(breaker.snapshot().probes_succeeded, 0, "no probe of ours");
    assert_eq!(third.failure(), Recorded::Stale);
    assert_eq!(breaker.state(), CircuitState::HalfOpen, "does not reopen");
    drop(probe);
    let expected = [
        (CallEnd::Failure, SECOND / 2, true),
        (CallEnd::Success, SECOND, true),
        (CallEnd::Failure, SECOND, true),
        (CallEnd::Cancelled, Duration::ZERO, false),
    ];
    assert_eq!(ends(told.take()), expected, "each time is still told");
}

/// matter-labs/zksync-os-server#1125: the slowest calls were missing from the time histogram.
#[test]
fn h69_each_admitted_call_has_one_record_of_its_time() {
    let policy = CircuitPolicy::builder().failure_rate(1.0);
    let (breaker, time, told) = told_breaker(policy);
    for call in 0..20 {
        let permit = breaker.acquire_owned().expect("closed");
        if call % 2 == 0 {
            time.advance(Duration::from_millis(100));
            permit.success();
        } else {
            time.advance(Duration::from_millis(500));
            drop(permit);
        }
    }
    let mut ends = ends(told.take());
    assert_eq!(ends.len(), 20, "one for each call");
    ends.sort_by_key(|(_, elapsed, _)| *elapsed);
    let fast = (CallEnd::Success, Duration::from_millis(100), false);
    let hung = (CallEnd::Cancelled, Duration::from_millis(500), false);
    assert_eq!((ends[9], ends[10]), (fast, hung), "the tail shows");
}
