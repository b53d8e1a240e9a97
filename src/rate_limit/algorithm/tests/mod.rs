//! Random histories of every core against a slow, obvious model, and the contract they share.

mod fixed_window;
mod gcra;
mod range;
mod refund;
mod sliding_log;
mod sliding_window;

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::Union;

use super::{AnyRule, AnyState, Rule};
use crate::clock::Nanos;
use crate::rate_limit::Quota;

/// One call: how the clock moves before it, and what it costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) step: Step,
    pub(super) cost: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    On(u64),
    Back(u64),
}

/// A call that was admitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted {
    pub(super) at: u64,
    pub(super) cost: u64,
}

/// The slow and obvious version of a core.
pub(super) trait Model {
    /// Whether a call must, may or must not be admitted, given all that were admitted.
    fn judge(&self, admitted: &[Admitted], now: u64, cost: u32) -> Judgement;
    /// The most that may have been admitted in a span of `span` nanoseconds, ends included.
    fn promised(&self, span: u64) -> u128;
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Judgement {
    Must,
    May,
    MustNot,
}

impl Judgement {
    pub(super) fn exactly(admit: bool) -> Self {
        if admit { Self::Must } else { Self::MustNot }
    }
}

fn log_uniform(most: u64) -> impl Strategy<Value = u64> {
    (0..64 - most.leading_zeros()).prop_flat_map(move |bits| {
        let high = (1_u64 << bits)
            .saturating_mul(2)
            .saturating_sub(1)
            .min(most);
        (1_u64 << bits)..=high
    })
}

/// Quotas from a handful of calls in a handful of nanoseconds to the ends of the range.
pub(super) fn quotas() -> impl Strategy<Value = Quota> {
    let small = (1..8_u64, 1..60_u64, 1..8_u64);
    let wide = (
        log_uniform(u64::from(u32::MAX)),
        log_uniform(36 * 365 * 86_400 * 1_000_000_000),
        log_uniform(u64::from(u32::MAX)),
    );
    let human = (
        prop::sample::select(vec![1_u64, 3, 5, 7, 10, 60, 100, 700, 1_000, 700_000]),
        prop::sample::select(vec![
            1_000_000_000_u64,
            60_000_000_000,
            3_600_000_000_000,
            31_536_000_000_000_000,
        ]),
        1..20_u64,
    );
    Union::new([small.boxed(), wide.boxed(), human.boxed()]).prop_filter_map(
        "in range",
        |(limit, period, burst)| {
            let quota = Quota::try_with_period(limit as u32, Duration::from_nanos(period)).ok()?;
            quota.try_burst(burst as u32).ok()
        },
    )
}

/// Window quotas: those without a burst of their own.
pub(super) fn window_quotas() -> impl Strategy<Value = Quota> {
    quotas().prop_map(|quota| Quota::with_period(quota.limit(), quota.period()))
}

/// Calls whose steps sit on, around and far from the quota's own instants.
pub(super) fn calls(quota: Quota) -> impl Strategy<Value = Vec<Call>> {
    let interval = quota.interval().as_nanos() as u64;
    let period = quota.period().as_nanos() as u64;
    let burst = quota.burst_size();
    let on = prop_oneof![
        4 => Just(0_u64),
        3 => Just(interval),
        1 => Just(interval.saturating_sub(1)),
        1 => Just(interval + 1),
        1 => Just(period),
        1 => Just(period - 1),
        2 => 0..=2 * period,
        2 => 0..=3_u64,
    ];
    let step = prop_oneof![
        9 => on.prop_map(Step::On),
        1 => (0..=3 * period).prop_map(Step::Back),
    ];
    let cost = prop_oneof![
        6 => Just(1_u32),
        1 => Just(0_u32),
        1 => Just(burst),
        2 => 1..=burst,
        1 => 1..=burst.min(3),
    ];
    prop::collection::vec(
        (step, cost).prop_map(|(step, cost)| Call { step, cost }),
        1..50,
    )
}

/// A quota and a history for it.
pub(super) fn histories(
    quotas: impl Strategy<Value = Quota>,
) -> impl Strategy<Value = (Quota, Vec<Call>)> {
    quotas.prop_flat_map(|quota| (Just(quota), calls(quota)))
}

/// Runs `history` and checks every decision against `model` and the contract of [`Rule`].
pub(super) fn hold(quota: Quota, history: &[Call], model: &impl Model) {
    let rule = AnyRule::from(quota);
    let mut state = AnyState::default();
    let mut admitted: Vec<Admitted> = Vec::new();
    // Far enough from zero for the clock to go back, and from where time stands still.
    let mut now = quota.period_nanos().saturating_mul(8).min(1 << 57);
    for call in history {
        now = match call.step {
            Step::On(by) => now.saturating_add(by),
            Step::Back(by) => now.saturating_sub(by),
        };
        if now > 1 << 60 {
            return;
        }
        // A clock gone back is, to every promise, a clock that stands still.
        let seen = admitted.iter().map(|one| one.at).max().unwrap_or(0);
        let time = now.max(seen);
        let judgement = model.judge(&admitted, time, call.cost);
        let before = state.clone();
        let decision = rule.decide(&mut state, Nanos::new(now), call.cost);
        match decision {
            Ok(balance) => {
                assert_ne!(
                    judgement,
                    Judgement::MustNot,
                    "never more than the model: {call:?}"
                );
                if call.cost > 0 {
                    admitted.push(Admitted {
                        at: time,
                        cost: u64::from(call.cost),
                    });
                }
                remaining_is_what_is_admitted(&rule, &state, now, balance.remaining());
                spans_hold(&admitted, model);
            }
            Err(shortfall) => {
                // A clock gone back may make a bucket wait until it is where it was.
                if now >= seen {
                    assert_ne!(
                        judgement,
                        Judgement::Must,
                        "never less than the model: {call:?}"
                    );
                }
                assert_eq!(
                    rule.balance(&state, Nanos::new(now)),
                    rule.balance(&before, Nanos::new(now)),
                    "a refusal spends nothing"
                );
                let remaining = shortfall.balance.remaining();
                assert!(remaining < call.cost, "what was refused does not remain");
                if now >= seen {
                    remaining_is_what_is_admitted(&rule, &state, now, remaining);
                    retry_after_is_exact(&rule, &state, now, call.cost, shortfall.retry_after());
                }
            }
        }
        if now >= seen {
            fresh_means_fresh(&rule, &state, now);
        }
    }
}

fn remaining_is_what_is_admitted(rule: &AnyRule, state: &AnyState, now: u64, remaining: u32) {
    let now = Nanos::new(now);
    assert!(
        rule.fits(state, now, remaining).is_ok(),
        "as many calls as remain are admitted"
    );
    if remaining < rule.quota().burst_size() {
        assert!(
            rule.fits(state, now, remaining + 1).is_err(),
            "and not one more"
        );
    }
}

fn retry_after_is_exact(rule: &AnyRule, state: &AnyState, now: u64, cost: u32, wait: u64) {
    assert!(wait > 0, "a refused call has something to wait for");
    let at = |nanos: u64| Nanos::new(now.saturating_add(nanos));
    assert!(
        rule.fits(state, at(wait), cost).is_ok(),
        "a caller that waits exactly retry_after is admitted"
    );
    assert!(
        rule.fits(state, at(wait - 1), cost).is_err(),
        "a nanosecond earlier it is not"
    );
    assert_eq!(
        rule.ready(state, Nanos::new(now), cost),
        at(wait),
        "the plan and the refusal agree"
    );
}

fn spans_hold(admitted: &[Admitted], model: &impl Model) {
    let Some(last) = admitted.last() else { return };
    let mut sum = 0_u128;
    for one in admitted.iter().rev() {
        sum += u128::from(one.cost);
        assert!(
            sum <= model.promised(last.at - one.at),
            "no span admits more than promised: {sum} in {} ns",
            last.at - one.at
        );
    }
}

fn fresh_means_fresh(rule: &AnyRule, state: &AnyState, now: u64) {
    let now = Nanos::new(now);
    if rule.is_fresh(state, now) {
        let burst = rule.quota().burst_size();
        assert_eq!(
            rule.balance(state, now).remaining(),
            burst,
            "an entry that may go is full"
        );
    }
}
