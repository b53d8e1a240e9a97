//! Costs known only afterwards.

use tower_sluice::rate_limit::{Quota, RateLimiter};

use super::{every_algorithm, manual, millis, secs};

fn remaining(limiter: &RateLimiter) -> u32 {
    limiter.snapshot().remaining()
}

#[test]
fn a_dropped_reservation_gives_its_estimate_back() {
    for quota in every_algorithm(10, secs(10)) {
        let (limiter, time) = manual(quota);
        time.advance(secs(100));
        let call = limiter.reserve(4).expect("it fits");
        assert_eq!(remaining(&limiter), 6, "{quota}: charged for now");
        assert_eq!(call.allowed().remaining(), 6);
        drop(call);
        assert_eq!(remaining(&limiter), 10, "{quota}: nothing was used");
    }
}

#[test]
fn settling_less_gives_the_difference_back_once() {
    for quota in every_algorithm(10, secs(10)) {
        let (limiter, _time) = manual(quota);
        limiter.reserve(6).expect("it fits").settle(1);
        assert_eq!(remaining(&limiter), 9, "{quota}");
    }
}

#[test]
fn settling_the_estimate_changes_nothing() {
    let (limiter, _time) = manual(Quota::per_second(10));
    limiter.reserve(6).expect("it fits").settle(6);
    assert_eq!(remaining(&limiter), 4);
}

#[test]
fn settling_more_leaves_a_debt_that_time_pays_off() {
    for quota in every_algorithm(10, secs(10)) {
        let (limiter, time) = manual(quota);
        limiter.reserve(5).expect("it fits").settle(15);
        assert_eq!(remaining(&limiter), 0, "{quota}: remaining does not wrap");
        let refusal = limiter.check().expect_err("in debt");
        let wait = refusal.retry_after().expect("a debt ends");
        time.advance(wait - millis(1));
        assert!(limiter.check().is_err(), "{quota}: not before it is paid");
        time.advance(millis(1));
        assert!(limiter.check().is_ok(), "{quota}: and then it is exact");
    }
}

#[test]
fn the_largest_debt_does_not_overflow() {
    for quota in every_algorithm(10, secs(10)) {
        let (limiter, time) = manual(quota);
        for _ in 0..5 {
            if let Ok(call) = limiter.reserve(1) {
                call.settle(u32::MAX);
            }
        }
        assert!(limiter.check().is_err(), "{quota}: in debt");
        time.advance(std::time::Duration::MAX);
        let _ = limiter.check();
    }
}

#[test]
fn what_time_has_refilled_is_not_given_back_again() {
    let (limiter, time) = manual(Quota::per_second(1).burst(10));
    let call = limiter.reserve(10).expect("the burst");
    time.advance(secs(9));
    let passed = (0..20).filter(|_| limiter.check().is_ok()).count();
    assert_eq!(passed, 9, "nine seconds, nine calls");
    drop(call);
    let passed = (0..20).filter(|_| limiter.check().is_ok()).count();
    assert_eq!(
        passed, 1,
        "with the tenth they are the burst that any instant may see"
    );
}

#[test]
fn nothing_comes_back_once_the_window_has_turned_over() {
    for quota in [
        Quota::per_second(10).fixed_window(),
        Quota::per_second(10).sliding_window(),
    ] {
        let (limiter, time) = manual(quota);
        let call = limiter.reserve(10).expect("the limit");
        time.advance(secs(1));
        let before = remaining(&limiter);
        drop(call);
        assert_eq!(remaining(&limiter), before, "{quota}");
    }
}

#[test]
fn nothing_comes_back_once_the_quota_was_replaced() {
    for algorithm in 0..4 {
        let (limiter, _time) = manual(every_algorithm(10, secs(10))[algorithm]);
        let call = limiter.reserve(5).expect("it fits");
        let new = every_algorithm(9, secs(10))[algorithm];
        limiter.set_quota(new).expect("the same algorithm");
        let before = remaining(&limiter);
        drop(call);
        assert_eq!(remaining(&limiter), before, "{new}");
    }
}

#[test]
fn what_comes_back_goes_to_whoever_waits() {
    let (limiter, _time) = manual(Quota::per_second(1).burst(2));
    let call = limiter.reserve(2).expect("the burst");
    let mut waiting = tokio_test::task::spawn(limiter.wait_n(2, secs(10)));
    tokio_test::assert_pending!(waiting.poll());
    drop(call);
    assert!(waiting.is_woken(), "its turn has come");
    tokio_test::assert_ready_ok!(waiting.poll());
}

#[test]
fn an_estimate_above_the_burst_is_refused_and_takes_nothing() {
    let (limiter, _time) = manual(Quota::per_second(3));
    let refusal = limiter.reserve(4).expect_err("never");
    assert_eq!(refusal.retry_after(), None);
    assert_eq!(remaining(&limiter), 3);
}

#[test]
fn a_debt_of_half_a_million_years_ends_with_a_new_quota() {
    let (limiter, time) = manual(Quota::per_hour(1));
    for round in 0..10 {
        let call = limiter.reserve(1).expect("one is there");
        call.settle(u32::MAX);
        let quota = [Quota::per_second(1), Quota::per_second(3).burst(1)][round % 2];
        limiter.set_quota(quota).expect("the same algorithm");
        assert!(limiter.check().is_err(), "round {round}: nothing for free");
        time.advance(quota.interval() + std::time::Duration::from_nanos(1));
        assert!(
            limiter.check().is_ok(),
            "round {round}: no longer than the new quota's own"
        );
        assert!(limiter.check().is_err(), "round {round}: one, and not two");
        time.advance(secs(1));
    }
}

#[test]
fn the_largest_debt_does_not_overflow_where_quotas_were_replaced() {
    let (limiter, time) = manual(Quota::per_hour(10));
    limiter.check_n(10).expect("a full bucket");
    let year = secs(365 * 86_400);
    // Each leaves the states of the next one above all that were.
    for quota in [Quota::per_second(10), Quota::with_period(1, year)] {
        limiter.set_quota(quota).expect("the same algorithm");
    }
    time.advance(secs(2));
    let call = limiter.reserve(1).expect("full again");
    call.settle(u32::MAX);
    time.advance(year);
    limiter.check().expect_err("a debt of billions of years");
    assert_eq!(remaining(&limiter), 0);
    limiter
        .set_quota(Quota::per_second(10))
        .expect("the same algorithm");
    limiter.check().expect_err("no free burst");
    time.advance(secs(1));
    limiter.check_n(10).expect("full");
}
