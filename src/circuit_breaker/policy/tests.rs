use std::time::Duration;

use super::{CircuitPolicy, CircuitPolicyBuilder};
use crate::circuit_breaker::TransitionReason;
use crate::circuit_breaker::policy::Counts;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn the_default_is_as_documented() {
    let named = CircuitPolicy::builder()
        .failure_rate(0.5)
        .window(10 * SECOND)
        .min_calls(20)
        .open_for(5 * SECOND)
        .open_growth(2.0)
        .open_cap(60 * SECOND)
        .open_jitter(0.2)
        .probes(3)
        .probe_timeout(30 * SECOND)
        .cancel(super::Cancel::SlowIfOverdue)
        .retry_after_cap(300 * SECOND);
    assert_eq!(named.build().unwrap(), CircuitPolicy::default());
    let text = "trips at 0.5 failed of 20+ calls in 10s; probes after 5s, closes after 3";
    assert_eq!(CircuitPolicy::default().to_string(), text);
}

type Set = fn(CircuitPolicyBuilder) -> CircuitPolicyBuilder;

#[test]
fn what_is_out_of_range_or_of_no_use_is_named() {
    let wrong: &[(&str, Set)] = &[
        ("consecutive", |p| p.consecutive(0)),
        ("failure_rate", |p| p.failure_rate(0.0)),
        ("failure_rate", |p| p.failure_rate(-0.5)),
        ("failure_rate", |p| p.failure_rate(1.01)),
        ("failure_rate", |p| p.failure_rate(f64::NAN)),
        ("slow_rate", |p| p.slow_rate(2.0).slow_threshold(SECOND)),
        ("slow_rate", |p| p.slow_rate(0.5)),
        ("slow_threshold", |p| p.slow_threshold(SECOND)),
        ("slow_threshold", |p| {
            p.consecutive(1).slow_threshold(Duration::ZERO)
        }),
        ("count_overdue", |p| p.consecutive(1).count_overdue()),
        ("window", |p| p.window(Duration::ZERO)),
        ("window", |p| p.window(Duration::from_micros(999))),
        ("window", |p| p.consecutive(1).window(SECOND)),
        ("window_calls", |p| p.window_calls(0)),
        ("window_calls", |p| p.window_calls((1 << 20) + 1)),
        ("window_calls", |p| p.window_calls(5).window(SECOND)),
        ("window_calls", |p| p.consecutive(1).window_calls(5)),
        ("min_calls", |p| p.min_calls(0)),
        ("min_calls", |p| p.window_calls(5).min_calls(6)),
        ("min_calls", |p| p.consecutive(1).min_calls(6)),
        ("open_for", |p| p.open_for(Duration::ZERO)),
        ("open_for", |p| p.open_for(SECOND).open_time(|_, _| SECOND)),
        ("open_cap", |p| p.open_for(2 * SECOND).open_cap(SECOND)),
        ("open_growth", |p| p.open_growth(0.99)),
        ("open_growth", |p| p.open_growth(f64::NAN)),
        ("open_growth", |p| p.recover_every(5).open_growth(2.0)),
        ("open_jitter", |p| p.open_jitter(1.0)),
        ("open_jitter", |p| p.open_jitter(-0.1)),
        ("open_jitter", |p| p.open_jitter(f64::NAN)),
        ("jitter_seed", |p| p.open_time(|_, _| SECOND).jitter_seed(1)),
        ("recover_every", |p| p.recover_every(0)),
        ("probes", |p| p.probes(0)),
        ("probes", |p| p.probes(10_001)),
        ("probe_timeout", |p| p.probe_timeout(Duration::ZERO)),
        ("ramp_up", |p| p.ramp_up(Duration::ZERO)),
        ("retry_after_cap", |p| p.retry_after_cap(Duration::ZERO)),
    ];
    for (field, set) in wrong {
        let built = set(CircuitPolicy::builder()).build();
        let error = built.expect_err(field);
        assert_eq!(error.field(), *field, "{error}");
        assert!(!error.value().is_empty() && !error.allowed().is_empty());
    }
}

#[test]
fn the_far_ends_of_the_ranges_are_allowed() {
    let far: &[Set] = &[
        |p| p.consecutive(u32::MAX),
        |p| {
            p.failure_rate(1.0)
                .window(Duration::MAX)
                .min_calls(u32::MAX)
        },
        |p| p.window_calls(1 << 20).min_calls(1 << 20),
        |p| p.window_calls(1),
        |p| p.open_for(Duration::MAX).open_growth(100.0),
        |p| p.recover_every(u64::MAX).probes(10_000),
        |p| p.probe_timeout(Duration::MAX).ramp_up(Duration::MAX),
        |p| {
            p.recover_every(1)
                .open_for(Duration::from_nanos(1))
                .open_jitter(0.999_999_9)
        },
    ];
    for (at, set) in far.iter().enumerate() {
        assert!(set(CircuitPolicy::builder()).build().is_ok(), "{at}");
    }
}

#[test]
fn a_condition_or_a_recovery_that_is_named_stands_without_the_default_one() {
    let policy = CircuitPolicy::builder().consecutive(3).recover_every(9);
    let policy = policy.build().unwrap();
    assert!(policy.failure_rate.is_none() && policy.open_time.is_none());
    assert!(!policy.has_timed_recovery());
    assert!(CircuitPolicy::default().has_timed_recovery());
}

#[test]
fn conditions_are_met_at_their_thresholds_once_the_minimum_is_in() {
    let policy = CircuitPolicy::builder()
        .consecutive(3)
        .failure_rate(0.5)
        .slow_rate(0.25)
        .slow_threshold(SECOND)
        .min_calls(4);
    let policy = policy.build().unwrap();
    let judge = |run, calls, failures, slow| {
        let counts = Counts {
            calls,
            failures,
            slow,
        };
        policy.judge(run, counts)
    };
    assert_eq!(judge(3, 0, 0, 0), Some(TransitionReason::Consecutive));
    assert_eq!(judge(2, 3, 3, 3), None, "below the minimum");
    assert_eq!(judge(2, 4, 2, 2), Some(TransitionReason::FailureRate));
    assert_eq!(judge(2, 5, 2, 2), Some(TransitionReason::SlowRate));
    assert_eq!(judge(2, 9, 4, 2), None, "below both");
}

#[test]
fn an_equal_policy_is_one_with_equal_fields_and_the_same_function() {
    let by_function = CircuitPolicy::builder().open_time(|_, _| SECOND);
    let policy = by_function.clone().build().unwrap();
    assert_eq!(policy, by_function.build().unwrap());
    let other = CircuitPolicy::builder().open_time(|_, _| SECOND);
    assert_ne!(policy, other.build().unwrap());
}
