use std::time::Duration;

use tower_sluice::circuit_breaker::{
    Cancel, CircuitBreaker, CircuitPolicy, CircuitPolicyBuilder, CircuitState, TransitionReason,
};
use tower_sluice::clock::Nanos;

use crate::kit::{SECOND, breaker, succeed, trips_at};

const MS: Duration = Duration::from_millis(1);

fn fail(breaker: &CircuitBreaker) {
    breaker.try_acquire().expect("closed").failure();
}

/// sony/gobreaker#21: a counter that was reset at a fixed interval made the rate jump.
#[test]
fn h10_the_rate_slides_and_decides_the_same_wherever_the_load_begins() {
    for shift in [0, 2_500, 5_000, 7_500] {
        let policy = CircuitPolicy::builder()
            .failure_rate(0.5)
            .window(10 * SECOND);
        let (breaker, time) = breaker(policy);
        time.advance(MS * shift);
        for _ in 0..10_000 {
            succeed(&breaker);
            time.advance(MS);
        }
        for call in 0..100 {
            if call < 90 {
                fail(&breaker)
            } else {
                succeed(&breaker)
            }
            time.advance(MS);
        }
        let seen = breaker.snapshot();
        assert_eq!(seen.state, CircuitState::Closed, "shifted by {shift} ms");
        let rate = seen.failure_rate.expect("known");
        assert!((0.008..0.011).contains(&rate), "about 1 %: {rate}");
    }
}

/// Shopify/semian#24: sparse failures opened the circuit, as each extended the window.
#[test]
fn h12_three_failures_within_five_seconds_open_and_sparser_ones_never() {
    let three_in_five = || {
        let policy = CircuitPolicy::builder().failure_rate(1.0).min_calls(3);
        breaker(policy.window(5 * SECOND).open_for(SECOND))
    };
    let fail_at = |times: &[u64]| {
        let (breaker, time) = three_in_five();
        for &ms in times {
            time.set(Nanos::from(MS * ms as u32));
            fail(&breaker);
        }
        breaker.state()
    };
    assert_eq!(fail_at(&[0, 4_000, 8_000, 12_000]), CircuitState::Closed);
    assert_eq!(fail_at(&[20_000, 22_000]), CircuitState::Closed);
    assert_eq!(fail_at(&[20_000, 22_000, 24_900]), CircuitState::Open);
    // Exactly a window apart: an event on an edge belongs to the bucket that begins there, so the
    // first one's bucket has just left.
    assert_eq!(fail_at(&[20_000, 22_000, 25_000]), CircuitState::Closed);
    assert_eq!(fail_at(&[20_499, 22_000, 25_000]), CircuitState::Closed);
    assert_eq!(fail_at(&[20_500, 22_000, 25_000]), CircuitState::Open);
}

/// alibaba/Sentinel#1769: a threshold of 100 % could never be passed.
#[test]
fn h39_a_threshold_is_reached_at_the_threshold_itself() {
    let slow_of_five = |slow: u32| {
        let policy = CircuitPolicy::builder()
            .slow_rate(1.0)
            .slow_threshold(SECOND);
        let (breaker, time) = breaker(policy.failure_rate(1.0).min_calls(5));
        for call in 0..5 {
            let permit = breaker.try_acquire().expect("closed");
            time.advance(if call < 5 - slow { MS } else { SECOND });
            permit.success();
        }
        breaker.snapshot()
    };
    let tripped = slow_of_five(5);
    assert_eq!(tripped.state, CircuitState::Open);
    assert_eq!(tripped.reason, Some(TransitionReason::SlowRate));
    assert_eq!((tripped.calls, tripped.slow), (5, 5), "what tripped it");
    assert_eq!(slow_of_five(4).state, CircuitState::Closed);

    let one_of = |calls: u32, rate: f64| {
        let policy = CircuitPolicy::builder().failure_rate(rate).min_calls(calls);
        let (breaker, _) = breaker(policy);
        (1..calls).for_each(|_| succeed(&breaker));
        fail(&breaker);
        breaker.state()
    };
    assert_eq!(one_of(2, 0.5), CircuitState::Open, "at or above");
    assert_eq!(one_of(3, 0.33), CircuitState::Open);
    assert_eq!(one_of(3, 0.34), CircuitState::Closed);

    for rate in [0.0, -0.5, 1.01, f64::NAN] {
        let failure = CircuitPolicy::builder().failure_rate(rate).build();
        assert_eq!(failure.unwrap_err().field(), "failure_rate", "{rate}");
        let slow = CircuitPolicy::builder()
            .slow_rate(rate)
            .slow_threshold(SECOND);
        assert_eq!(slow.build().unwrap_err().field(), "slow_rate", "{rate}");
    }
}

