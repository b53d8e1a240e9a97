use super::plan::Plan;

const WAY_BITS: u32 = 3;
const WAY: u64 = (1 << WAY_BITS) - 1;
const PLAN_BITS: u32 = 12;
const EPOCH_SHIFT: u32 = WAY_BITS + PLAN_BITS + 1;
/// Failing outcomes in a row have been counted, which a success must end.
const ROW: u64 = 1 << (EPOCH_SHIFT - 1);
/// On no gate ever: what is compared with it goes the long way.
const NEVER: u64 = WAY;

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

    pub(super) const PASS: u64 = 0;

    pub(super) fn new(epoch: u64, way: u64, plan: Plan, row: bool) -> Self {
        debug_assert!(way < NEVER && plan.bits() < 1 << PLAN_BITS);
        let row = if row { ROW } else { 0 };
        Self(epoch << EPOCH_SHIFT | row | plan.bits() << WAY_BITS | way)
    }

    /// For a call that was not admitted by the gate's word alone: never found again.
    pub(super) fn apart(epoch: u64) -> Self {
        Self(epoch << EPOCH_SHIFT | NEVER)
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
    pub(super) fn way(self) -> u64 {
        self.0 & WAY
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
        self.way() == Self::PASS
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
