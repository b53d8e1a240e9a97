use std::time::Duration;

use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitEventKind, CircuitOpenReason, CircuitPolicy, CircuitState, Command,
    Recorded,
};

use crate::kit::{SECOND, breaker, succeed, told_breaker, trip, trips_at};

fn half_open(breaker: &CircuitBreaker, time: &tower_sluice::clock::ManualClock) {
    trip(breaker);
    time.advance(SECOND);
    drop(breaker.try_acquire().expect("a probe"));
    assert_eq!(breaker.state(), CircuitState::HalfOpen);
}

/// Netflix/Hystrix#1952: a force-open switch was not honoured.
#[test]
fn h43_forced_open_refuses_from_any_state_until_released() {
    for start in [
        CircuitState::Closed,
        CircuitState::Open,
        CircuitState::HalfOpen,
    ] {
        let (breaker, time) = breaker(trips_at(1).probes(1));
        let held = breaker.acquire_owned().expect("closed");
        match start {
            CircuitState::Closed => {}
            CircuitState::Open => trip(&breaker),
            CircuitState::HalfOpen => half_open(&breaker, &time),
        }
        breaker.force_open();
        for _ in 0..10 {
            time.advance(SECOND);
            let refused = breaker.try_acquire().expect_err("forced");
            assert_eq!(refused.reason(), CircuitOpenReason::Forced);
            assert_eq!(refused.retry_after(), None, "no time is known");
            assert_eq!(breaker.state(), CircuitState::Open, "no timer moves it");
        }
        let before = breaker.snapshot();
        assert_eq!(held.success(), Recorded::Stale);
        let after = breaker.snapshot();
        assert_eq!((after.state, after.epoch), (before.state, before.epoch));
        assert_eq!(after.command, Some(Command::ForceOpen));
        breaker.release();
        let seen = breaker.snapshot();
        assert_eq!(seen.state, CircuitState::Closed, "as documented");
        assert_eq!((seen.calls, seen.consecutive, seen.command), (0, 0, None));
    }
}

#[test]
fn h43_forced_closed_never_trips_and_forced_open_wins_over_it() {
    let (breaker, _) = breaker(trips_at(1));
    breaker.force_close();
    for _ in 0..100 {
        let recorded = breaker.try_acquire().expect("forced").failure();
        assert_eq!(recorded, Recorded::Uncounted);
    }
    assert_eq!(breaker.state(), CircuitState::Closed);
    breaker.force_open();
    breaker.force_close();
    breaker.disable();
    let refused = breaker.try_acquire().expect_err("forced open wins");
    assert_eq!(refused.reason(), CircuitOpenReason::Forced);
    breaker.release();
    breaker.try_acquire().expect("released").failure();
    assert_eq!(breaker.state(), CircuitState::Open, "failures trip again");
}

#[test]
fn forced_closed_also_lets_calls_through_that_an_open_circuit_refused() {
    let (breaker, _) = breaker(trips_at(1));
    trip(&breaker);
    breaker.force_close();
    succeed(&breaker);
    assert_eq!(breaker.snapshot().command, Some(Command::ForceClose));
}

#[test]
fn a_disabled_breaker_counts_trips_and_recovers_but_refuses_nothing() {
    let (breaker, time, told) = told_breaker(trips_at(2).probes(1));
    breaker.disable();
    trip(&breaker);
    for _ in 0..5 {
        let recorded = breaker.try_acquire().expect("not refused").failure();
        assert_eq!(
            recorded,
            Recorded::Uncounted,
            "the real thing had not seen it"
        );
    }
    let noted = told.take().into_iter();
    let noted = noted.filter(|e| matches!(e, CircuitEventKind::WouldHaveRefused { .. }));
    assert_eq!(noted.count(), 5);
    let seen = breaker.snapshot();
    assert_eq!(seen.command, Some(Command::Disable));
    assert_eq!(seen.totals.expect("kept").would_have_refused, 5);
    time.advance(SECOND);
    succeed(&breaker);
    assert_eq!(
        breaker.state(),
        CircuitState::Closed,
        "the probe was counted"
    );
}

#[test]
fn disabling_keeps_state_counts_and_calls_in_flight() {
    let (breaker, _) = breaker(trips_at(3));
    breaker.try_acquire().expect("closed").failure();
    let held = breaker.try_acquire().expect("closed");
    breaker.disable();
    assert_eq!(held.failure(), Recorded::Counted);
    assert_eq!(breaker.snapshot().consecutive, 2);
}

#[test]
fn reset_makes_it_new_and_leaves_commands_in_force() {
    let (breaker, time) = breaker(trips_at(1).probes(1));
    trip(&breaker);
    time.advance(SECOND);
    breaker.try_acquire().expect("the probe").failure();
    breaker.reset();
    assert_eq!(breaker.state(), CircuitState::Closed);
    trip(&breaker);
    assert_eq!(
        breaker.snapshot().retry_after,
        Some(SECOND),
        "growth is gone"
    );
    breaker.force_open();
    breaker.reset();
    breaker.try_acquire().expect_err("still forced");
}

#[test]
fn release_without_a_command_does_nothing() {
    let (breaker, _) = breaker(trips_at(3));
    breaker.try_acquire().expect("closed").failure();
    let before = breaker.snapshot();
    breaker.release();
    assert_eq!(breaker.snapshot(), before);
}

