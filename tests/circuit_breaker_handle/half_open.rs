use std::time::Duration;

use tower_sluice::circuit_breaker::{
    CircuitOpenReason, CircuitPolicy, CircuitState, Recorded, TransitionReason,
};

use crate::kit::{SECOND, breaker, succeed, told_breaker, trip, trips_at};

/// nodeshift/opossum#276: the probe was dropped by the minimum-volume rule, so that half-open
/// never ended.
#[test]
fn h01_a_failed_probe_reopens_though_the_window_holds_less_than_the_minimum() {
    let policy = CircuitPolicy::builder()
        .failure_rate(0.5)
        .min_calls(10)
        .window(SECOND)
        .open_for(60 * SECOND)
        .open_jitter(0.0)
        .probes(1);
    let (breaker, time) = breaker(policy);
    trip(&breaker);
    time.advance(61 * SECOND);
    assert_eq!(breaker.snapshot().retry_after, Some(Duration::ZERO));
    breaker.try_acquire().expect("the probe").failure();
    let seen = breaker.snapshot();
    assert_eq!(seen.state, CircuitState::Open, "one failing probe reopens");
    assert_eq!(seen.reason, Some(TransitionReason::ProbeFailed));
    time.advance(60 * SECOND);
    breaker.try_acquire().expect("a probe again").success();
    assert_eq!(breaker.state(), CircuitState::Closed);
}

/// resilience4j/resilience4j#544: the last probe ended in an ignored error and its permit was
/// gone.
#[test]
fn h03_an_ignored_probe_gives_its_slot_back() {
    let (breaker, time) = breaker(trips_at(1).probes(2));
    trip(&breaker);
    time.advance(SECOND);
    succeed(&breaker);
    let ignored = breaker.try_acquire().expect("the second probe").ignore();
    assert_eq!(ignored, Recorded::Counted, "by giving the slot back");
    assert_eq!(breaker.state(), CircuitState::HalfOpen);
    assert_eq!(breaker.snapshot().probes_in_flight, 0);
    succeed(&breaker);
    assert_eq!(breaker.state(), CircuitState::Closed, "two have succeeded");
}

#[test]
fn a_dropped_probe_gives_its_slot_back() {
    let (breaker, time) = breaker(trips_at(1).probes(1));
    trip(&breaker);
    time.advance(SECOND);
    for _ in 0..100 {
        drop(breaker.try_acquire().expect("the slot is free again"));
    }
    assert_eq!(breaker.state(), CircuitState::HalfOpen);
    succeed(&breaker);
    assert_eq!(breaker.state(), CircuitState::Closed);
}

/// App-vNext/Polly half-open: no more than the slots, and spent slots stay spent.
#[test]
fn slots_are_in_flight_or_spent_and_never_more_than_the_probes() {
    let (breaker, time) = breaker(trips_at(1).probes(3));
    trip(&breaker);
    time.advance(SECOND);
    succeed(&breaker);
    let second = breaker.try_acquire().expect("one spent, none out");
    let third = breaker.try_acquire().expect("one spent, one out");
    let refused = breaker.try_acquire().expect_err("one spent, two out");
    assert_eq!(refused.reason(), CircuitOpenReason::ProbesOut);
    assert_eq!(refused.retry_after(), None, "no time is known");
    second.success();
    assert_eq!(breaker.state(), CircuitState::HalfOpen);
    third.success();
    assert_eq!(breaker.state(), CircuitState::Closed);
}

/// erpc/erpc#1118: traffic made mostly of ignored outcomes kept the breaker from ever closing.
#[test]
fn h61_ignored_outcomes_neither_close_nor_reopen_nor_hold_a_slot() {
    let (breaker, time) = breaker(trips_at(1).probes(1));
    trip(&breaker);
    time.advance(SECOND);
    for probe in 1..=4 {
        breaker.try_acquire().expect("free at once").ignore();
        assert_eq!(breaker.state(), CircuitState::HalfOpen, "after {probe}");
    }
    succeed(&breaker);
    assert_eq!(breaker.state(), CircuitState::Closed, "on the fifth call");

    trip(&breaker);
    time.advance(2 * SECOND);
    for _ in 0..1_000 {
        breaker
            .try_acquire()
            .expect("as documented: for ever")
            .ignore();
    }
    assert_eq!(breaker.state(), CircuitState::HalfOpen);
}

