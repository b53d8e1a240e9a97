use super::call_end::CallEnd;
use super::policy::{Cancel, CircuitPolicy, WindowKind};
use super::window::Tally;

/// What a call on the healthy path must do: bits of a [`Standing`](super::standing::Standing), so
/// that a policy can be changed under it and a call that needs nothing finds that out with one
/// load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan(u64);

impl Plan {
    /// Reads the clock at both ends of a call.
    pub(super) const TIMED: u64 = 1;
    pub(super) const RING: u64 = 1 << 1;
    const RUN: u64 = 1 << 2;
    pub(super) const COUNTED: u64 = 1 << 3;
    const HEARD: u64 = 1 << 4;
    const OVERDUE: u64 = 1 << 5;
    const CANCEL_IGNORED: u64 = 1 << 6;
    const CANCEL_FAILS: u64 = 1 << 7;

    /// Someone is to be told of a call, or looks at it while it runs.
    pub(super) const NOTED: u64 = Self::COUNTED | Self::HEARD | Self::OVERDUE;

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

    #[inline]
    pub(super) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub(super) fn bits(self) -> u64 {
        self.0
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
