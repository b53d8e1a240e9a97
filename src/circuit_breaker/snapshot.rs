use std::fmt;
use std::time::Duration;

use super::state::{CircuitState, Command, TransitionReason};
use crate::Name;

/// What a breaker knew at one moment. Taking one changes nothing: no probe is spent, no
/// transition made.
///
/// Counts are of the window while closed, of what tripped the circuit while open, and zero while
/// half-open.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The breaker's name.
    pub name: Name,
    /// The state. One that is over but was not left, as no call has arrived, still reads open,
    /// with a `retry_after` of zero.
    pub state: CircuitState,
    /// Why it is in this state; `None` while it never changed.
    pub reason: Option<TransitionReason>,
    /// The command in force, if any.
    pub command: Option<Command>,
    /// Calls in the window.
    pub calls: u64,
    /// Failures among them.
    pub failures: u64,
    /// Slow calls among them; one that failed too counts in both.
    pub slow: u64,
    /// Failing outcomes in a row, up to the last outcome; 0 where the policy does not count them.
    pub consecutive: u32,
    /// The share of failures, in [0, 1]; `None`, not known yet, below the minimum of calls.
    pub failure_rate: Option<f64>,
    /// The share of slow calls, likewise; `None` too without a slow threshold.
    pub slow_rate: Option<f64>,
    /// While open, the time left until a probe is due: zero when it is. `None` in other states
    /// and where no time is known.
    pub retry_after: Option<Duration>,
    /// How often the state changed. A result of an earlier epoch is stale.
    pub epoch: u64,
    /// How often the circuit opened by its own doing.
    pub trips: u64,
    /// Probes in flight.
    pub probes_in_flight: u32,
    /// Probes that succeeded since the circuit was last half-open.
    pub probes_succeeded: u32,
    /// How long the call took that ended last; kept where the breaker reads the clock: with a
    /// slow threshold, a time window or a listener.
    pub last_elapsed: Option<Duration>,
    /// Calls in flight and sums since the breaker was made; kept with
    /// [`counters`](super::CircuitBreakerBuilder::counters).
    pub totals: Option<Totals>,
    /// Panics of listeners that were caught.
    pub listener_panics: u64,
    /// Events of calls that no listener heard, because [too many](super::CircuitEvent) waited.
    pub events_dropped: u64,
}

/// Sums since the breaker was made. Each admitted call is in one of the five ends, or in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Calls admitted that have not ended.
    pub in_flight: u64,
    /// Calls admitted.
    pub admitted: u64,
    /// Calls refused.
    pub refused: u64,
    /// Calls admitted that would have been refused, had the breaker not been disabled.
    pub would_have_refused: u64,
    /// Calls that ended as success.
    pub successes: u64,
    /// Calls that ended as failure.
    pub failures: u64,
    /// Calls that ended as ignored.
    pub ignored: u64,
    /// Calls that were dropped.
    pub cancelled: u64,
    /// Calls that panicked.
    pub panicked: u64,
    /// Calls, of any end, that were slow.
    pub slow: u64,
    /// Calls, of any end, whose result came too late to count.
    pub stale: u64,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "circuit {} {}", self.name, self.state)?;
        if let Some(reason) = self.reason {
            write!(f, " ({reason})")?;
        }
        if let Some(command) = self.command {
            write!(f, ", {command}")?;
        }
        write!(
            f,
            ": {} calls, {} failed, {} slow, {} in a row",
            self.calls, self.failures, self.slow, self.consecutive
        )?;
        if let Some(wait) = self.retry_after {
            write!(f, ", probe due in {wait:?}")?;
        }
        if self.state == CircuitState::HalfOpen {
            let (out, good) = (self.probes_in_flight, self.probes_succeeded);
            write!(f, ", probes {out} out, {good} good")?;
        }
        write!(f, ", trips {}", self.trips)
    }
}