/// resilience4j/resilience4j#858: asking whether a call is permitted used up the permit.
#[test]
fn h34_reading_spends_no_probe_and_starts_no_transition() {
    let (breaker, time, told) = told_breaker(trips_at(1).probes(1));
    let read = || {
        for _ in 0..10 {
            let _ = (breaker.state(), breaker.snapshot(), breaker.policy());
            let _ = (breaker.name(), format!("{breaker:?}"));
        }
    };
    trip(&breaker);
    told.take();
    read();
    time.advance(SECOND);
    read();
    assert_eq!(told.take(), [], "no reading makes a transition");
    assert_eq!(breaker.state(), CircuitState::Open, "open, and due");
    breaker.try_acquire().expect("the probe").ignore();
    read();
    let probe = breaker.try_acquire().expect("the probe is still there");
    read();
    breaker.try_acquire().expect_err("one probe");
    probe.success();
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[test]
fn a_probe_that_runs_too_long_fails_at_its_deadline_whenever_that_is_noticed() {
    let policy = trips_at(1).probes(1).probe_timeout(3 * SECOND);
    let (breaker, time, told) = told_breaker(policy.open_growth(1.0));
    trip(&breaker);
    time.advance(SECOND);
    let hung = breaker.acquire_owned().expect("the probe");
    time.advance(3 * SECOND + SECOND / 2);
    let seen = breaker.snapshot();
    assert_eq!(
        seen.state,
        CircuitState::Open,
        "seen though nothing happened"
    );
    assert_eq!(seen.retry_after, Some(SECOND / 2), "from the deadline on");
    assert_eq!(told.transitions().len(), 2, "reading told nobody");

    let refused = breaker.try_acquire().expect_err("reopened");
    assert_eq!(refused.retry_after(), Some(SECOND / 2));
    assert_eq!(hung.success(), Recorded::Stale, "its result is fenced");
    time.advance(SECOND / 2);
    succeed(&breaker);
    assert_eq!(breaker.state(), CircuitState::Closed);
    let reasons: Vec<_> = told.transitions().iter().map(|t| t.reason).collect();
    let expected = [
        TransitionReason::ProbeTimedOut,
        TransitionReason::OpenTimeOver,
        TransitionReason::Recovered,
    ];
    assert_eq!(reasons, expected);
}

#[test]
fn a_slow_probe_fails_where_a_slow_threshold_is_set() {
    let (breaker, time) = breaker(trips_at(1).slow_threshold(SECOND).probes(1));
    trip(&breaker);
    time.advance(SECOND);
    let probe = breaker.try_acquire().expect("the probe");
    time.advance(SECOND);
    probe.success();
    assert_eq!(
        breaker.state(),
        CircuitState::Open,
        "as long as the threshold is slow"
    );
}

#[test]
fn of_arrivals_while_a_counted_probe_runs_the_nth_is_refused_and_the_next_is_the_probe() {
    let policy = CircuitPolicy::builder().consecutive(1).recover_every(3);
    let (breaker, _) = breaker(policy.probes(2));
    trip(&breaker);
    let arrive = || breaker.try_acquire();
    for _ in 0..2 {
        assert_eq!(arrive().unwrap_err().reason(), CircuitOpenReason::Open);
    }
    let probe = arrive().expect("the third arrival");
    for _ in 0..3 {
        assert_eq!(arrive().unwrap_err().reason(), CircuitOpenReason::ProbesOut);
    }
    probe.success();
    assert_eq!(breaker.state(), CircuitState::HalfOpen, "two are needed");
    arrive()
        .expect("due since the third, and no probe runs")
        .success();
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[test]
fn recovery_by_time_and_by_arrivals_together_goes_by_what_comes_first() {
    let (breaker, time) = breaker(trips_at(1).recover_every(3).probes(1));
    trip(&breaker);
    time.advance(SECOND);
    breaker
        .try_acquire()
        .expect("by time, on the first arrival")
        .failure();
    for _ in 0..2 {
        let refused = breaker.try_acquire().expect_err("neither");
        assert_eq!(refused.retry_after(), Some(2 * SECOND), "time is known");
    }
    breaker.try_acquire().expect("by arrivals").success();
    assert_eq!(breaker.state(), CircuitState::Closed);
}
