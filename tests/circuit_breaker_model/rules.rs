//! Random policies, in the open: for the model to go by, and to build the real one from.

use std::time::Duration;

use proptest::option;
use proptest::prelude::*;
use tower_sluice::circuit_breaker::{
    Cancel, CircuitPolicy, CircuitPolicyBuilder, TransitionReason,
};

pub(crate) const MS: u64 = 1_000_000;
/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;
/// What stands for the answer of a function that panicked.
pub(crate) const FALLBACK: u64 = 5_000 * MS;

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
    pub(crate) open_time: Option<OpenTime>,
    pub(crate) retry_after_cap: u64,
    pub(crate) recover_every: Option<u64>,
    pub(crate) probes: usize,
    pub(crate) probe_timeout: u64,
    pub(crate) cancel: Cancel,
    pub(crate) ramp_up: Option<u64>,
    pub(crate) count_overdue: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenTime {
    /// `percent`: what each time is of the last.
    Growing {
        first: u64,
        percent: u64,
        cap: u64,
    },
    Asked(Function),
}

/// A user's function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    base: u64,
    not_ready: u64,
    /// Panics at multiples of this many trips.
    panics_at: u32,
}

impl Function {
    /// `None`: panics.
    pub(crate) fn ask(self, trips: u32, reason: TransitionReason) -> Option<u64> {
        let more = match reason {
            TransitionReason::NotReady => self.not_ready,
            _ => 0,
        };
        (!trips.is_multiple_of(self.panics_at)).then(|| self.base * u64::from(trips) + more)
    }
}

/// Now and then `most`, in place of what is drawn.
fn or_most<T: Clone + std::fmt::Debug>(
    drawn: impl Strategy<Value = T>,
    most: T,
) -> impl Strategy<Value = T> {
    prop_oneof![20 => drawn, 1 => Just(most)]
}

fn open_time() -> impl Strategy<Value = OpenTime> {
    let first = or_most(1..80 * MS, NEVER);
    let growing = (first, 100..=400_u64, 0..400 * MS);
    let growing = growing.prop_map(|(first, percent, more)| OpenTime::Growing {
        first,
        percent,
        cap: first.saturating_add(more),
    });
    let asked = (0..40 * MS, 0..20 * MS, 1..5_u32);
    let asked = asked.prop_map(|(base, not_ready, panics_at)| {
        OpenTime::Asked(Function {
            base,
            not_ready,
            panics_at,
        })
    });
    prop_oneof![growing, asked]
}

pub(crate) fn rules() -> impl Strategy<Value = Rules> {
    let conditions = (
        option::of(or_most(1..5_u32, u32::MAX)),
        option::of(1..=100_u64),
        option::of(1..=100_u64),
        option::of(or_most(1..30 * MS, NEVER)),
        or_most(1..6_u32, u32::MAX),
    );
    // Widths that do not divide: a tenth is rounded up.
    let window = or_most((1..40_u64).prop_map(|window| window * 7 * MS + 3), NEVER);
    let window = prop_oneof![
        window.prop_map(Ok),
        or_most(1..8_u32, 1 << 20).prop_map(Err)
    ];
    let recovery = (
        option::of(open_time()),
        option::of(or_most(1..6_u64, u64::MAX)),
        or_most(1..150 * MS, NEVER),
    );
    let probes = (or_most(1..4_usize, 10_000), or_most(1..100 * MS, NEVER));
    let cancel = prop_oneof![
        Just(Cancel::SlowIfOverdue),
        Just(Cancel::Ignore),
        Just(Cancel::Failure)
    ];
    let ramp_up = or_most(1..100 * MS, 1_000_000_000 * MS);
    let extras = (cancel, option::of(ramp_up), any::<bool>());
    (conditions, window, recovery, probes, extras).prop_map(sound)
}

type Drawn = (
    (Option<u32>, Option<u64>, Option<u64>, Option<u64>, u32),
    Result<u64, u32>,
    (Option<OpenTime>, Option<u64>, u64),
    (usize, u64),
    (Cancel, Option<u64>, bool),
);

/// Leaves out what does not go together.
fn sound((conditions, window, recovery, probes, extras): Drawn) -> Rules {
    let (consecutive, failure_rate, slow_rate, slow, min_calls) = conditions;
    let (open_time, recover_every, retry_after_cap) = recovery;
    let (cancel, ramp_up, count_overdue) = extras;
    let slow_rate = slow_rate.filter(|_| slow.is_some());
    let failure_rate = match (consecutive, slow_rate) {
        (None, None) => Some(failure_rate.unwrap_or(50)),
        _ => failure_rate,
    };
    let rates = failure_rate.is_some() || slow_rate.is_some();
    let slow_threshold = slow.filter(|_| consecutive.is_some() || slow_rate.is_some());
    let calls = window.err().filter(|_| rates);
    let default = OpenTime::Growing {
        first: 20 * MS,
        percent: 200,
        cap: 200 * MS,
    };
    Rules {
        consecutive,
        failure_rate,
        slow_rate,
        slow_threshold,
        window: window.ok().filter(|_| rates),
        window_calls: calls,
        min_calls: u64::from(calls.map_or(min_calls, |calls| min_calls.min(calls))),
        open_time: open_time.or(recover_every.is_none().then_some(default)),
        retry_after_cap,
        recover_every,
        probes: probes.0,
        probe_timeout: probes.1,
        cancel,
        ramp_up,
        count_overdue: count_overdue && slow_threshold.is_some(),
    }
}

fn time(nanos: u64) -> Duration {
    match nanos {
        NEVER => Duration::MAX,
        _ => Duration::from_nanos(nanos),
    }
}

pub(crate) fn policy_of(rules: &Rules) -> CircuitPolicy {
    let mut policy = CircuitPolicy::builder()
        .probes(rules.probes as u32)
        .probe_timeout(time(rules.probe_timeout))
        .retry_after_cap(time(rules.retry_after_cap))
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
    if let Some(every) = rules.recover_every {
        policy = policy.recover_every(every);
    }
    if let Some(length) = rules.ramp_up {
        policy = policy.ramp_up(time(length));
    }
    if rules.count_overdue {
        policy = policy.count_overdue();
    }
    opening(policy, rules.open_time)
        .build()
        .expect("the rules are sound")
}

fn opening(policy: CircuitPolicyBuilder, open_time: Option<OpenTime>) -> CircuitPolicyBuilder {
    match open_time {
        None => policy,
        Some(OpenTime::Growing {
            first,
            percent,
            cap,
        }) => policy
            .open_for(time(first))
            .open_growth(percent as f64 / 100.0)
            .open_cap(time(cap))
            .open_jitter(0.0),
        Some(OpenTime::Asked(function)) => policy.open_time(move |trips, reason| {
            match function.ask(trips, reason) {
                Some(nanos) => Duration::from_nanos(nanos),
                // Not `panic!`: the hook would print each.
                None => std::panic::resume_unwind(Box::new("the user's function")),
            }
        }),
    }
}
