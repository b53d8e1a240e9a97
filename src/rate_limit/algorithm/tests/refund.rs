//! Charges that give some of it back: no span of what was really used exceeds the promise.

use std::cell::Cell;

use proptest::prelude::*;

use super::*;
use crate::rate_limit::engine::Grant;
use crate::rate_limit::ledger::Ledger;
use crate::rate_limit::live::LiveGcra;

#[derive(Clone, Copy, Debug)]
enum Act {
    /// Moves the clock, then reserves.
    Reserve { after: u64, estimate: u32 },
    /// Moves the clock, then gives all but `used` (a share in 1/255) of an open one back.
    Settle {
        after: u64,
        which: prop::sample::Index,
        used: u8,
    },
}

fn acts(quota: Quota) -> impl Strategy<Value = Vec<Act>> {
    let interval = quota.interval().as_nanos() as u64 + 1;
    let burst = quota.burst_size();
    let after = prop_oneof![3 => Just(0_u64), 2 => 0..interval, 2 => 0..4 * interval];
    let reserve =
        (after.clone(), 1..=burst).prop_map(|(after, estimate)| Act::Reserve { after, estimate });
    let settle = (after, any::<prop::sample::Index>(), any::<u8>())
        .prop_map(|(after, which, used)| Act::Settle { after, which, used });
    prop::collection::vec(prop_oneof![reserve, settle], 1..60)
}

/// What was charged when, and what of it is still held or was used.
struct Use {
    at: u64,
    used: u64,
}

fn run(quota: Quota, acts: &[Act], promised: impl Fn(u64) -> u128) {
    let mut ledger = Ledger::new(&[quota]);
    let mut open: Vec<(usize, u32, Grant)> = Vec::new();
    let mut uses: Vec<Use> = Vec::new();
    let mut now = 1_u64 << 40;
    for act in acts {
        match *act {
            Act::Reserve { after, estimate } => {
                now += after;
                let at = Nanos::new(now);
                if let Ok(grant) = ledger.grant(at, at, estimate) {
                    open.push((uses.len(), estimate, grant));
                    uses.push(Use {
                        at: now,
                        used: estimate.into(),
                    });
                    spans_hold(&uses, &promised);
                }
            }
            Act::Settle { after, which, used } => {
                now += after;
                if open.is_empty() {
                    continue;
                }
                let (at, estimate, grant) = open.swap_remove(which.index(open.len()));
                let back = (u64::from(estimate) * u64::from(used) / 255) as u32;
                ledger.refund(&grant, Nanos::new(now), back);
                uses[at].used -= u64::from(back);
            }
        }
    }
}

fn spans_hold(uses: &[Use], promised: &impl Fn(u64) -> u128) {
    // Every pair: a refund may have made room for the last in the middle of any span.
    for (to, last) in uses.iter().enumerate() {
        let mut sum = 0;
        for one in uses[..=to].iter().rev() {
            sum += u128::from(one.used);
            assert!(
                sum <= promised(last.at - one.at),
                "{sum} used in {} ns",
                last.at - one.at
            );
        }
    }
}

fn small() -> impl Strategy<Value = (Quota, Vec<Act>)> {
    (1..12_u32, 1..40_u64, 1..24_u32)
        .prop_filter_map("in range", |(limit, period, burst)| {
            let quota = Quota::try_with_period(limit, Duration::from_nanos(period)).ok()?;
            Some(quota.burst(burst))
        })
        .prop_flat_map(|quota| (Just(quota), acts(quota)))
}

proptest! {
    #[test]
    fn refunds_never_let_gcra_admit_more_than_promised((quota, acts) in small()) {
        let (limit, period) = (u128::from(quota.limit()), quota.period().as_nanos());
        let slack = u128::from(!period.is_multiple_of(limit));
        run(quota, &acts, |span| {
            u128::from(quota.burst_size()) + limit * (u128::from(span) + slack) / period
        });
    }

    #[test]
    fn refunds_never_let_a_log_admit_more_than_promised((quota, acts) in small()) {
        let quota = Quota::with_period(quota.limit(), quota.period()).sliding_log();
        let acts: Vec<Act> = acts.into_iter().map(|act| within(act, quota.limit())).collect();
        let period = quota.period_nanos();
        run(quota, &acts, |span| if span < period { quota.limit().into() } else { u128::MAX });
    }

    #[test]
    fn refunds_never_let_windows_admit_more_than_promised((quota, acts) in small()) {
        let plain = Quota::with_period(quota.limit(), quota.period());
        let acts: Vec<Act> = acts.into_iter().map(|act| within(act, plain.limit())).collect();
        let (limit, period) = (u128::from(plain.limit()), u128::from(plain.period_nanos()));
        run(plain.fixed_window(), &acts, |span| limit * (u128::from(span) / period + 2));
        run(plain.sliding_window(), &acts, |span| {
            if u128::from(span) < period {
                limit + (limit * (u128::from(span) + 1)).div_ceil(period)
            } else {
                u128::MAX
            }
        });
    }
}

fn within(act: Act, limit: u32) -> Act {
    match act {
        Act::Reserve { after, estimate } => Act::Reserve {
            after,
            estimate: estimate.min(limit),
        },
        settle @ Act::Settle { .. } => settle,
    }
}

#[test]
fn a_refund_that_read_the_clock_before_others_were_admitted_reads_it_again() {
    let live = LiveGcra::new(Quota::per_second(1).burst(10));
    let (_, grant) = live.grant(Nanos::ZERO, Nanos::ZERO, 10).unwrap();
    let full_again = Nanos::new(10_000_000_000);
    let raced = Cell::new(false);
    let now = || {
        if raced.replace(true) {
            return full_again;
        }
        assert!(live.decide(full_again, 10).is_ok(), "another's burst");
        Nanos::ZERO
    };
    live.refund(&grant, now, 10);
    assert!(
        live.decide(full_again, 1).is_err(),
        "time had given it back"
    );
}

#[test]
fn an_unused_charge_that_time_has_not_refilled_comes_back_whole() {
    let mut ledger = Ledger::new(&[Quota::per_second(1).burst(10)]);
    let at = Nanos::new(5);
    let first = ledger.grant(at, at, 4).unwrap();
    let second = ledger.grant(at, at, 6).unwrap();
    ledger.refund(&second, at, 6);
    ledger.refund(&first, at, 4);
    assert_eq!(
        ledger.balance(at).remaining(),
        10,
        "both are back, the later one first"
    );
}
