//! Trying a quota out without refusing anybody.

use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{Quota, RateLimitedReason, RateLimiter};

use super::{every_algorithm, secs};

fn shadow(quota: Quota) -> RateLimiter {
    RateLimiter::builder(quota)
        .clock(Clock::manual())
        .shadow()
        .build()
        .expect("valid")
}

#[test]
fn nothing_is_refused_and_what_would_have_been_is_counted_and_told() {
    for quota in every_algorithm(3, secs(10)) {
        let limiter = shadow(quota);
        for _ in 0..3 {
            let allowed = limiter.check().expect("within the limit");
            assert!(
                allowed.held_back().is_none(),
                "{quota}: nothing to hold back"
            );
        }
        for held_back in 1..=5 {
            let allowed = limiter.check().expect("shadow mode never refuses");
            let refusal = allowed.held_back().expect("it says what it held back");
            assert_eq!(refusal.reason(), RateLimitedReason::Spent);
            assert_eq!(allowed.remaining(), 0, "{quota}");
            assert_eq!(
                limiter.snapshot().held_back(),
                held_back,
                "{quota}: counted"
            );
        }
    }
}

#[test]
fn a_cost_above_the_burst_passes_too() {
    let limiter = shadow(Quota::per_second(3));
    let allowed = limiter.check_n(4).expect("shadow mode never refuses");
    let refusal = allowed.held_back().expect("held back");
    assert_eq!(refusal.reason(), RateLimitedReason::CostAboveBurst);
}

#[test]
fn peeking_still_tells_the_truth_and_counts_nothing() {
    let limiter = shadow(Quota::per_second(1));
    limiter.check().expect("the first");
    assert!(limiter.peek().is_err(), "it would be refused");
    assert_eq!(limiter.snapshot().held_back(), 0, "a look is no call");
}

#[test]
fn nothing_waits_and_reservations_hold() {
    let limiter = shadow(Quota::per_second(1));
    limiter.check().expect("the first");
    let mut wait = tokio_test::task::spawn(limiter.wait(secs(0)));
    let allowed = tokio_test::assert_ready_ok!(wait.poll());
    assert!(allowed.held_back().is_some());
    let call = limiter.reserve(1).expect("shadow mode never refuses");
    call.settle(1_000);
    assert_eq!(limiter.snapshot().held_back(), 2);
    assert_eq!(
        limiter.snapshot().standings()[0].reset_after(),
        secs(1),
        "what was held back spends nothing, settled or not"
    );
}
