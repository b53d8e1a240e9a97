use super::call_end::CallEnd;
use super::policy::{Cancel, CircuitPolicy, WindowKind};
use super::window::Tally;
use crate::clock::Nanos;
use crate::sync::{AtomicU64, Ordering};

/// What a call on the healthy path must do, as one word, so that a policy can be changed under
/// it and a call that needs nothing finds that out with one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan(u64);

/// The plan and the slow threshold of a breaker.
#[derive(Debug)]
pub(super) struct Plans {
    plan: AtomicU64,
    /// The longest that a call may take and not be slow, in nanoseconds.
    longest: AtomicU64,
}

impl Plan {
    /// Reads the clock at both ends of a call.
    const TIMED: u64 = 1;
    const RING: u64 = 1 << 1;
    const RUN: u64 = 1 << 2;
    const COUNTED: u64 = 1 << 3;
    const HEARD: u64 = 1 << 4;
    const OVERDUE: u64 = 1 << 5;
    const CANCEL_IGNORED: u64 = 1 << 6;
    const CANCEL_FAILS: u64 = 1 << 7;

    pub(super) fn new(policy: &CircuitPolicy, counted: bool, heard: bool) -> Self {
        let time_window = policy.has_rates() && matches!(policy.window, WindowKind::Time(_));
        let calls_window = policy.has_rates() && !time_window;
        let timed = time_window || policy.slow_threshold.is_some() || heard;
        let mut bits = 0;
        for (bit, wanted) in [
            (Self::TIMED, timed),
            (Self::RING, calls_window),
            (Self::RUN, policy.consecutive.is_some()),
            (Self::COUNTED, counted),
            (Self::HEARD, heard),
            (Self::OVERDUE, policy.count_overdue),
            (Self::CANCEL_IGNORED, policy.cancel == Cancel::Ignore),
            (Self::CANCEL_FAILS, policy.cancel == Cancel::Failure),
        ] {
            bits |= if wanted { bit } else { 0 };
        }
        Self(bits)
    }

    fn has(self, bit: u64) -> bool {
        self.0 & bit != 0
    }

    const WORK: u64 = Self::TIMED | Self::RING | Self::COUNTED | Self::HEARD | Self::OVERDUE;

    /// Whether a success has nothing to write: no window, no time, no one who listens or counts.
    #[inline]
    pub(super) fn is_bare(self) -> bool {
        self.0 & Self::WORK == 0
    }

    /// Whether a success writes to its stripe and nothing else.
    #[inline]
    pub(super) fn is_striped(self) -> bool {
        self.0 & Self::WORK == Self::TIMED
    }

    /// Whether something is noted of a call as it begins.
    #[inline]
    pub(super) fn notes_start(self) -> bool {
        self.0 & (Self::TIMED | Self::COUNTED) != 0
    }

    #[inline]
    pub(super) fn timed(self) -> bool {
        self.has(Self::TIMED)
    }

    #[inline]
    pub(super) fn ring(self) -> bool {
        self.has(Self::RING)
    }

    #[inline]
    pub(super) fn run(self) -> bool {
        self.has(Self::RUN)
    }

    #[inline]
    pub(super) fn counted(self) -> bool {
        self.has(Self::COUNTED)
    }

    #[inline]
    pub(super) fn heard(self) -> bool {
        self.has(Self::HEARD)
    }

    /// How a call counts that ended so; `None` where it adds nothing.
    #[inline]
    pub(super) fn tally(self, end: CallEnd, slow: bool) -> Option<Tally> {
        let failed = match end {
            CallEnd::Success => false,
            CallEnd::Failure | CallEnd::Panicked => true,
            CallEnd::Ignored => return None,
            CallEnd::Cancelled if self.has(Self::CANCEL_FAILS) => true,
            CallEnd::Cancelled if self.has(Self::CANCEL_IGNORED) || !slow => return None,
            CallEnd::Cancelled => false,
        };
        Some(Tally { failed, slow })
    }
}

impl Plans {
    pub(super) fn new() -> Self {
        Self {
            plan: AtomicU64::new(0),
            longest: AtomicU64::new(u64::MAX),
        }
    }

    pub(super) fn set(&self, plan: Plan, policy: &CircuitPolicy) {
        let threshold = policy.slow_threshold.map_or(Nanos::MAX, Nanos::saturating);
        // One nanosecond below the threshold, so that the end of time, which is none, asks for no
        // comparison of its own.
        let longest = match threshold {
            Nanos::MAX => u64::MAX,
            threshold => threshold.as_u64().saturating_sub(1),
        };
        self.longest.store(longest, Ordering::Relaxed);
        self.plan.store(plan.0, Ordering::Release);
    }

    #[inline]
    pub(super) fn get(&self) -> Plan {
        Plan(self.plan.load(Ordering::Acquire))
    }

    /// Whether a call is slow that took `elapsed` nanoseconds. Without a threshold none is.
    #[inline]
    pub(super) fn is_slow(&self, elapsed: u64) -> bool {
        elapsed > self.longest.load(Ordering::Relaxed)
    }
}