#[test]
fn no_bucket_of_an_earlier_round_is_ever_counted() {
    let idle = [
        10 * SECOND,
        20 * SECOND,
        1_000_000 * SECOND,
        Duration::from_secs(10 * 365 * 86_400),
        Duration::MAX,
    ];
    for gap in idle {
        let policy = CircuitPolicy::builder().failure_rate(1.0).min_calls(11);
        let (breaker, time) = breaker(policy);
        for _ in 0..10 {
            fail(&breaker);
            time.advance(SECOND);
        }
        time.advance(gap);
        assert_eq!(breaker.snapshot().calls, 0, "idle for {gap:?}");
        fail(&breaker);
        assert_eq!(breaker.snapshot().calls, 1, "idle for {gap:?}");
    }
}

#[test]
fn below_the_minimum_a_rate_is_not_known_yet() {
    let policy = CircuitPolicy::builder().failure_rate(0.9).min_calls(4);
    let (breaker, _) = breaker(policy);
    fail(&breaker);
    for _ in 0..2 {
        assert_eq!(breaker.snapshot().failure_rate, None);
        succeed(&breaker);
    }
    succeed(&breaker);
    let seen = breaker.snapshot();
    assert_eq!(seen.failure_rate, Some(0.25));
    assert_eq!(seen.slow_rate, None, "no threshold is set");
}

#[test]
fn a_success_never_trips_though_it_brings_the_minimum() {
    let policy = CircuitPolicy::builder().failure_rate(0.5).min_calls(4);
    let (breaker, _) = breaker(policy);
    (0..3).for_each(|_| fail(&breaker));
    succeed(&breaker);
    assert_eq!(
        breaker.state(),
        CircuitState::Closed,
        "3 of 4, but a success"
    );
    fail(&breaker);
    assert_eq!(breaker.state(), CircuitState::Open);
}

#[test]
fn the_ring_forgets_the_oldest_call_whatever_its_size() {
    for size in [1, 5, 32, 33, 1_000, 1 << 20] {
        let policy = CircuitPolicy::builder()
            .failure_rate(1.0)
            .window_calls(size);
        let (breaker, _) = breaker(policy.min_calls(size));
        if size > 1 {
            fail(&breaker);
        }
        (0..size).for_each(|_| succeed(&breaker));
        let seen = breaker.snapshot();
        assert_eq!((seen.calls, seen.failures), (u64::from(size), 0), "{size}");
    }
}

#[test]
fn counting_allocates_nothing() {
    let rates = |window: fn(CircuitPolicyBuilder) -> CircuitPolicyBuilder| {
        window(CircuitPolicy::builder().failure_rate(1.0).slow_rate(1.0)).slow_threshold(SECOND)
    };
    let policies = [
        trips_at(1_000_000),
        rates(|policy| policy.window(10 * SECOND)),
        rates(|policy| policy.window_calls(1 << 20)),
    ];
    for policy in policies {
        let (breaker, time) = breaker(policy);
        let (count, _) = crate::support::alloc::allocations(|| {
            for call in 0..1_000 {
                let permit = breaker.try_acquire().expect("closed");
                match call % 3 {
                    0 => drop(permit.failure()),
                    1 => drop(permit),
                    _ => drop(permit.success()),
                }
                time.advance(MS);
            }
        });
        assert_eq!(count, 0, "{:?}", breaker.policy());
    }
}

#[test]
fn a_dropped_call_counts_by_the_cancel_rule() {
    let dropped_after = |rule: Cancel, took: Duration| {
        let policy = trips_at(1).slow_threshold(SECOND).cancel(rule);
        let (breaker, time) = breaker(policy);
        let permit = breaker.try_acquire().expect("closed");
        time.advance(took);
        drop(permit);
        breaker.state()
    };
    use CircuitState::{Closed, Open};
    assert_eq!(dropped_after(Cancel::SlowIfOverdue, SECOND), Open);
    assert_eq!(dropped_after(Cancel::SlowIfOverdue, SECOND - MS), Closed);
    assert_eq!(dropped_after(Cancel::Ignore, SECOND), Closed);
    assert_eq!(dropped_after(Cancel::Failure, Duration::ZERO), Open);
}

