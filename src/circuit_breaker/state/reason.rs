use std::fmt;

/// The state of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CircuitState {
    /// Calls pass and are counted.
    Closed,
    /// Calls are refused.
    Open,
    /// A few calls pass as probes, the others are refused.
    HalfOpen,
}

/// Why a circuit changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransitionReason {
    /// To open: as many failing outcomes in a row as the policy allows.
    Consecutive,
    /// To open: the failure rate reached its threshold.
    FailureRate,
    /// To open: the rate of slow calls reached its threshold.
    SlowRate,
    /// To open: a probe failed, was slow or panicked.
    ProbeFailed,
    /// To open: a probe ran longer than the policy allows.
    ProbeTimedOut,
    /// To open: the inner service failed to become ready for a probe.
    NotReady,
    /// To half-open: the open time is over.
    OpenTimeOver,
    /// To half-open: as many calls arrived as the policy asks for.
    ArrivalsReached,
    /// To closed: enough probes succeeded.
    Recovered,
    /// To open, by hand.
    ForcedOpen,
    /// To closed, by hand.
    ForcedClosed,
    /// Refusing was switched off by hand; the state stays.
    Disabled,
    /// To closed: commands given by hand were ended.
    Released,
    /// To closed and empty, by hand.
    Reset,
}

/// One change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Transition {
    /// The state left.
    pub from: CircuitState,
    /// The state entered.
    pub to: CircuitState,
    /// What for.
    pub reason: TransitionReason,
}

/// What an operator has told a circuit to do. Where several are in force the first here wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Command {
    /// Refuses every call.
    ForceOpen,
    /// Admits every call and counts none.
    ForceClose,
    /// Counts, trips and recovers as ever, but refuses no call.
    Disable,
}

impl TransitionReason {
    /// Whether a condition of the policy was met.
    pub(crate) fn is_condition(self) -> bool {
        matches!(self, Self::Consecutive | Self::FailureRate | Self::SlowRate)
    }
}

impl fmt::Display for CircuitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        })
    }
}

impl fmt::Display for TransitionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Consecutive => "failing outcomes in a row",
            Self::FailureRate => "failure rate",
            Self::SlowRate => "slow rate",
            Self::ProbeFailed => "probe failed",
            Self::ProbeTimedOut => "probe timed out",
            Self::NotReady => "inner service not ready",
            Self::OpenTimeOver => "open time over",
            Self::ArrivalsReached => "arrivals reached",
            Self::Recovered => "recovered",
            Self::ForcedOpen => "forced open",
            Self::ForcedClosed => "forced closed",
            Self::Disabled => "disabled",
            Self::Released => "released",
            Self::Reset => "reset",
        })
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}: {}", self.from, self.to, self.reason)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ForceOpen => "forced open",
            Self::ForceClose => "forced closed",
            Self::Disable => "disabled",
        })
    }
}
