use proptest::prelude::*;

use super::*;

/// Walks all admissions through windows that start with the first call after the last one.
struct Windows(Quota);

impl Windows {
    fn start(&self, now: u64) -> u64 {
        let aligned = now - now % self.0.period_nanos();
        if self.0.is_aligned() { aligned } else { now }
    }
}

impl Model for Windows {
    fn judge(&self, admitted: &[Admitted], now: u64, cost: u32) -> Judgement {
        let period = self.0.period_nanos();
        let (mut end, mut used) = (0, 0);
        for one in admitted {
            if one.at >= end {
                (end, used) = (self.start(one.at) + period, 0);
            }
            used += one.cost;
        }
        let used = if now >= end { 0 } else { used };
        Judgement::exactly(used + u64::from(cost) <= u64::from(self.0.limit()))
    }

    fn promised(&self, span: u64) -> u128 {
        // A span touches at most this many windows.
        let windows = u128::from(span / self.0.period_nanos()) + 2;
        u128::from(self.0.limit()) * windows
    }
}

proptest! {
    #[test]
    fn decides_as_windows_counted_from_scratch((quota, history) in histories(window_quotas())) {
        let quota = quota.fixed_window();
        hold(quota, &history, &Windows(quota));
        let aligned = quota.aligned();
        hold(aligned, &history, &Windows(aligned));
    }
}

#[test]
fn a_debt_is_carried_over_window_after_window() {
    let rule = AnyRule::from(Quota::with_period(3, Duration::from_nanos(10)).fixed_window());
    let mut state = AnyState::default();
    rule.charge(&mut state, Nanos::ZERO, 8);
    let shortfall = rule.decide(&mut state, Nanos::ZERO, 1).unwrap_err();
    assert_eq!(
        shortfall.retry_after(),
        20,
        "8 are two windows of 3 and 2 of the third"
    );
    assert!(
        rule.fits(&state, Nanos::new(20), 1).is_ok(),
        "one is left in the third"
    );
    assert!(rule.fits(&state, Nanos::new(20), 2).is_err(), "and not two");
    assert!(
        !rule.is_fresh(&state, Nanos::new(29)),
        "the debt is remembered"
    );
    assert!(rule.is_fresh(&state, Nanos::new(30)), "until it is paid");
}
