//! Random policies, in the open: for the model to go by, and to build the real one from.

use std::time::Duration;

use proptest::option;
use proptest::prelude::*;
use tower_sluice::circuit_breaker::{Cancel, CircuitPolicy};

pub(crate) const MS: u64 = 1_000_000;

/// A policy; times in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) consecutive: Option<u32>,
    /// Percent.
    pub(crate) failure_rate: Option<u64>,
    pub(crate) slow_rate: Option<u64>,
    pub(crate) slow_threshold: Option<u64>,
    pub(crate) window: Option<u64>,
    pub(crate) window_calls: Option<u32>,
    pub(crate) min_calls: u64,
    pub(crate) open_for: Option<u64>,
    pub(crate) open_cap: u64,
    pub(crate) recover_every: Option<u64>,
    pub(crate) probes: usize,
    pub(crate) probe_timeout: u64,
    pub(crate) cancel: Cancel,
    pub(crate) ramp_up: Option<u64>,
    pub(crate) count_overdue: bool,
}

pub(crate) fn rules() -> impl Strategy<Value = Rules> {
    let conditions = (
        option::of(1..5_u32),
        option::of(1..=100_u64),
        option::of(1..=100_u64),
        option::of(1..30 * MS),
        1..6_u32,
    );
    let window = prop_oneof![(1..40_u64).prop_map(Ok), (1..8_u32).prop_map(Err)];
    let recovery = (option::of(1..80 * MS), option::of(1..6_u64));
    let probes = (1..4_usize, 1..100 * MS);
    let cancel = prop_oneof![
        Just(Cancel::SlowIfOverdue),
        Just(Cancel::Ignore),
        Just(Cancel::Failure)
    ];
    let extras = (cancel, option::of(1..100 * MS), any::<bool>());
    (conditions, window, recovery, probes, extras).prop_map(sound)
}

type Drawn = (
    (Option<u32>, Option<u64>, Option<u64>, Option<u64>, u32),
    Result<u64, u32>,
    (Option<u64>, Option<u64>),
    (usize, u64),
    (Cancel, Option<u64>, bool),
);

/// Leaves out what does not go together.
fn sound((conditions, window, recovery, probes, extras): Drawn) -> Rules {
    let (consecutive, failure_rate, slow_rate, slow, min_calls) = conditions;
    let (cancel, ramp_up, count_overdue) = extras;
    let slow_rate = slow_rate.filter(|_| slow.is_some());
    let failure_rate = match (consecutive, slow_rate) {
        (None, None) => Some(failure_rate.unwrap_or(50)),
        _ => failure_rate,
    };
    let rates = failure_rate.is_some() || slow_rate.is_some();
    let slow_threshold = slow.filter(|_| consecutive.is_some() || slow_rate.is_some());
    let calls = window.err().filter(|_| rates);
    let open_for = match recovery {
        (None, None) => Some(20 * MS),
        (open_for, _) => open_for,
    };
    Rules {
        consecutive,
        failure_rate,
        slow_rate,
        slow_threshold,
        // Widths that do not divide: a tenth is rounded up.
        window: window
            .ok()
            .filter(|_| rates)
            .map(|window| window * 7 * MS + 3),
        window_calls: calls,
        min_calls: u64::from(calls.map_or(min_calls, |calls| min_calls.min(calls))),
        open_for,
        open_cap: 200 * MS,
        recover_every: recovery.1,
        probes: probes.0,
        probe_timeout: probes.1,
        cancel,
        ramp_up,
        count_overdue: count_overdue && slow_threshold.is_some(),
    }
}

pub(crate) fn policy_of(rules: &Rules) -> CircuitPolicy {
    let time = Duration::from_nanos;
    let mut policy = CircuitPolicy::builder()
        .probes(rules.probes as u32)
        .probe_timeout(time(rules.probe_timeout))
        .cancel(rules.cancel);
    if let Some(calls) = rules.consecutive {
        policy = policy.consecutive(calls);
    }
    if let Some(percent) = rules.failure_rate {
        policy = policy.failure_rate(percent as f64 / 100.0);
    }
    if let Some(percent) = rules.slow_rate {
        policy = policy.slow_rate(percent as f64 / 100.0);
    }
    if let Some(threshold) = rules.slow_threshold {
        policy = policy.slow_threshold(time(threshold));
    }
    if let Some(window) = rules.window {
        policy = policy.window(time(window));
    }
    if let Some(calls) = rules.window_calls {
        policy = policy.window_calls(calls);
    }
    if rules.window.is_some() || rules.window_calls.is_some() {
        policy = policy.min_calls(rules.min_calls as u32);
    }
    if let Some(open_for) = rules.open_for {
        policy = policy.open_for(time(open_for)).open_jitter(0.0);
        policy = policy.open_cap(time(rules.open_cap));
    }
    if let Some(every) = rules.recover_every {
        policy = policy.recover_every(every);
    }
    if let Some(length) = rules.ramp_up {
        policy = policy.ramp_up(time(length));
    }
    if rules.count_overdue {
        policy = policy.count_overdue();
    }
    policy.build().expect("the rules are sound")
}
