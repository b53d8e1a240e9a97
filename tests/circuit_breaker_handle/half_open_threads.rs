use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitOpenReason, CircuitState, Permit, TransitionReason,
};

use crate::kit::{SECOND, breaker, told_breaker, trip, trips_at};

/// Lets `callers` threads ask at once, and hold what they get until all have asked. Gives how
/// many were admitted, after ending each of those with `end`.
fn rush(breaker: &CircuitBreaker, callers: usize, end: impl Fn(Permit<'_>) + Sync) -> usize {
    let (start, asked) = (Barrier::new(callers), Barrier::new(callers));
    let admitted = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                start.wait();
                let permit = breaker.try_acquire();
                asked.wait();
                match permit {
                    Ok(permit) => {
                        admitted.fetch_add(1, Ordering::Relaxed);
                        end(permit);
                    }
                    Err(refused) => assert!(
                        matches!(
                            refused.reason(),
                            CircuitOpenReason::Open
                                | CircuitOpenReason::ProbesOut
                                | CircuitOpenReason::Forced
                        ),
                        "a typed refusal: {refused:?}"
                    ),
                }
            });
        }
    });
    admitted.into_inner()
}

/// nodeshift/opossum#119: half-open let all traffic through.
#[test]
fn h04_of_a_hundred_at_once_one_is_the_probe() {
    let (breaker, time) = breaker(trips_at(1).probes(1));
    trip(&breaker);
    time.advance(SECOND);
    let fail = |permit: Permit<'_>| {
        permit.failure();
    };
    assert_eq!(rush(&breaker, 100, fail), 1);
    assert_eq!(breaker.state(), CircuitState::Open, "the probe failed");
    assert_eq!(rush(&breaker, 100, fail), 0, "all refused");
}

/// resilience4j/resilience4j#1432: a burst at the moment of leaving open sent more than the
/// permitted probes.
#[test]
fn h08_a_burst_at_the_reopen_time_sends_the_permitted_probes_and_no_more() {
    const CALLERS: usize = 64;
    const ROUNDS: usize = 500;
    let (breaker, time, told) = told_breaker(trips_at(1).probes(2).open_growth(1.0));
    let barrier = Barrier::new(CALLERS + 1);
    let admitted = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    barrier.wait(); // the moment has come
                    let permit = breaker.try_acquire();
                    admitted.fetch_add(usize::from(permit.is_ok()), Ordering::Relaxed);
                    barrier.wait(); // all have asked
                    drop(permit);
                    barrier.wait(); // all have ended
                }
            });
        }
        for round in 0..ROUNDS {
            trip(&breaker);
            told.take();
            time.advance(SECOND);
            for _ in 0..3 {
                barrier.wait();
            }
            assert_eq!(admitted.swap(0, Ordering::Relaxed), 2, "round {round}");
            let entered = told.transitions();
            let half_open = entered.iter().filter(|t| t.to == CircuitState::HalfOpen);
            assert_eq!(half_open.count(), 1, "round {round}: one transition");
            assert_eq!(breaker.snapshot().probes_in_flight, 0, "round {round}");
            breaker.reset();
        }
    });
}

/// resilience4j/resilience4j#674: two callers raced to enter half-open and one got an internal
/// error. A manual command given during the race wins.
#[test]
fn h13_every_racing_caller_gets_a_permit_or_a_typed_refusal_and_a_command_wins() {
    for round in 0..100 {
        let (breaker, time, told) = told_breaker(trips_at(1).probes(1));
        trip(&breaker);
        time.advance(SECOND);
        let barrier = Barrier::new(3);
        let call = || {
            barrier.wait();
            if let Ok(permit) = breaker.try_acquire() {
                permit.success();
            }
        };
        thread::scope(|scope| {
            scope.spawn(call);
            scope.spawn(call);
            barrier.wait();
            match round % 2 {
                0 => breaker.force_open(),
                _ => breaker.force_close(),
            }
        });
        let expected = match round % 2 {
            0 => CircuitState::Open,
            _ => CircuitState::Closed,
        };
        assert_eq!(breaker.state(), expected, "the command wins");
        let transitions = told.transitions();
        for pair in transitions.windows(2) {
            assert_eq!(pair[0].to, pair[1].from, "a chain: {transitions:?}");
        }
        let last = transitions.last().map(|t| t.reason);
        let forced = [TransitionReason::ForcedOpen, TransitionReason::ForcedClosed];
        assert!(last.is_some_and(|last| forced.contains(&last)));
    }
}
