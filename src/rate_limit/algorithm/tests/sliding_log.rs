use proptest::prelude::*;

use super::*;

/// Adds up what was admitted in the last period.
struct Sum(Quota);

impl Model for Sum {
    fn judge(&self, admitted: &[Admitted], now: u64, cost: u32) -> Judgement {
        let period = self.0.period_nanos();
        let inside = admitted.iter().filter(|one| one.at + period > now);
        let spent: u64 = inside.map(|one| one.cost).sum();
        Judgement::exactly(spent + u64::from(cost) <= u64::from(self.0.limit()))
    }

    fn promised(&self, span: u64) -> u128 {
        if span < self.0.period_nanos() {
            return u128::from(self.0.limit());
        }
        u128::MAX
    }
}

fn logs() -> impl Strategy<Value = Quota> {
    window_quotas().prop_filter_map("short enough", |quota| quota.try_sliding_log().ok())
}

proptest! {
    #[test]
    fn decides_as_a_sum_over_the_last_period((quota, history) in histories(logs())) {
        hold(quota, &history, &Sum(quota));
    }

    #[test]
    fn a_steady_caller_at_the_rate_is_never_refused(
        quota in logs(),
        start in 0_u64..1 << 60,
        calls in 2_u64..200,
    ) {
        let rule = AnyRule::from(quota);
        let mut state = AnyState::default();
        for call in 0..calls {
            let after = u128::from(call) * u128::from(quota.period_nanos());
            let after = after.div_ceil(u128::from(quota.limit()));
            if after > 1 << 60 {
                break;
            }
            let now = Nanos::new(start + after as u64);
            prop_assert!(rule.decide(&mut state, now, 1).is_ok(), "call {call}");
        }
    }
}
