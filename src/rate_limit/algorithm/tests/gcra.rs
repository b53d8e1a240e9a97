use proptest::prelude::*;

use super::*;
use crate::rate_limit::algorithm::Gcra;

/// A token bucket in exact fractions: tokens are counted in `period`ths, of which `limit` arrive
/// each nanosecond.
struct Bucket(Quota);

impl Bucket {
    fn numbers(&self) -> (i128, i128, i128) {
        let Self(quota) = self;
        let period = i128::from(quota.period_nanos());
        let limit = i128::from(quota.limit());
        (period, limit, i128::from(quota.burst_size()) * period)
    }

    fn is_whole(&self) -> bool {
        self.0
            .period_nanos()
            .is_multiple_of(u64::from(self.0.limit()))
    }

    fn level(&self, admitted: &[Admitted], now: u64) -> i128 {
        let (period, limit, full) = self.numbers();
        let (mut level, mut at) = (full, 0);
        for one in admitted {
            level =
                full.min(level + limit * i128::from(one.at - at)) - i128::from(one.cost) * period;
            at = one.at;
        }
        full.min(level + limit * i128::from(now - at))
    }
}

impl Model for Bucket {
    fn judge(&self, admitted: &[Admitted], now: u64, cost: u32) -> Judgement {
        let (period, limit, _) = self.numbers();
        let spare = self.level(admitted, now) - i128::from(cost) * period;
        // One nanosecond's worth of leeway where the interval is no whole number of them.
        let leeway = if self.is_whole() { 0 } else { limit };
        if spare >= 0 {
            Judgement::Must
        } else if spare + leeway >= 0 {
            Judgement::May
        } else {
            Judgement::MustNot
        }
    }

    fn promised(&self, span: u64) -> u128 {
        let (period, limit, full) = self.numbers();
        let span = i128::from(span) + i128::from(!self.is_whole());
        ((full + limit * span) / period) as u128
    }
}

proptest! {
    #[test]
    fn decides_as_an_exact_token_bucket((quota, history) in histories(quotas())) {
        hold(quota, &history, &Bucket(quota));
    }

    #[test]
    fn a_steady_caller_at_the_rate_is_never_refused(
        quota in quotas(),
        start in 0_u64..1 << 60,
        calls in 2_u64..200,
    ) {
        let rule = Gcra::scaled(quota);
        let mut state = 0;
        for call in 0..calls {
            // The call's own instant, in exact fractions and rounded up to the clock. With a
            // burst of 1, a call rounded up has lost that time: the interval is rounded instead.
            let (period, limit) = (u128::from(quota.period_nanos()), u128::from(quota.limit()));
            let after = match quota.burst_size() {
                1 => u128::from(call) * period.div_ceil(limit),
                _ => (u128::from(call) * period).div_ceil(limit),
            };
            if after > 1 << 60 {
                break;
            }
            let now = start + after as u64;
            prop_assert!(rule.decide(&mut state, Nanos::new(now), 1).is_ok(), "call {call}");
        }
    }

    #[test]
    fn whole_nanoseconds_never_admit_more_than_fractions_do(
        (quota, history) in histories(quotas())
    ) {
        let (exact, rounded) = (Gcra::scaled(quota), Gcra::in_nanos(quota));
        let (mut bucket, mut state) = (0, 0);
        let mut now = 1_u64 << 40;
        for call in history {
            if let Step::On(by) = call.step {
                now = now.saturating_add(by).min(1 << 60);
            }
            let now = Nanos::new(now);
            if rounded.decide(&mut state, now, call.cost).is_ok() {
                // Fed with what the other admits, the exact one has room for all of it.
                prop_assert!(exact.decide(&mut bucket, now, call.cost).is_ok());
            }
            prop_assert_eq!(rounded.is_fresh(&state, now), state <= now.as_u64());
        }
    }

    #[test]
    fn another_quota_keeps_the_time_to_full_up_to_its_own(
        old in quotas(),
        new in quotas(),
        spent in 0.0..1.0_f64,
        now in 1_u64 << 40..1 << 59,
    ) {
        let (before, after) = (Gcra::scaled(old), Gcra::scaled(new));
        let mut state = 0;
        let cost = (f64::from(old.burst_size()) * spent) as u32;
        let now = Nanos::new(now);
        prop_assert!(before.decide(&mut state, now, cost).is_ok());
        let to_full = before.balance(&state, now).reset_after();
        let carried = after.carry(&before, &state, now);
        let carried = after.balance(&carried, now).reset_after();
        let fill = u128::from(new.burst_size()) * u128::from(new.period_nanos());
        let fill = fill.div_ceil(u128::from(new.limit())) as u64;
        let expected = to_full.min(fill);
        prop_assert!(carried.abs_diff(expected) <= 1, "{carried} ns, not {expected} ns");
        let same = before.carry(&before, &state, now);
        prop_assert_eq!(
            before.balance(&same, now),
            before.balance(&state, now),
            "the same quota changes nothing"
        );
    }
}

#[test]
fn an_interval_that_is_no_whole_number_does_not_drift() {
    let quota = Quota::per_second(700_000).burst(2);
    let rule = Gcra::scaled(quota);
    let mut state = 0;
    let (mut now, mut admitted) = (0_u64, 0_u64);
    while now < 100_000_000 {
        match rule.decide(&mut state, Nanos::new(now), 1) {
            Ok(_) => admitted += 1,
            Err(shortfall) => now += shortfall.retry_after(),
        }
    }
    assert_eq!(
        admitted,
        70_000 + 1,
        "a greedy tenth of a second admits the burst and the rate, to the call"
    );
}

#[test]
fn a_debt_is_paid_off_before_anything_is_admitted() {
    let rule = Gcra::scaled(Quota::per_second(1).burst(2));
    let mut state = 0;
    rule.charge(&mut state, Nanos::ZERO, 7);
    let shortfall = rule.decide(&mut state, Nanos::ZERO, 1).unwrap_err();
    assert_eq!(
        shortfall.retry_after(),
        6_000_000_000,
        "seven calls, of which one may be outstanding beside the next"
    );
    assert!(
        rule.decide(&mut state, Nanos::ZERO, 0).is_err(),
        "nothing passes, not even nothing"
    );
    let paid = Nanos::new(6_000_000_000);
    assert!(
        rule.decide(&mut state, paid, 1).is_ok(),
        "at that instant it is admitted"
    );
    assert_eq!(
        rule.balance(&state, paid).reset_after(),
        2_000_000_000,
        "the bucket is empty then, and no longer in debt"
    );
}
