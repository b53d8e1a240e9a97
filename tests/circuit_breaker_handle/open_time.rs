use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitPolicy, CircuitState, Outcome, TransitionReason,
};

use crate::kit::{SECOND, breaker, succeed, told_breaker, trip, trips_at};

/// App-vNext/Polly#1895: a growing open time needs the number of failed recoveries and must not
/// overflow.
#[test]
fn h37_open_times_double_to_the_cap_and_start_anew_after_a_recovery_that_held() {
    let (breaker, time) = breaker(trips_at(1).open_cap(60 * SECOND).probes(2));
    trip(&breaker);
    for attempt in 0..100_u32 {
        let expected = SECOND * 2_u32.saturating_pow(attempt).min(60);
        let refused = breaker.try_acquire().expect_err("open");
        assert_eq!(refused.retry_after(), Some(expected), "attempt {attempt}");
        time.advance(expected / 4);
        let left = breaker.try_acquire().expect_err("open").retry_after();
        assert_eq!(left, Some(expected - expected / 4), "the time truly left");
        time.advance(expected - expected / 4);
        succeed(&breaker); // one good probe is no recovery
        breaker.try_acquire().expect("a probe").failure();
    }
    time.advance(60 * SECOND);
    succeed(&breaker);
    succeed(&breaker);
    time.advance(60 * SECOND - Duration::from_nanos(1));
    trip(&breaker);
    let seen = breaker.snapshot();
    assert_eq!(
        seen.retry_after,
        Some(60 * SECOND),
        "it did not hold as long"
    );
    time.advance(60 * SECOND);
    succeed(&breaker);
    succeed(&breaker);
    time.advance(60 * SECOND);
    trip(&breaker);
    assert_eq!(breaker.snapshot().retry_after, Some(SECOND), "it held");
}

#[test]
fn h37_jitter_stays_inside_its_bounds_and_follows_its_seed() {
    let open_times = |seed: u64| -> Vec<Duration> {
        let policy = trips_at(1).open_growth(1.0).probes(1);
        let (breaker, time) = breaker(policy.open_jitter(0.25).jitter_seed(seed));
        let next = |_| {
            trip(&breaker);
            let open = breaker.snapshot().retry_after.expect("known");
            time.advance(open);
            succeed(&breaker);
            open
        };
        (0..200).map(next).collect()
    };
    let drawn = open_times(7);
    let (least, most) = (drawn.iter().min(), drawn.iter().max());
    assert!(least >= Some(&(SECOND * 3 / 4)) && most <= Some(&(SECOND * 5 / 4)));
    assert!(
        least < Some(&(SECOND * 4 / 5)) && most > Some(&(SECOND * 6 / 5)),
        "spread"
    );
    assert_eq!(drawn, open_times(7), "the same seed");
    assert_ne!(drawn, open_times(8), "another seed");
}

#[test]
fn an_open_time_without_end_opens_for_ever() {
    let (breaker, time) = breaker(trips_at(1).open_for(Duration::MAX));
    trip(&breaker);
    for _ in 0..3 {
        time.advance(Duration::MAX);
        let refused = breaker.try_acquire().expect_err("for ever");
        assert_eq!(refused.retry_after(), None, "no time is known");
    }
    breaker.reset();
    succeed(&breaker);
}

/// failsafe-lib/failsafe#378: the state still read open after the open time, with no traffic.
#[tokio::test]
async fn h59_due_reads_open_with_nothing_left_and_a_driver_makes_it_happen_unasked() {
    let (breaker, time, told) = told_breaker(trips_at(1).open_for(120 * SECOND));
    trip(&breaker);
    told.take();
    time.advance(121 * SECOND);
    let seen = breaker.snapshot();
    assert_eq!(seen.state, CircuitState::Open, "as documented");
    assert_eq!(seen.retry_after, Some(Duration::ZERO), "and never negative");
    assert_eq!(breaker.state(), seen.state, "views agree");

    breaker.reset();
    trip(&breaker);
    told.take();
    let mut driver = tokio_test::task::spawn(breaker.drive());
    assert!(driver.poll().is_pending());
    time.advance(120 * SECOND - Duration::from_nanos(1));
    assert!(!driver.is_woken(), "not before");
    time.advance(Duration::from_nanos(1));
    assert!(driver.is_woken(), "at 120 s, with no call");
    assert!(driver.poll().is_pending());
    let told = told.transitions();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].reason, TransitionReason::OpenTimeOver);
    assert_eq!(breaker.state(), CircuitState::HalfOpen);
    drop(breaker);
    assert!(driver.is_woken(), "the last handle went");
    assert!(driver.poll().is_ready(), "and so it ends");
}

