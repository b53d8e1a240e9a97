//! Exact under threads, first use of a key included.

use std::sync::Barrier;

use tower_sluice::WhenFull;
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{KeyedRateLimiter, Quota, RateLimitedReason};

const THREADS: usize = 64;

fn quotas(limit: u32) -> [Quota; 3] {
    let quota = Quota::per_hour(limit);
    [quota, quota.fixed_window(), quota.sliding_window()]
}

#[test]
fn h47_of_64_threads_that_bring_a_new_key_exactly_as_many_pass_as_its_quota_says() {
    const ROUNDS: u64 = 1_000;
    let time = Clock::manual();
    for quota in quotas(1) {
        let clients = KeyedRateLimiter::<u64>::builder(quota)
            .clock(&time)
            .build()
            .unwrap();
        let barrier = Barrier::new(THREADS);
        let round = |key| {
            barrier.wait();
            clients.check(&key).is_ok()
        };
        let admitted: Vec<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| scope.spawn(|| (0..ROUNDS).map(round).collect::<Vec<_>>()))
                .collect();
            let mut admitted = vec![0; ROUNDS as usize];
            for thread in threads {
                for (key, passed) in thread.join().unwrap().into_iter().enumerate() {
                    admitted[key] += u32::from(passed);
                }
            }
            admitted
        });
        assert!(
            admitted.iter().all(|passed| *passed == 1),
            "{quota}: {admitted:?}"
        );
    }
}

#[test]
fn h62_a_new_key_admits_exactly_its_limit_after_a_cost_that_never_fits() {
    let time = Clock::manual();
    for quota in quotas(10) {
        let clients = KeyedRateLimiter::<u64>::builder(quota)
            .clock(&time)
            .build()
            .unwrap();
        for key in 0..20 {
            let refusal = clients.check_n(&key, 11).unwrap_err();
            assert_eq!(refusal.reason(), RateLimitedReason::CostAboveBurst);
            let admitted = (0..30).filter(|_| clients.check(&key).is_ok()).count();
            assert_eq!(admitted, 10, "{quota}");
        }
    }
}

#[test]
fn the_cap_holds_and_counts_hold_while_threads_bring_new_keys_and_sweep() {
    let time = Clock::manual();
    for when_full in [WhenFull::Refuse, WhenFull::Overflow] {
        let clients = KeyedRateLimiter::<u64>::builder(Quota::per_hour(4))
            .max_keys(100)
            .when_full(when_full)
            .clock(&time)
            .build()
            .unwrap();
        let admitted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|thread| {
                    let clients = &clients;
                    scope.spawn(move || {
                        let mut admitted = 0;
                        for call in 0..1_000_u64 {
                            admitted += usize::from(clients.check(&(call * 7 % 300)).is_ok());
                            assert!(clients.len() <= 100, "the cap is hard");
                            if call % 100 == thread {
                                clients.sweep();
                            }
                        }
                        admitted
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        let overflow = if when_full == WhenFull::Overflow {
            4
        } else {
            0
        };
        assert_eq!(admitted, 100 * 4 + overflow, "{when_full:?}");
    }
}

#[test]
fn a_quota_changed_under_load_gives_nobody_more_than_the_larger_one() {
    let time = Clock::manual();
    let (small, large) = (Quota::per_hour(10), Quota::per_hour(20));
    for _ in 0..20 {
        let clients = KeyedRateLimiter::<u64>::builder(small)
            .clock(&time)
            .build()
            .unwrap();
        let admitted: usize = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..100).filter(|_| clients.check(&1).is_ok()).count()))
                .collect();
            for n in 0..10 {
                clients
                    .set_quota(if n % 2 == 0 { large } else { small })
                    .unwrap();
            }
            callers
                .into_iter()
                .map(|caller| caller.join().unwrap())
                .sum()
        });
        assert!((10..=20).contains(&admitted), "{admitted}");
    }
}
