use crate::circuit_breaker::policy::Counts;

/// One call as a window counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) failed: bool,
    pub(crate) slow: bool,
}

impl Tally {
    /// Whether it speaks against the callee.
    pub(crate) fn is_failing(self) -> bool {
        self.failed || self.slow
    }
}

impl Counts {
    /// Counts one call: a slow failure adds one to each rate and one to the total.
    #[inline]
    pub(crate) fn add(&mut self, tally: Tally) {
        self.calls += 1;
        self.failures += u64::from(tally.failed);
        self.slow += u64::from(tally.slow);
    }

    pub(crate) fn join(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            failures: self.failures + other.failures,
            slow: self.slow + other.slow,
        }
    }
}
