use std::fmt;
use std::time::Duration;

use super::builder::CircuitPolicyBuilder;
use super::open_time::OpenTime;
use super::rate::Rate;
use crate::circuit_breaker::TransitionReason;
use crate::clock::Nanos;

/// When a circuit trips and how it recovers. A value: made by a [builder](CircuitPolicy::builder)
/// that checks it, shared by no one, compared by its fields.
///
/// The default trips at a failure rate of 0.5 over 10 s once 20 calls are in; stays open 5 s,
/// doubling to 60 s, give or take 20 %; closes after 3 probes; gives each probe 30 s.
///
/// ```
/// use std::time::Duration;
/// use tower_sluice::circuit_breaker::CircuitPolicy;
///
/// let policy = CircuitPolicy::builder()
///     .consecutive(5)
///     .slow_threshold(Duration::from_millis(500))
///     .open_for(Duration::from_secs(10))
///     .build()?;
/// assert_ne!(policy, CircuitPolicy::default());
///
/// let error = CircuitPolicy::builder().failure_rate(1.01).build().unwrap_err();
/// assert_eq!(error.field(), "failure_rate");
/// # Ok::<(), tower_sluice::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CircuitPolicy {
    pub(crate) consecutive: Option<u32>,
    pub(crate) failure_rate: Option<Rate>,
    pub(crate) slow_rate: Option<Rate>,
    pub(crate) slow_threshold: Option<Duration>,
    pub(crate) window: WindowKind,
    pub(crate) min_calls: u32,
    pub(crate) open_time: Option<OpenTime>,
    pub(crate) recover_every: Option<u64>,
    pub(crate) probes: u32,
    pub(crate) probe_timeout: Duration,
    pub(crate) cancel: Cancel,
    pub(crate) ramp_up: Option<Duration>,
    pub(crate) count_overdue: bool,
    pub(crate) retry_after_cap: Duration,
    pub(crate) jitter_seed: Option<u64>,
}

/// What a call counts as that was dropped before it had an outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cancel {
    /// Slow, if it had run past the slow threshold by then; otherwise ignored. The default: a
    /// caller that gives up on a hanging callee tells on it, one that leaves early does not.
    #[default]
    SlowIfOverdue,
    /// Ignored, however long it ran.
    Ignore,
    /// A failure, however short it ran.
    Failure,
}

/// Over what the rates are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowKind {
    Time(Duration),
    Calls(u32),
}

/// What a window holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) failures: u64,
    pub(crate) slow: u64,
}

impl CircuitPolicy {
    /// Starts a policy with nothing said. What stays unsaid is as in the default; a condition or
    /// a way of recovering that is named stands alone or with the others named, without the
    /// default one.
    pub fn builder() -> CircuitPolicyBuilder {
        CircuitPolicyBuilder::default()
    }

    /// Whether an open circuit becomes due by time, and not only at the end of it, however far its
    /// open time grows.
    pub(crate) fn has_timed_recovery(&self) -> bool {
        // What an upstream may ask for, too.
        let cap_ends = Nanos::saturating(self.retry_after_cap) < Nanos::MAX;
        match &self.open_time {
            Some(OpenTime::Growing(growing)) => growing.ends() && cap_ends,
            Some(OpenTime::Function(_)) => cap_ends,
            None => false,
        }
    }

    /// Whether either rate is judged, and so a window kept.
    pub(crate) fn has_rates(&self) -> bool {
        self.failure_rate.is_some() || self.slow_rate.is_some()
    }

    /// Which condition is met, judged on an outcome that fails: `run` in a row, `counts` in the
    /// window, both with that outcome in.
    pub(crate) fn judge(&self, run: u32, counts: Counts) -> Option<TransitionReason> {
        let enough = counts.calls >= u64::from(self.min_calls);
        let met = |rate: Option<Rate>, part| {
            enough && rate.is_some_and(|rate| rate.is_met(part, counts.calls))
        };
        if self.consecutive.is_some_and(|limit| run >= limit) {
            Some(TransitionReason::Consecutive)
        } else if met(self.failure_rate, counts.failures) {
            Some(TransitionReason::FailureRate)
        } else if met(self.slow_rate, counts.slow) {
            Some(TransitionReason::SlowRate)
        } else {
            None
        }
    }
}

impl Default for CircuitPolicy {
    fn default() -> Self {
        match Self::builder().build() {
            Ok(policy) => policy,
            Err(error) => unreachable!("the defaults are a sound policy: {error}"),
        }
    }
}

impl fmt::Display for CircuitPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("trips")?;
        let mut word = " at";
        if let Some(limit) = self.consecutive {
            write!(f, "{word} {limit} failing in a row")?;
            word = " or";
        }
        if let Some(rate) = self.failure_rate {
            write!(f, "{word} {} failed", rate.as_f64())?;
            word = " or";
        }
        if let Some(rate) = self.slow_rate {
            write!(f, "{word} {} slow", rate.as_f64())?;
        }
        if self.has_rates() {
            match self.window {
                WindowKind::Time(window) => {
                    write!(f, " of {}+ calls in {window:?}", self.min_calls)
                }
                WindowKind::Calls(calls) => {
                    write!(f, " of {}+ calls in the last {calls}", self.min_calls)
                }
            }?;
        }
        if let Some(threshold) = self.slow_threshold {
            write!(f, ", slow from {threshold:?}")?;
        }
        self.fmt_recovery(f)
    }
}

impl CircuitPolicy {
    fn fmt_recovery(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut word = "; probes";
        match &self.open_time {
            Some(OpenTime::Growing(grow)) => {
                write!(f, "{word} after {:?}", grow.initial())?;
                word = " or";
            }
            Some(OpenTime::Function(_)) => {
                write!(f, "{word} after a time of the user's")?;
                word = " or";
            }
            None => {}
        }
        if let Some(every) = self.recover_every {
            write!(f, "{word} every {every} arrivals")?;
        }
        write!(f, ", closes after {}", self.probes)
    }
}
