//! Many threads on one limiter.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tower_sluice::clock::{Clock, Nanos};
use tower_sluice::rate_limit::{Quota, RateLimiter};

use super::{every_algorithm, manual, secs};

#[test]
fn h47_the_last_token_goes_to_one_of_64_threads() {
    // RicherTunes/Brainarr#127: check and take were two steps.
    const ROUNDS: usize = 1_000; // as the report asks
    let kinds = every_algorithm(1, secs(3_600));
    let time = Clock::manual();
    let make = |_| -> Vec<RateLimiter> {
        let single = kinds.iter().map(|&quota| RateLimiter::builder(quota));
        let both = RateLimiter::builder(kinds[0]).quota(kinds[1]);
        single
            .chain([both])
            .map(|builder| builder.clock(&time).build().expect("valid"))
            .collect()
    };
    let rounds: Vec<Vec<RateLimiter>> = (0..ROUNDS).map(make).collect();
    let passed: Vec<AtomicUsize> = (0..ROUNDS * 5).map(|_| AtomicUsize::new(0)).collect();
    let barrier = Barrier::new(64);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                for (round, limiters) in rounds.iter().enumerate() {
                    barrier.wait();
                    for (kind, limiter) in limiters.iter().enumerate() {
                        if limiter.check().is_ok() {
                            passed[round * 5 + kind].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    for (at, passed) in passed.iter().enumerate() {
        let passed = passed.load(Ordering::Relaxed);
        assert_eq!(
            passed,
            1,
            "round {}, limiter {}: exactly one",
            at / 5,
            at % 5
        );
    }
}

/// Hammers for a while and returns every admission, as clock readings before and after the call.
fn hammer(limiter: &RateLimiter, for_nanos: u64) -> Vec<(u64, u64)> {
    let admitted = Mutex::new(Vec::new());
    let start = limiter.clock().now().as_u64();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut mine = Vec::new();
                loop {
                    let before = limiter.clock().now().as_u64();
                    if before > start + for_nanos {
                        break;
                    }
                    if limiter.check().is_ok() {
                        mine.push((before, limiter.clock().now().as_u64()));
                    }
                }
                admitted.lock().extend(mine);
            });
        }
    });
    admitted.into_inner()
}

#[test]
fn two_threads_hammering_never_get_more_than_the_readings_allow() {
    for rate in [1_000_u32, 700_000] {
        let burst = 50;
        let limiter = RateLimiter::new(Quota::per_second(rate).burst(burst));
        let mut admitted = hammer(&limiter, 100_000_000);
        // Any span from a call's earliest to another's latest reading holds all between them.
        admitted.sort_unstable_by_key(|&(_, after)| after);
        let mut earliest: Vec<u64> = admitted.iter().map(|&(before, _)| before).collect();
        earliest.sort_unstable();
        for (index, &(_, after)) in admitted.iter().enumerate() {
            // From the beginning, and over short spans.
            for back in [index, index.min(60), index.min(1_000)] {
                let first = index - back;
                let from = admitted[first..=index].iter().map(|&(before, _)| before);
                let from = if back > 1_000 {
                    earliest[0]
                } else {
                    from.min().unwrap_or(0)
                };
                let span = u128::from(after - from) + 1;
                let most = u128::from(burst) + u128::from(rate) * span / 1_000_000_000;
                assert!(
                    (back as u128) < most,
                    "{rate}/s: {} admitted in {span} ns, not above {most}",
                    back + 1
                );
            }
        }
    }
}

#[test]
fn quotas_replaced_under_fire_admit_no_more_than_the_larger_promises() {
    let (limiter, time) = manual(Quota::per_second(1_000).burst(10));
    let quotas = [
        Quota::per_second(1_000).burst(10),
        // No whole number of nanoseconds: another scale.
        Quota::per_second(700).burst(7),
        Quota::per_second(300).burst(3),
    ];
    let admitted = AtomicUsize::new(0);
    let step = Duration::from_micros(10);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        if limiter.check().is_ok() {
                            admitted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for round in 0..2_000 {
                time.advance(step);
                limiter
                    .set_quota(quotas[round % 3])
                    .expect("the same algorithm");
            }
        });
        for caller in callers {
            caller.join().expect("no caller panics");
        }
    });
    let elapsed = 2_000 * step;
    // All three fill in 10 ms, so replacing one by another keeps the share that is spent. A call
    // takes a millisecond of that at least: ten to begin with, and one for each that passes; one
    // more for 2,000 roundings to the nanosecond.
    let most = 10 + 1 + elapsed.as_millis() as usize;
    assert!(admitted.load(Ordering::Relaxed) <= most);
    assert!(limiter.snapshot().remaining() <= 10, "no state was misread");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_threads_wait_and_each_is_served() {
    for quota in [
        Quota::per_second(20_000).burst(1),
        Quota::per_second(20_000).fixed_window(),
    ] {
        let limiter = RateLimiter::new(quota);
        let runtime = tokio::runtime::Handle::current();
        let threads: Vec<_> = (0..64)
            .map(|thread| {
                let (limiter, runtime) = (limiter.clone(), runtime.clone());
                thread::spawn(move || {
                    let _inside = runtime.enter();
                    let mut served = 0;
                    for call in 0..20 {
                        let wait = limiter.wait(secs(60));
                        // Some are given up, at once or after a poll.
                        if (thread + call) % 5 == 0 {
                            let mut dropped = tokio_test::task::spawn(wait);
                            let _ = dropped.poll();
                            continue;
                        }
                        runtime.block_on(wait).expect("a minute is enough");
                        served += 1;
                    }
                    served
                })
            })
            .collect();
        let joined = tokio::task::spawn_blocking(|| {
            let served = threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"));
            served.sum::<usize>()
        });
        assert_eq!(
            joined.await.expect("joined"),
            64 * 16,
            "{quota}: everyone was served"
        );
        assert_eq!(limiter.snapshot().waiting(), 0, "{quota}: nobody is left");
    }
}

#[test]
fn threads_that_move_the_clock_and_threads_that_wait_lose_no_wakeup() {
    let (limiter, time) = manual(Quota::per_second(1_000).burst(1));
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let wait = limiter.wait(Duration::from_secs(3_600));
                    tokio_test::block_on(wait).expect("an hour is enough");
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        scope.spawn(|| {
            while done.load(Ordering::SeqCst) < 400 {
                time.set(Nanos::new(time.now().as_u64() + 1_000_000));
                thread::yield_now();
            }
        });
    });
    assert_eq!(limiter.snapshot().waiting(), 0);
}
