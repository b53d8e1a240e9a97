//! Quotas replaced while the limiter runs.

use std::time::Duration;

use tokio_test::{assert_pending, assert_ready_ok, task};
use tower_sluice::rate_limit::{Algorithm, Quota, RateLimiter};

use super::{every_algorithm, greedy, manual, millis, secs};

#[test]
fn h46_a_new_quota_is_in_force_at_once_and_wakes_those_who_wait() {
    // afreidah/s3-orchestrator#84
    let (limiter, time) = manual(Quota::per_second(100));
    limiter.check_n(50).expect("half of the burst");
    limiter
        .set_quota(Quota::per_second(1))
        .expect("the same algorithm");
    assert!(limiter.check().is_ok() || limiter.snapshot().remaining() == 0);
    assert!(
        limiter.snapshot().remaining() <= 1,
        "no more than the new burst"
    );
    assert!(
        greedy(&limiter, &time, secs(10)) <= 10,
        "one a second from here on"
    );

    time.advance(secs(1));
    limiter.check().expect("the one of this second");
    let mut waiting = task::spawn(limiter.wait(secs(60)));
    assert_pending!(waiting.poll());
    limiter
        .set_quota(Quota::per_second(50))
        .expect("the same algorithm");
    assert!(waiting.is_woken(), "it looks at its turn again");
    assert_pending!(waiting.poll());
    time.advance(millis(20));
    assert!(waiting.is_woken(), "the old wait is not slept out");
    assert_ready_ok!(waiting.poll());
}

#[test]
fn h66_lowering_the_limit_keeps_refilling() {
    // resilience4j/resilience4j#2489
    let period = millis(5);
    for algorithm in 0..4 {
        // A sliding window still weighs the one before.
        let sliding = every_algorithm(5, period)[algorithm].algorithm() == Algorithm::SlidingWindow;
        let refill = if sliding { 2 * period } else { period };
        for lower in [2, 1] {
            let (limiter, time) = manual(every_algorithm(5, period)[algorithm]);
            let quota = every_algorithm(lower, period)[algorithm];
            limiter.set_quota(quota).expect("the same algorithm");
            time.advance(10 * period);
            while limiter.check().is_ok() {}
            time.advance(refill);
            let passed = (0..20).filter(|_| limiter.check().is_ok()).count();
            assert_eq!(passed, lower as usize, "{quota}: one period, one limit");

            let raised = every_algorithm(10, period)[algorithm];
            limiter.set_quota(raised).expect("the same algorithm");
            time.advance(2 * period);
            let passed = (0..20).filter(|_| limiter.check().is_ok()).count();
            assert_eq!(passed, 10, "{raised}: raised, and full after a period");
        }
    }
}

#[test]
fn h66_lowering_the_limit_while_calls_wait_serves_or_refuses_each_of_them() {
    let (limiter, time) = manual(Quota::with_period(5, millis(5)));
    limiter.check_n(5).expect("the burst");
    let mut waiting: Vec<_> = (0..4)
        .map(|_| task::spawn(limiter.wait(millis(5))))
        .collect();
    for call in &mut waiting {
        assert_pending!(call.poll());
    }
    // One every 2.5 ms now, and as long to full as before: two fit in the five milliseconds.
    limiter
        .set_quota(Quota::with_period(2, millis(5)))
        .expect("the same algorithm");
    let refused = waiting.iter_mut().filter(|call| call.is_woken()).count();
    assert!(
        refused >= 2,
        "those that no longer fit hear of it at once: {refused}"
    );
    let mut served = 0;
    for _ in 0..20 {
        time.advance(Duration::from_micros(500));
        waiting.retain_mut(|call| {
            if !call.is_woken() {
                return true;
            }
            match call.poll() {
                std::task::Poll::Ready(outcome) => {
                    served += usize::from(outcome.is_ok());
                    false
                }
                std::task::Poll::Pending => true,
            }
        });
    }
    assert!(waiting.is_empty(), "nobody is left behind");
    assert_eq!(served, 2, "two fit");
    assert_eq!(limiter.snapshot().waiting(), 0);
}

#[test]
fn calls_made_within_a_higher_limit_are_no_debt_under_a_lower_one() {
    for aligned in [false, true] {
        let per_minute = |limit| {
            let quota = Quota::per_minute(limit).fixed_window();
            if aligned { quota.aligned() } else { quota }
        };
        let (limiter, time) = manual(per_minute(100));
        limiter.check_n(100).expect("the window");
        limiter
            .set_quota(per_minute(5))
            .expect("the same algorithm");
        let refusal = limiter.check().expect_err("this window is spent");
        assert_eq!(refusal.retry_after(), Some(secs(60)), "until it ends");
        limiter.check_n(0).expect("nothing is owed");
        time.advance(secs(60));
        let passed = (0..20).filter(|_| limiter.check().is_ok()).count();
        assert_eq!(passed, 5, "the next one is whole");
    }
}

