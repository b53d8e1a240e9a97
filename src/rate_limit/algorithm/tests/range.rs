//! The ends of every range.

use proptest::prelude::*;

use super::*;

fn every_algorithm(quota: Quota) -> Vec<AnyRule> {
    let window = Quota::with_period(quota.limit(), quota.period());
    let mut quotas = vec![quota, window.fixed_window(), window.sliding_window()];
    quotas.push(window.fixed_window().aligned());
    quotas.push(window.sliding_window().aligned());
    quotas.extend(window.try_sliding_log());
    quotas.into_iter().map(AnyRule::from).collect()
}

proptest! {
    #[test]
    fn no_instant_and_no_order_of_instants_panics_or_unlocks(
        quota in quotas(),
        instants in prop::collection::vec(any::<u64>(), 1..30),
    ) {
        for rule in every_algorithm(quota) {
            let mut state = AnyState::default();
            for &instant in &instants {
                let now = Nanos::new(instant);
                let burst = quota.burst_size().min(rule.quota().burst_size());
                let _ = rule.decide(&mut state, now, burst);
                prop_assert!(rule.balance(&state, now).remaining() <= rule.quota().burst_size());
                let _ = rule.balance(&state, now).reset_after();
                if let Err(shortfall) = rule.decide(&mut state, now, burst) {
                    let _ = shortfall.retry_after();
                }
                let _ = rule.ready(&state, now, burst);
                let _ = rule.carry(&rule, &state, now);
                rule.charge(&mut state, now, burst);
                let mark = rule.mark(&state, now);
                rule.refund(&mut state, now, burst, mark, 0);
            }
        }
    }

    #[test]
    fn at_the_end_of_time_the_burst_is_spent_once(quota in quotas(), before in 0_u64..3) {
        for rule in every_algorithm(quota) {
            let mut state = AnyState::default();
            let burst = rule.quota().burst_size();
            let now = Nanos::new(u64::MAX - before);
            prop_assert!(rule.decide(&mut state, now, burst).is_ok(), "{rule:?}");
            prop_assert!(rule.decide(&mut state, now, 1).is_err(), "{rule:?}");
            prop_assert!(rule.decide(&mut state, Nanos::MAX, 1).is_err(), "{rule:?}");
        }
    }

    #[test]
    fn a_clock_gone_back_refills_nothing(quota in quotas(), back in any::<u64>()) {
        for rule in every_algorithm(quota) {
            let mut state = AnyState::default();
            let burst = rule.quota().burst_size();
            let start = Nanos::new(1 << 60);
            prop_assert!(rule.decide(&mut state, start, burst).is_ok());
            let gone_back = Nanos::new((1_u64 << 60).saturating_sub(back));
            prop_assert!(rule.decide(&mut state, gone_back, 1).is_err());
            let carried = rule.carry(&rule, &state, gone_back);
            prop_assert!(rule.decide(&mut carried.clone(), start, 1).is_err(), "{rule:?}");
            prop_assert!(rule.decide(&mut state, start, 1).is_err());
        }
    }
}

#[test]
fn one_a_year_and_one_a_nanosecond_are_exact() {
    let year = Duration::from_secs(365 * 86_400);
    let rule = AnyRule::from(Quota::with_period(1, year));
    let mut state = AnyState::default();
    assert!(rule.decide(&mut state, Nanos::ZERO, 1).is_ok());
    let refused = rule.decide(&mut state, Nanos::ZERO, 1).unwrap_err();
    assert_eq!(
        u128::from(refused.retry_after()),
        year.as_nanos(),
        "a year, to the nanosecond"
    );

    let rule = AnyRule::from(Quota::with_period(
        u32::MAX,
        Duration::from_nanos(u32::MAX.into()),
    ));
    let mut state = AnyState::default();
    assert!(
        rule.decide(&mut state, Nanos::ZERO, u32::MAX).is_ok(),
        "the whole burst at once"
    );
    assert!(
        rule.decide(&mut state, Nanos::new(1), 2).is_err(),
        "one nanosecond earns one call"
    );
    assert!(rule.decide(&mut state, Nanos::new(1), 1).is_ok());
}