#[test]
fn a_driver_follows_later_trips_and_probes_that_hang() {
    let policy = trips_at(1).probes(1).probe_timeout(3 * SECOND);
    let (breaker, time, told) = told_breaker(policy);
    let mut driver = tokio_test::task::spawn(breaker.drive());
    assert!(driver.poll().is_pending());
    trip(&breaker);
    assert!(driver.is_woken(), "a new time to look at");
    assert!(driver.poll().is_pending());
    time.advance(SECOND);
    // Until it comes to rest: its own transition wakes it too.
    while driver.is_woken() {
        assert!(driver.poll().is_pending());
    }
    let hung = breaker.try_acquire().expect("the probe");
    assert!(driver.is_woken(), "its deadline is a new time to look at");
    assert!(driver.poll().is_pending());
    time.advance(3 * SECOND);
    assert!(driver.is_woken() && driver.poll().is_pending());
    let last = told.transitions().pop().expect("some");
    assert_eq!(last.reason, TransitionReason::ProbeTimedOut);
    drop(hung);
}

#[test]
fn a_driver_follows_a_change_of_policy() {
    let (breaker, time) = breaker(CircuitPolicy::builder().consecutive(1).recover_every(9));
    trip(&breaker);
    let mut driver = tokio_test::task::spawn(breaker.drive());
    assert!(driver.poll().is_pending());
    time.advance(SECOND);
    assert!(!driver.is_woken(), "no time ends it");
    breaker.set_policy(trips_at(1).open_for(3 * SECOND).build().unwrap());
    assert!(driver.is_woken(), "there is one now");
    assert!(driver.poll().is_pending());
    time.advance(2 * SECOND);
    assert!(driver.is_woken() && driver.poll().is_pending());
    assert_eq!(breaker.state(), CircuitState::HalfOpen);
}

#[test]
fn a_function_gives_the_open_time_from_the_trip_count_and_the_reason() {
    let policy = CircuitPolicy::builder()
        .consecutive(1)
        .probes(1)
        .open_time(|trips, reason| match reason {
            TransitionReason::Consecutive => SECOND * trips,
            _ => 10 * SECOND * trips,
        });
    let (breaker, time, told) = told_breaker(policy);
    trip(&breaker);
    assert_eq!(breaker.snapshot().retry_after, Some(SECOND));
    time.advance(SECOND);
    breaker.try_acquire().expect("the probe").failure();
    assert_eq!(breaker.snapshot().retry_after, Some(20 * SECOND));
    let chain: Vec<_> = told.transitions().iter().map(|t| t.to).collect();
    let expected = [
        CircuitState::Open,
        CircuitState::HalfOpen,
        CircuitState::Open,
    ];
    assert_eq!(chain, expected);
}

#[test]
fn a_function_may_call_back_into_the_breaker_that_asks_it() {
    let own = std::sync::Arc::new(std::sync::OnceLock::new());
    let seen = own.clone();
    let policy = CircuitPolicy::builder()
        .consecutive(1)
        .open_time(move |_, _| {
            let breaker: &tower_sluice::circuit_breaker::CircuitBreaker = seen.get().expect("set");
            let refused = breaker.try_acquire().expect_err("open already");
            assert_eq!(refused.retry_after(), None, "for no time that is known yet");
            breaker.force_open();
            SECOND
        });
    let (breaker, _, told) = told_breaker(policy);
    own.set(breaker.clone()).expect("once");
    trip(&breaker);
    assert_eq!(breaker.snapshot().retry_after, None, "the command wins");
    let reasons: Vec<_> = told.transitions().iter().map(|t| t.reason).collect();
    let expected = [TransitionReason::Consecutive, TransitionReason::ForcedOpen];
    assert_eq!(reasons, expected, "told in the order it happened");
}