#[test]
fn another_period_of_a_sliding_window_gives_nothing_for_free() {
    let sliding = |period| Quota::with_period(100, period).sliding_window();
    let (limiter, time) = manual(sliding(secs(1)));
    limiter.check().expect("opens the window");
    time.advance(millis(999));
    limiter.check_n(99).expect("the rest, at its end");
    time.advance(millis(101));
    let before = limiter.snapshot().remaining();
    for period in [secs(10), millis(300), secs(3_600), secs(1)] {
        limiter
            .set_quota(sliding(period))
            .expect("the same algorithm");
        assert_eq!(limiter.snapshot().remaining(), before, "{period:?}");
    }
}

#[test]
fn setting_the_same_quota_again_changes_nothing() {
    for quota in every_algorithm(7, secs(3)) {
        let (limiter, time) = manual(quota);
        time.advance(secs(50));
        limiter.check_n(5).expect("some of it");
        let before = limiter.snapshot();
        for _ in 0..1_000 {
            limiter.set_quota(quota).expect("its own");
        }
        assert_eq!(limiter.snapshot(), before, "{quota}");
    }
}

#[test]
fn going_back_and_forth_between_quotas_gives_nothing_for_free() {
    for (limit, other) in [(7, 3), (1, 1_000), (1_000, 7)] {
        for algorithm in 0..4 {
            let quotas = [limit, other].map(|limit| every_algorithm(limit, secs(3))[algorithm]);
            let (limiter, time) = manual(quotas[0]);
            time.advance(secs(50));
            while limiter.check().is_ok() {}
            let largest = limit.max(other);
            let mut passed = 0;
            for round in 0..60 {
                limiter
                    .set_quota(quotas[round % 2])
                    .expect("the same algorithm");
                passed += (0..largest).filter(|_| limiter.check().is_ok()).count();
            }
            // A window that counted 3 of 3 has room when 7 is the limit; that is all there is.
            assert!(
                passed as u32 <= largest,
                "{quotas:?}: {passed} at one instant"
            );
        }
    }
}

#[test]
fn the_time_to_full_is_kept_up_to_the_new_quotas_own() {
    let (limiter, _time) = manual(Quota::per_minute(60));
    limiter.check_n(30).expect("half");
    let to_full = |limiter: &RateLimiter| limiter.snapshot().standings()[0].reset_after();
    assert_eq!(to_full(&limiter), secs(30));
    limiter
        .set_quota(Quota::per_minute(120))
        .expect("the same algorithm");
    assert_eq!(to_full(&limiter), secs(30), "half spent stays half spent");
    limiter
        .set_quota(Quota::per_second(10))
        .expect("the same algorithm");
    assert_eq!(
        to_full(&limiter),
        secs(1),
        "no longer than the new one takes"
    );
    assert_eq!(limiter.snapshot().remaining(), 0, "and nothing for free");
}

#[test]
fn another_algorithm_or_number_of_quotas_is_a_typed_error_and_changes_nothing() {
    let (limiter, _time) = manual(Quota::per_second(3));
    limiter.check().expect("one of three");
    let before = limiter.snapshot();
    let window = Quota::per_second(3).fixed_window();
    assert_eq!(limiter.set_quota(window).unwrap_err().field(), "quota");
    assert_eq!(limiter.set_quotas(&[]).unwrap_err().field(), "quota");
    let two = [Quota::per_second(3), Quota::per_hour(3)];
    assert_eq!(limiter.set_quotas(&two).unwrap_err().field(), "quota");
    assert_eq!(limiter.snapshot(), before);
    assert_eq!(limiter.quotas(), [Quota::per_second(3)]);
}

#[test]
fn a_new_quota_gives_nothing_to_a_clock_that_then_goes_back() {
    // The same as a call that read the clock before the quota was replaced and decides after.
    for algorithm in 0..4 {
        for (limit, period) in [(4, secs(1)), (3, secs(2)), (3, secs(30)), (2, millis(10))] {
            let (limiter, time) = manual(every_algorithm(3, secs(1))[algorithm]);
            time.advance(secs(10));
            while limiter.check().is_ok() {}
            let spent_at = time.now();
            time.advance(secs(10));
            let quota = every_algorithm(limit, period)[algorithm];
            limiter.set_quota(quota).expect("the same algorithm");
            time.set(spent_at);
            let early = (0..20).filter(|_| limiter.check().is_ok()).count();
            time.advance(secs(10));
            let passed = (0..20).filter(|_| limiter.check().is_ok()).count();
            let limit = limit as usize;
            if quota.algorithm() == Algorithm::Gcra {
                assert_eq!(early + passed, limit, "{quota}: as if it had not gone back");
            } else {
                // A sliding window rounds what the window before weighs down.
                let sliding = quota.algorithm() == Algorithm::SlidingWindow;
                let more = limit.saturating_sub(3) + usize::from(sliding);
                assert!(early <= more, "{quota}: the window was spent, {early}");
                assert_eq!(passed, limit, "{quota}: nor is anything taken away");
            }
        }
    }
}