#[test]
fn calls_that_hang_open_the_circuit_before_the_first_returns() {
    let policy = trips_at(3).slow_threshold(SECOND).count_overdue();
    let (breaker, time) = breaker(policy);
    let hung: Vec<_> = (0..5)
        .map(|_| {
            time.advance(MS);
            breaker.acquire_owned().expect("closed")
        })
        .collect();
    assert_eq!(breaker.snapshot().totals.expect("implied").in_flight, 5);
    time.advance(SECOND - MS - MS - MS);
    breaker.acquire_owned().expect("two are overdue").ignore();
    assert_eq!(breaker.snapshot().consecutive, 2);
    time.advance(MS);
    breaker.acquire_owned().expect_err("three are");
    assert_eq!(breaker.snapshot().slow, 0, "no window is kept");
    drop(hung);
    assert_eq!(breaker.snapshot().totals.expect("implied").in_flight, 0);
}

#[test]
fn a_driver_counts_calls_that_hang_with_no_call_after_them() {
    let policy = trips_at(1).slow_threshold(SECOND).count_overdue();
    let (breaker, time) = breaker(policy);
    let mut driver = tokio_test::task::spawn(breaker.drive());
    assert!(driver.poll().is_pending());
    time.advance(SECOND / 2);
    let hung = breaker.acquire_owned().expect("closed");
    time.advance(SECOND / 2);
    assert!(driver.is_woken() && driver.poll().is_pending());
    time.advance(SECOND / 2);
    assert!(driver.is_woken(), "at the call's own deadline");
    assert!(driver.poll().is_pending());
    assert_eq!(breaker.state(), CircuitState::Open);
    drop(hung);
}

/// The clock of a machine is set back, and an operator changes the window.
#[test]
fn a_window_changed_after_the_clock_went_back_counts_what_comes_then() {
    let window = |length| {
        let policy = CircuitPolicy::builder().failure_rate(1.0).min_calls(2);
        policy.window(length)
    };
    let (breaker, time) = breaker(window(10 * SECOND));
    time.advance(1_000 * SECOND);
    breaker.try_acquire().expect("closed").success();
    time.set(Nanos::from(500 * SECOND));
    breaker.set_policy(window(SECOND).build().unwrap());
    fail(&breaker);
    fail(&breaker);
    assert_eq!(breaker.state(), CircuitState::Open, "two of two");
}

/// Each thread counts for itself, but the latest time that any has read is that of all.
#[test]
fn failures_trip_on_whichever_thread_they_end_after_the_clock_went_back() {
    for earlier in [0, 10] {
        let (breaker, time) = breaker(CircuitPolicy::builder().failure_rate(0.5).min_calls(8));
        let on_another_thread = |work: &(dyn Fn() + Sync)| {
            std::thread::scope(|scope| scope.spawn(work).join().expect("no panic"));
        };
        // Threads take their stripes in turn: some share one, not all do.
        for _ in 0..4 {
            on_another_thread(&|| {
                time.set(Nanos::from(SECOND * earlier));
                succeed(&breaker);
            });
        }
        on_another_thread(&|| {
            time.set(Nanos::from(SECOND * 1_000));
            succeed(&breaker);
        });
        time.set(Nanos::from(SECOND * 10));
        for _ in 0..8 {
            on_another_thread(&|| drop(breaker.try_acquire().map(|permit| permit.failure())));
        }
        let state = breaker.state();
        assert_eq!(state, CircuitState::Open, "the others at {earlier} s");
    }
}

#[test]
fn a_call_is_slow_at_any_threshold_but_one_that_never_comes() {
    let century = SECOND * 3_155_760_000;
    for (threshold, slow) in [(century, 1), (Duration::MAX, 0)] {
        let policy = CircuitPolicy::builder().slow_rate(1.0);
        let (breaker, time) = breaker(policy.slow_threshold(threshold));
        let call = breaker.try_acquire().expect("closed");
        time.set(Nanos::MAX);
        call.success();
        assert_eq!(breaker.snapshot().slow, slow, "from {threshold:?} on");
    }
}
