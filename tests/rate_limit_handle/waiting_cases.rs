//! Waiting as reported in bugs elsewhere.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower_sluice::clock::{Clock, Nanos};
use tower_sluice::rate_limit::{Quota, RateLimitedReason, RateLimiter};

use super::{every_algorithm, manual, millis, secs};

#[test]
fn h25_a_large_request_that_cannot_be_served_in_time_takes_nothing() {
    // 0xProject/0x-mesh#585
    let (limiter, time) = manual(Quota::per_second(1).burst(5));
    limiter.check_n(5).expect("the burst");
    let mut large = task::spawn(limiter.wait_n(5, secs(3)));
    let refusal = assert_ready_err!(large.poll());
    assert_eq!(refusal.reason(), RateLimitedReason::WaitTooLong);
    assert_eq!(refusal.retry_after(), Some(secs(5)));

    let mut small = task::spawn(limiter.wait(secs(3)));
    assert_pending!(small.poll());
    time.advance(secs(1));
    assert_ready_ok!(small.poll());

    let mut never = task::spawn(limiter.wait_n(6, secs(3)));
    let refusal = assert_ready_err!(never.poll());
    assert_eq!(refusal.reason(), RateLimitedReason::CostAboveBurst);
    assert_eq!(refusal.retry_after(), None, "a different, permanent error");
}

#[test]
fn h48_a_cancelled_head_lets_the_rest_move_up() {
    // dotnet/runtime#77180
    let (limiter, time) = manual(Quota::per_second(2).burst(10));
    limiter.check_n(10).expect("the burst");
    let mut large = task::spawn(limiter.wait_n(10, secs(60)));
    assert_pending!(large.poll());
    let mut small = task::spawn(limiter.wait(secs(60)));
    assert_pending!(small.poll());
    drop(large);
    assert!(small.is_woken(), "it has become the head");
    assert_pending!(small.poll());
    time.advance(millis(500));
    assert!(small.is_woken(), "the next refill is its own");
    assert_ready_ok!(small.poll());
}

#[test]
fn h48_a_thousand_dropped_waiters_leave_nothing_behind() {
    let (limiter, time) = manual(Quota::per_second(2).burst(10));
    limiter.check_n(10).expect("the burst");
    let mut calls: Vec<_> = (0..1_000)
        .map(|_| task::spawn(limiter.wait(secs(3_600))))
        .collect();
    for call in &mut calls {
        assert_pending!(call.poll());
    }
    assert_eq!(limiter.snapshot().waiting(), 1_000);
    // From the middle, the end and the front.
    calls.drain(300..700);
    calls.truncate(500);
    calls.clear();
    assert_eq!(limiter.snapshot().waiting(), 0, "the gauge is back at zero");
    time.advance(secs(5));
    let passed = (0..20).filter(|_| limiter.check().is_ok()).count();
    assert_eq!(passed, 10, "no token was lost");
}

/// Twenty callers at once on a paused clock; the instants, in nanoseconds, at which they passed.
async fn released_together(quota: Quota, outside: bool) -> Vec<u64> {
    let limiter = RateLimiter::new(quota);
    let passed = Arc::new(Mutex::new(Vec::new()));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (limiter, passed) = (limiter.clone(), passed.clone());
        calls.spawn(async move {
            if limiter.wait(secs(10)).await.is_ok() {
                passed.lock().push(limiter.clock().now().as_u64());
            }
        });
    }
    if outside {
        let (limiter, passed) = (limiter.clone(), passed.clone());
        calls.spawn(async move {
            for _ in 0..100 {
                tokio::time::sleep(millis(130)).await;
                if limiter.check().is_ok() {
                    passed.lock().push(limiter.clock().now().as_u64());
                }
            }
        });
    }
    while calls.join_next().await.is_some() {}
    let mut passed = Arc::try_unwrap(passed)
        .expect("all tasks are done")
        .into_inner();
    passed.sort_unstable();
    passed
}

#[tokio::test(start_paused = true)]
async fn h60_nobody_passes_without_a_token() {
    // joshrotenberg/tower-resilience#363: a waiter went through after its sleep.
    for quota in every_algorithm(2, secs(1)) {
        for outside in [false, true] {
            let passed = released_together(quota, outside).await;
            for (before, at) in passed.iter().enumerate() {
                let most = 2 + 2 * (at + 1_000_000) / 1_000_000_000;
                assert!(before as u64 <= most, "{quota}: {before} before {at} ns");
            }
            assert!(passed.len() >= 20, "{quota}: ten seconds serve all of them");
        }
    }
}

