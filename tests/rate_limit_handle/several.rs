//! Several quotas as one decision.

use proptest::prelude::*;
use tower_sluice::clock::{Clock, ManualClock, Nanos};
use tower_sluice::rate_limit::{Quota, RateLimitedReason, RateLimiter};

use super::{every_algorithm, secs};

fn limiter(quotas: &[Quota]) -> (RateLimiter, ManualClock) {
    let time = Clock::manual();
    let builder = RateLimiter::builder(quotas[0]).clock(&time);
    let builder = quotas[1..]
        .iter()
        .fold(builder, |builder, &quota| builder.quota(quota));
    (builder.build().expect("valid"), time)
}

#[test]
fn h50_a_minute_and_a_day_count_apart_and_decide_together() {
    // laravel/framework#51967: two limits with one key shared one counter.
    for algorithm in 0..4 {
        let minute = every_algorithm(5, secs(60))[algorithm];
        let day = every_algorithm(50, secs(86_400))[algorithm];
        let (limiter, _time) = limiter(&[minute, day]);
        for _ in 0..5 {
            limiter.check().expect("five a minute");
        }
        let refusal = limiter.check().expect_err("the sixth in a minute");
        assert_eq!(refusal.quota(), &minute, "the minute refused it");
        let day = &limiter.snapshot().standings()[1].clone();
        assert_eq!(day.remaining(), 45, "the day counts the five that passed");
        assert_eq!(refusal.standings().len(), 2, "the refusal shows both");
    }
}

#[test]
fn h50_two_limiters_never_share_a_state() {
    let (one, _) = limiter(&[Quota::per_minute(1)]);
    let (other, _) = limiter(&[Quota::per_minute(1)]);
    one.check().expect("its own");
    other.check().expect("and its own");
}

#[test]
fn the_refusal_names_the_quota_with_the_longest_wait() {
    let second = Quota::per_second(1);
    let hour = Quota::per_hour(2).fixed_window();
    let (limiter, time) = limiter(&[second, hour]);
    limiter.check().expect("first");
    let refusal = limiter.check().expect_err("one a second");
    assert_eq!(
        (refusal.quota(), refusal.retry_after()),
        (&second, Some(secs(1)))
    );
    time.advance(secs(1));
    limiter.check().expect("second");
    let refusal = limiter.check().expect_err("both are spent");
    assert_eq!(
        (refusal.quota(), refusal.retry_after()),
        (&hour, Some(secs(3_599)))
    );
}

#[test]
fn an_admission_tells_what_the_tightest_quota_leaves() {
    let (limiter, _time) = limiter(&[Quota::per_hour(100), Quota::per_second(3)]);
    let allowed = limiter.check().expect("both have room");
    assert_eq!(allowed.remaining(), 2);
    assert_eq!(allowed.quota(), &Quota::per_second(3));
    let remaining: Vec<u32> = allowed
        .standings()
        .iter()
        .map(|one| one.remaining())
        .collect();
    assert_eq!(remaining, [99, 2], "in the order given");
}

#[test]
fn a_cost_above_any_burst_is_refused_for_good_and_charged_to_none() {
    let (limiter, _time) = limiter(&[Quota::per_hour(100), Quota::per_second(3)]);
    let refusal = limiter.check_n(4).expect_err("more than 3");
    assert_eq!(refusal.reason(), RateLimitedReason::CostAboveBurst);
    assert_eq!(refusal.quota(), &Quota::per_second(3));
    let standings = limiter.snapshot();
    let remaining: Vec<u32> = standings
        .standings()
        .iter()
        .map(|one| one.remaining())
        .collect();
    assert_eq!(remaining, [100, 3]);
}

#[test]
fn all_quotas_are_replaced_together() {
    let (limiter, _time) = limiter(&[Quota::per_second(10), Quota::per_hour(100)]);
    let new = [Quota::per_second(20), Quota::per_hour(50)];
    limiter
        .set_quotas(&new)
        .expect("as many, of the same algorithms");
    assert_eq!(limiter.quotas(), new);
    assert!(limiter.set_quota(new[0]).is_err(), "one is not two");
}

proptest! {
    #[test]
    fn one_decision_is_all_of_them_or_none(
        steps in prop::collection::vec((0_u64..2_000, 0_u32..4), 1..80),
        limits in prop::collection::vec((1_u32..6, 1_u64..5, 0_usize..4), 1..4),
    ) {
        let quotas: Vec<Quota> = limits
            .iter()
            .map(|&(limit, period, algorithm)| every_algorithm(limit, secs(period))[algorithm])
            .collect();
        let (together, time) = limiter(&quotas);
        // The reference: each quota alone, asked first and charged only if all agree.
        let alone: Vec<RateLimiter> = quotas
            .iter()
            .map(|&quota| RateLimiter::builder(quota).clock(&time).build().expect("valid"))
            .collect();
        for (millis, cost) in steps {
            time.set(Nanos::new(time.now().as_u64() + millis * 1_000_000));
            let waits: Vec<_> = alone
                .iter()
                .filter_map(|one| one.peek_n(cost).err())
                .collect();
            match together.check_n(cost) {
                Ok(allowed) => {
                    prop_assert!(waits.is_empty(), "admitted only if each admits");
                    for one in &alone {
                        one.check_n(cost).expect("it said so");
                    }
                    let least = alone.iter().map(|one| one.snapshot().remaining()).min();
                    prop_assert_eq!(Some(allowed.remaining()), least);
                }
                Err(refusal) => {
                    prop_assert!(!waits.is_empty(), "refused only if one refuses");
                    let permanent = waits.iter().any(|one| one.retry_after().is_none());
                    let longest = waits.iter().filter_map(|one| one.retry_after()).max();
                    let expected = if permanent { None } else { longest };
                    prop_assert_eq!(refusal.retry_after(), expected, "the longest wait");
                }
            }
            let together = together.snapshot();
            for (standing, one) in together.standings().iter().zip(&alone) {
                prop_assert_eq!(standing.remaining(), one.snapshot().remaining(), "charged alike");
            }
        }
    }
}
