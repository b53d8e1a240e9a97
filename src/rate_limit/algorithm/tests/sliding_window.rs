use proptest::prelude::*;

use super::*;

/// Counts both windows out of the list of admissions.
struct Counter(Quota);

impl Model for Counter {
    fn judge(&self, admitted: &[Admitted], now: u64, cost: u32) -> Judgement {
        let period = self.0.period_nanos();
        let first = |at: u64| {
            if self.0.is_aligned() {
                at - at % period
            } else {
                at
            }
        };
        let mut start: Option<u64> = None;
        let reach = |start: Option<u64>, at: u64| match start {
            Some(start) if at < start + period => start,
            Some(start) if at < start + 2 * period => start + period,
            _ => first(at),
        };
        for one in admitted {
            start = Some(reach(start, one.at));
        }
        let start = reach(start, now);
        let sum = |from: u64, to: u64| -> u128 {
            let inside = admitted.iter().filter(|one| (from..to).contains(&one.at));
            inside.map(|one| u128::from(one.cost)).sum()
        };
        let before = sum(start.saturating_sub(period), start);
        let inside = u128::from(start + period - now - 1);
        let weight = before * inside / u128::from(period) + sum(start, start + period);
        Judgement::exactly(weight + u128::from(cost) <= u128::from(self.0.limit()))
    }

    fn promised(&self, span: u64) -> u128 {
        let (limit, period) = (
            u128::from(self.0.limit()),
            u128::from(self.0.period_nanos()),
        );
        if u128::from(span) >= period {
            return u128::MAX;
        }
        limit + (limit * (u128::from(span) + 1)).div_ceil(period)
    }
}

proptest! {
    #[test]
    fn decides_as_counts_taken_from_scratch((quota, history) in histories(window_quotas())) {
        let quota = quota.sliding_window();
        hold(quota, &history, &Counter(quota));
        let aligned = quota.aligned();
        hold(aligned, &history, &Counter(aligned));
    }

    #[test]
    fn a_steady_caller_at_the_rate_is_never_refused(
        quota in window_quotas(),
        start in 0_u64..1 << 60,
        calls in 2_u64..200,
    ) {
        for quota in [quota.sliding_window(), quota.sliding_window().aligned(), quota.fixed_window()] {
            let rule = AnyRule::from(quota);
            let mut state = AnyState::default();
            for call in 0..calls {
                let after = u128::from(call) * u128::from(quota.period_nanos());
                let after = after.div_ceil(u128::from(quota.limit()));
                if after > 1 << 60 {
                    break;
                }
                let now = Nanos::new(start + after as u64);
                prop_assert!(rule.decide(&mut state, now, 1).is_ok(), "{quota:?}: call {call}");
            }
        }
    }
}
