use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::Duration;

use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitPolicy, CircuitPolicyBuilder, CircuitState, Outcome,
};
use tower_sluice::clock::{Clock, ManualClock};

use crate::kit::SECOND;

const THREADS: u64 = 2;

/// What one thread saw of its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    refused: u64,
    successes: u64,
    failures: u64,
    ignored: u64,
    cancelled: u64,
    panicked: u64,
}

impl Seen {
    fn admitted(&self) -> u64 {
        self.successes + self.failures + self.ignored + self.cancelled + self.panicked
    }
}

/// Makes `calls` calls of random ends, and moves the clock now and then.
fn hammer(breaker: &CircuitBreaker, time: &ManualClock, calls: u64, seed: u64) -> Seen {
    let mut random = seed;
    let mut seen = Seen::default();
    for _ in 0..calls {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let dice = random >> 33;
        if dice.is_multiple_of(64) {
            time.advance(Duration::from_millis(dice / 64 % 700));
        }
        let Ok(permit) = breaker.acquire_owned() else {
            seen.refused += 1;
            continue;
        };
        match dice / 8 % 100 {
            0..60 => {
                permit.record(Outcome::Success);
                seen.successes += 1;
            }
            60..80 => {
                permit.record(Outcome::Failure);
                seen.failures += 1;
            }
            80..88 => {
                permit.record(Outcome::Ignored);
                seen.ignored += 1;
            }
            88..98 => {
                drop(permit);
                seen.cancelled += 1;
            }
            _ => {
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    let _held = permit;
                    resume_unwind(Box::new("the call"));
                }));
                seen.panicked += 1;
            }
        }
    }
    seen
}

fn totals_add_up(policy: CircuitPolicyBuilder, calls: u64) {
    let time = Clock::manual();
    let policy = policy.probes(2).open_for(SECOND).build().unwrap();
    let breaker = CircuitBreaker::builder("hammered", policy)
        .clock(&time)
        .counters()
        .build();
    let seen: Vec<Seen> = thread::scope(|scope| {
        let (breaker, time) = (&breaker, &time);
        let work = |seed| move || hammer(breaker, time, calls / THREADS, seed);
        let threads: Vec<_> = (0..THREADS).map(|seed| scope.spawn(work(seed))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let sum = |field: fn(&Seen) -> u64| seen.iter().map(field).sum::<u64>();
    let snapshot = breaker.snapshot();
    let totals = snapshot.totals.expect("kept");
    assert_eq!(totals.in_flight, 0, "every permit came back");
    assert_eq!(snapshot.probes_in_flight, 0, "every probe's slot came back");
    assert_eq!(totals.admitted, sum(Seen::admitted), "admitted");
    assert_eq!(totals.refused, sum(|seen| seen.refused), "refused");
    assert_eq!(totals.successes, sum(|seen| seen.successes), "successes");
    assert_eq!(totals.failures, sum(|seen| seen.failures), "failures");
    assert_eq!(totals.ignored, sum(|seen| seen.ignored), "ignored");
    assert_eq!(totals.cancelled, sum(|seen| seen.cancelled), "cancelled");
    assert_eq!(totals.panicked, sum(|seen| seen.panicked), "panicked");
    assert!(
        snapshot.trips > 0 && totals.refused > 0,
        "it was put to use"
    );

    // Not wedged: from wherever it stands two good calls close it.
    time.advance(1_000 * SECOND);
    for _ in 0..2 {
        breaker.try_acquire().expect("due, or closed").success();
    }
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[test]
fn a_million_calls_on_two_threads_leave_no_permit_out_and_lose_no_count() {
    let rates = || CircuitPolicy::builder().failure_rate(0.3).min_calls(5);
    totals_add_up(rates().window(SECOND), 400_000);
    totals_add_up(rates().window_calls(20), 300_000);
    totals_add_up(CircuitPolicy::builder().consecutive(3), 150_000);
    let watched = rates()
        .consecutive(4)
        .slow_threshold(SECOND)
        .count_overdue();
    totals_add_up(watched.ramp_up(SECOND), 150_000);
}

#[test]
fn successes_counted_by_many_threads_are_all_in_the_window() {
    for policy in [
        CircuitPolicy::builder().failure_rate(1.0),
        CircuitPolicy::builder()
            .failure_rate(1.0)
            .window_calls(1 << 20),
    ] {
        let time = Clock::manual();
        let policy = policy.build().unwrap();
        let breaker = CircuitBreaker::builder("counted", policy)
            .clock(&time)
            .build();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        breaker.try_acquire().expect("closed").success();
                    }
                });
            }
        });
        assert_eq!(breaker.snapshot().calls, 40_000);
    }
}

/// Ends `calls` calls so on four threads at once.
fn end_on_threads(breaker: &CircuitBreaker, calls: usize, outcome: Outcome) {
    thread::scope(|scope| {
        for thread in 0..4 {
            let share = calls / 4 + usize::from(thread < calls % 4);
            scope.spawn(move || {
                for _ in 0..share {
                    breaker.try_acquire().expect("closed").record(outcome);
                }
            });
        }
    });
}

#[test]
fn the_failing_outcome_that_meets_a_condition_trips_whichever_threads_counted_the_others() {
    let rate = || CircuitPolicy::builder().failure_rate(0.5).min_calls(1_000);
    let policies = [
        CircuitPolicy::builder().consecutive(500),
        rate(),
        rate().window_calls(1_000),
    ];
    for policy in policies {
        let time = Clock::manual();
        let policy = policy.build().unwrap();
        let breaker = CircuitBreaker::builder("exact", policy)
            .clock(&time)
            .build();
        end_on_threads(&breaker, 500, Outcome::Success);
        end_on_threads(&breaker, 499, Outcome::Failure);
        assert_eq!(breaker.state(), CircuitState::Closed, "one short");
        breaker.try_acquire().expect("closed").failure();
        assert_eq!(breaker.state(), CircuitState::Open, "exactly now");
    }
}