#[tokio::test]
async fn when_closed_waits_without_polling_and_is_woken_by_the_change() {
    let (breaker, time) = breaker(trips_at(1).probes(1));
    breaker.when_closed().await;
    trip(&breaker);
    let mut waiting = tokio_test::task::spawn(breaker.when_closed());
    assert!(waiting.poll().is_pending());
    time.advance(SECOND);
    assert!(!waiting.is_woken(), "time alone closes nothing");
    succeed(&breaker);
    assert!(waiting.is_woken() && waiting.poll().is_ready());
    let mut left = tokio_test::task::spawn(breaker.when_closed());
    trip(&breaker);
    assert!(left.poll().is_pending());
    drop(left);
    breaker.reset();
}

#[test]
fn a_policy_changes_under_a_running_breaker_with_no_reset_of_state() {
    let (breaker, time) = breaker(trips_at(5).probes(3));
    for _ in 0..3 {
        breaker.try_acquire().expect("closed").failure();
    }
    let held = breaker.try_acquire().expect("closed");
    breaker.set_policy(trips_at(4).probes(2).build().unwrap());
    assert_eq!(breaker.snapshot().consecutive, 3, "the row stays");
    assert_eq!(held.failure(), Recorded::Counted, "calls in flight count");
    assert_eq!(breaker.state(), CircuitState::Open);
    breaker.set_policy(trips_at(4).open_for(9 * SECOND).probes(3).build().unwrap());
    assert_eq!(breaker.snapshot().retry_after, Some(SECOND), "runs on");
    time.advance(SECOND);
    succeed(&breaker);
    succeed(&breaker);
    breaker.set_policy(trips_at(4).probes(2).build().unwrap());
    assert_eq!(breaker.state(), CircuitState::Closed, "two are enough now");
}

#[test]
fn successes_end_a_row_while_the_policy_counts_none() {
    let rate = CircuitPolicy::builder().failure_rate(1.0).build().unwrap();
    let (breaker, _) = breaker(trips_at(3));
    for _ in 0..2 {
        breaker.try_acquire().expect("closed").failure();
    }
    breaker.set_policy(rate);
    succeed(&breaker);
    breaker.set_policy(trips_at(3).build().unwrap());
    assert_eq!(breaker.snapshot().consecutive, 0, "it was ended");
    breaker.try_acquire().expect("closed").failure();
    assert_eq!(breaker.state(), CircuitState::Closed, "one in a row");
}

/// The calls that hang began under a policy that knew slow ones.
#[test]
fn a_policy_without_overdue_calls_counts_none_that_hang_already() {
    let slow = || trips_at(1).slow_threshold(SECOND);
    let (breaker, time) = breaker(slow().count_overdue());
    let held = breaker.try_acquire().expect("closed");
    breaker.set_policy(trips_at(1).build().unwrap());
    time.advance(2 * SECOND);
    breaker.try_acquire().expect("closed").ignore();
    breaker.disable();
    assert_eq!(breaker.state(), CircuitState::Closed);
    assert_eq!(held.failure(), Recorded::Counted);
    assert_eq!(breaker.state(), CircuitState::Open, "by its own end");
}

#[test]
fn calls_that_hang_already_are_overdue_by_the_new_threshold() {
    let hangs_from = |threshold| {
        let policy = trips_at(1).slow_threshold(threshold);
        policy.count_overdue().build().unwrap()
    };
    let (breaker, time) = breaker(trips_at(1).slow_threshold(SECOND).count_overdue());
    breaker.set_policy(hangs_from(10 * SECOND));
    let _hangs = breaker.acquire_owned().expect("closed");
    time.advance(2 * SECOND);
    let _watched = breaker.acquire_owned().expect("not overdue yet");
    breaker.set_policy(hangs_from(2 * SECOND));
    let refused = breaker.try_acquire().map(drop);
    refused.expect_err("the first is overdue, and opened the circuit");
}

#[test]
fn a_policy_with_recovery_gives_an_endless_open_state_its_end() {
    let (breaker, time) = breaker(CircuitPolicy::builder().consecutive(1).recover_every(1_000));
    trip(&breaker);
    assert_eq!(breaker.snapshot().retry_after, None);
    breaker.set_policy(trips_at(1).probes(1).build().unwrap());
    assert_eq!(breaker.snapshot().retry_after, Some(SECOND));
    time.advance(SECOND);
    succeed(&breaker);
    let by_function = CircuitPolicy::builder()
        .consecutive(1)
        .open_time(|_, _| 7 * SECOND);
    breaker.set_policy(
        CircuitPolicy::builder()
            .consecutive(1)
            .recover_every(9)
            .build()
            .unwrap(),
    );
    trip(&breaker);
    breaker.set_policy(by_function.build().unwrap());
    assert_eq!(breaker.snapshot().retry_after, Some(7 * SECOND));
}

#[test]
fn a_window_of_the_same_size_keeps_its_calls_and_another_starts_empty() {
    let rates = || {
        CircuitPolicy::builder()
            .failure_rate(1.0)
            .window(10 * SECOND)
    };
    let (breaker, _) = breaker(rates());
    breaker.try_acquire().expect("closed").failure();
    breaker.set_policy(rates().min_calls(7).build().unwrap());
    assert_eq!(breaker.snapshot().failures, 1, "the same window");
    breaker.set_policy(rates().window(Duration::from_secs(9)).build().unwrap());
    assert_eq!(breaker.snapshot().failures, 0, "another");
    breaker.try_acquire().expect("closed").failure();
    assert_eq!(breaker.snapshot().failures, 1, "which counts");
    let ring = CircuitPolicy::builder().failure_rate(1.0).window_calls(8);
    breaker.set_policy(ring.build().unwrap());
    breaker.try_acquire().expect("closed").failure();
    assert_eq!(breaker.snapshot().failures, 1, "and another kind");
}