#[test]
fn an_upstream_may_ask_for_a_longer_open_time_up_to_the_cap() {
    let (breaker, time) = breaker(trips_at(1).probes(1).retry_after_cap(30 * SECOND));
    let fail = |asked: Option<Duration>| {
        let permit = breaker.try_acquire().expect("admitted");
        permit.record_with(Outcome::Failure, asked);
        let open = breaker.snapshot().retry_after.expect("known");
        time.advance(open);
        open
    };
    assert_eq!(fail(Some(20 * SECOND)), 20 * SECOND);
    assert_eq!(fail(Some(Duration::MAX)), 30 * SECOND, "the cap");
    assert_eq!(fail(Some(SECOND)), 4 * SECOND, "no shorter than our own");
}

#[test]
fn a_slow_success_that_opens_asks_for_its_open_time_like_a_failure() {
    let policy = trips_at(1).slow_threshold(SECOND).open_cap(60 * SECOND);
    let (breaker, time) = breaker(policy);
    let slow = breaker.try_acquire().expect("closed");
    time.advance(SECOND);
    slow.record_with(Outcome::Success, Some(9 * SECOND));
    assert_eq!(breaker.snapshot().retry_after, Some(9 * SECOND));
}

#[test]
fn the_admitted_share_grows_over_the_ramp_with_refusals_spread_evenly() {
    let (breaker, time) = breaker(trips_at(5).probes(1).ramp_up(100 * SECOND));
    trip(&breaker);
    time.advance(SECOND);
    succeed(&breaker);
    let mut tenths = Vec::new();
    for tenth in 0..10 {
        let mut admitted = 0;
        let (mut refused_in_a_row, mut longest) = (0, 0);
        for _ in 0..1_000 {
            match breaker.try_acquire() {
                Ok(permit) => {
                    permit.success();
                    admitted += 1;
                    refused_in_a_row = 0;
                }
                Err(_) => refused_in_a_row += 1,
            }
            longest = longest.max(refused_in_a_row);
            time.advance(SECOND / 100);
        }
        let share = 10 + 9 * tenth; // percent, at the beginning of this tenth
        assert!(
            longest <= 100 / share,
            "in no bursts: {longest} in tenth {tenth}"
        );
        tenths.push(admitted);
    }
    assert!(tenths.is_sorted(), "it grows: {tenths:?}");
    assert!((140..150).contains(&tenths[0]) && (950..=960).contains(&tenths[9]));
    let all = (0..1_000).filter(|_| breaker.try_acquire().is_ok()).count();
    assert_eq!(all, 1_000, "the ramp is over");
}

#[test]
fn a_condition_met_during_the_ramp_reopens() {
    let (breaker, time) = breaker(trips_at(1).probes(1).ramp_up(100 * SECOND));
    trip(&breaker);
    time.advance(SECOND);
    succeed(&breaker);
    breaker
        .try_acquire()
        .expect("the first of the ramp")
        .failure();
    assert_eq!(breaker.state(), CircuitState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_spawned_driver_runs_on_paused_time_and_ends_with_the_last_handle() {
    let policy = trips_at(1).build().expect("a sound policy");
    let breaker = tower_sluice::circuit_breaker::CircuitBreaker::new("driven", policy);
    let driver = tokio::spawn(breaker.drive());
    trip(&breaker);
    tokio::time::sleep(SECOND + Duration::from_millis(1)).await;
    assert_eq!(breaker.state(), CircuitState::HalfOpen, "with no call");
    let held = breaker.acquire_owned().expect("a probe");
    drop(breaker);
    tokio::task::yield_now().await;
    assert!(!driver.is_finished(), "a permit is a handle too");
    drop(held);
    driver.await.expect("it ends");
}

#[test]
fn a_function_is_asked_once_a_trip_and_commands_given_meanwhile_are_told() {
    let asked = Arc::new(AtomicU32::new(0));
    let itself = Arc::new(OnceLock::<CircuitBreaker>::new());
    let policy = CircuitPolicy::builder().consecutive(1).open_time({
        let (asked, itself) = (asked.clone(), itself.clone());
        move |_, _| {
            asked.fetch_add(1, Ordering::Relaxed);
            let breaker = itself.get().expect("it was made");
            breaker.disable();
            breaker.set_policy(trips_at(1).build().unwrap());
            SECOND
        }
    });
    let (breaker, _, told) = told_breaker(policy);
    itself.set(breaker.clone()).expect("once");
    breaker.try_acquire().expect("closed").failure();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let reasons: Vec<_> = told.transitions().iter().map(|t| t.reason).collect();
    assert_eq!(
        reasons,
        [TransitionReason::Consecutive, TransitionReason::Disabled]
    );
}