#[test]
fn h68_turns_booked_in_a_later_window_stay_there() {
    // resilience4j/resilience4j#822
    let quota = Quota::with_period(3, secs(10)).fixed_window();
    for (max_wait, waits) in [(secs(12), 3), (secs(25), 6)] {
        let (limiter, time) = manual(quota);
        let mut calls: Vec<_> = (0..9)
            .map(|_| task::spawn(limiter.wait(max_wait)))
            .collect();
        for (number, call) in calls.iter_mut().enumerate() {
            match number {
                0..3 => drop(assert_ready_ok!(call.poll())),
                booked if booked < 3 + waits => assert_pending!(call.poll()),
                _ => {
                    let refusal = assert_ready_err!(call.poll());
                    assert_eq!(refusal.reason(), RateLimitedReason::WaitTooLong);
                    assert_eq!(refusal.retry_after(), Some(secs(20)));
                }
            }
        }
        time.advance(secs(10));
        let mut newcomer = task::spawn(limiter.wait(secs(5)));
        let refusal = assert_ready_err!(newcomer.poll());
        assert_eq!(
            refusal.reason(),
            RateLimitedReason::WaitTooLong,
            "no overtaking"
        );
        for call in &mut calls[3..6] {
            assert!(call.is_woken());
            assert_ready_ok!(call.poll());
        }
        assert!(
            limiter.check().is_err(),
            "a window never admits more than 3"
        );
        if waits == 6 {
            for call in &mut calls[6..9] {
                assert_pending!(call.poll());
            }
            time.advance(secs(10));
            for call in &mut calls[6..9] {
                assert_ready_ok!(call.poll());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_default_clock_wakes_a_waiter_at_its_turn() {
    let limiter = RateLimiter::builder(Quota::per_second(4).burst(1))
        .clock(Clock::tokio())
        .build()
        .expect("valid");
    limiter.check().expect("the first");
    let allowed = limiter.wait(secs(1)).await.expect("a quarter of a second");
    assert!(allowed.waited() >= millis(250) && allowed.waited() < millis(260));
}

#[test]
fn a_head_that_nobody_polls_holds_up_nobody() {
    for quota in every_algorithm(1, secs(1)) {
        let (limiter, time) = manual(quota);
        limiter.check().expect("the first");
        let never_polled = limiter.wait(Duration::MAX);
        let mut polled_once = task::spawn(limiter.wait(Duration::MAX));
        assert_pending!(polled_once.poll());
        let mut last = task::spawn(limiter.wait(Duration::MAX));
        assert_pending!(last.poll());
        let mut passed = 0;
        loop {
            time.advance(secs(1));
            passed += 1;
            if last.is_woken() && last.poll().is_ready() {
                break;
            }
            assert!(passed < 6, "{quota}: those ahead were served, and then it");
        }
        drop((never_polled, polled_once));
    }
}

#[test]
fn at_the_end_of_time_a_wait_sleeps_or_is_refused() {
    for quota in every_algorithm(1, secs(1)) {
        for left in [0, 1, 1_000_000_000, u64::MAX >> 1] {
            let (limiter, time) = manual(quota);
            time.set(Nanos::new(u64::MAX - left));
            limiter.check().expect("the last");
            let mut call = task::spawn(limiter.wait(Duration::MAX));
            // That it returns is the point: no turn may be planned for an instant already past.
            if call.poll().is_pending() {
                time.set(Nanos::MAX);
                assert!(call.poll().is_ready(), "{quota}: no time is left to wait");
            }
        }
    }
}

#[test]
fn a_refused_wait_names_the_quota_with_the_longest_wait_and_shows_all() {
    let time = Clock::manual();
    let hour = Quota::per_hour(2);
    let limiter = RateLimiter::builder(Quota::per_second(2))
        .quota(hour)
        .clock(&time)
        .build()
        .expect("valid");
    limiter.check_n(2).expect("the burst of both");
    let refusal = assert_ready_err!(task::spawn(limiter.wait(secs(1))).poll());
    assert_eq!(refusal.reason(), RateLimitedReason::WaitTooLong);
    assert_eq!(refusal.quota(), &hour, "the hour is what it would wait for");
    assert_eq!(refusal.retry_after(), Some(secs(1_800)));
    assert_eq!(refusal.standings().len(), 2);
}
