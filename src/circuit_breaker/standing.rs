use super::plan::Plan;

const WAY_BITS: u32 = 3;
const WAY: u64 = (1 << WAY_BITS) - 1;
const PLAN_BITS: u32 = 12;
const EPOCH_SHIFT: u32 = WAY_BITS + PLAN_BITS + 1;
/// Failing outcomes in a row have been counted, which a success must end.
const ROW: u64 = 1 << (EPOCH_SHIFT - 1);
/// The way of no gate ever: a standing with it equals none that a gate shows.
const NO_WAY: u64 = WAY;

/// What is to become of calls that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Pass, counted.
    Pass = 0,
    /// Pass, not counted.
    PassUncounted = 1,
    /// Refuse up to a time that comes; ask from then on.
    RefuseInTime = 2,
    /// Refuse: open, with no end by time.
    RefuseForEver = 3,
    /// Refuse: forced open.
    RefuseForced = 4,
    /// Take the lock and ask the state machine.
    Ask = 5,
}

/// How a breaker stands: its epoch, what becomes of calls that arrive, and what is to be done for
/// those that end, in one word. A call that was admitted by a [plain](Self::is_plain) one and
/// finds it at its end knows by one comparison that it still counts, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing(u64);

impl Standing {
    /// Equal to none that a gate shows.
    pub(super) const NONE: Self = Self(u64::MAX);
    /// Equal to none that a gate shows, nor to [`NONE`](Self::NONE).
    pub(super) const OTHER: Self = Self(u64::MAX ^ (1 << EPOCH_SHIFT));

    pub(super) fn new(epoch: u64, way: Way, plan: Plan, row: bool) -> Self {
        debug_assert!(plan.bits() < 1 << PLAN_BITS);
        let row = if row { ROW } else { 0 };
        Self(epoch << EPOCH_SHIFT | row | plan.bits() << WAY_BITS | way as u64)
    }

    /// For a call that was not admitted by the gate's word alone: never found again.
    pub(super) fn apart(epoch: u64) -> Self {
        Self(epoch << EPOCH_SHIFT | NO_WAY)
    }

    #[inline]
    pub(super) fn from_word(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) fn way(self) -> Way {
        match self.0 & WAY {
            0 => Way::Pass,
            1 => Way::PassUncounted,
            2 => Way::RefuseInTime,
            3 => Way::RefuseForEver,
            4 => Way::RefuseForced,
            _ => Way::Ask,
        }
    }

    /// Whether calls are refused up to a time that comes.
    #[inline]
    pub(super) fn refuses_in_time(self) -> bool {
        self.0 & WAY == Way::RefuseInTime as u64
    }

    #[inline]
    pub(super) fn epoch(self) -> u64 {
        self.0 >> EPOCH_SHIFT
    }

    #[inline]
    pub(super) fn plan(self) -> Plan {
        Plan::from_bits(self.0 >> WAY_BITS & ((1 << PLAN_BITS) - 1))
    }

    /// Whether calls pass and are counted.
    #[inline]
    pub(super) fn passes(self) -> bool {
        self.0 & WAY == Way::Pass as u64
    }

    /// Whether calls pass, and one that succeeds is counted in a window at most: there is no row
    /// to end, and no one who listens, counts or looks at calls that run.
    #[inline]
    pub(super) fn is_plain(self) -> bool {
        self.0 & (WAY | ROW | Plan::NOTED << WAY_BITS) == 0
    }

    /// Whether a success, where this is [plain](Self::is_plain), has nothing to write.
    #[inline]
    pub(super) fn writes_nothing(self) -> bool {
        self.0 & (Plan::TIMED | Plan::RING) << WAY_BITS == 0
    }

    /// Whether both ends of a call read the clock.
    #[inline]
    pub(super) fn is_timed(self) -> bool {
        self.0 & Plan::TIMED << WAY_BITS != 0
    }
}
