use std::fmt;

const WHOLE: u64 = 1_000_000_000;

/// A share of calls in parts per billion, so that 1 of 3 against 33 % is decided by integers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate(u64);

impl Rate {
    /// `share` in (0, 1]; `None` for anything else, not-a-number and shares that round to nothing
    /// among them.
    pub(super) fn new(share: f64) -> Option<Self> {
        let parts = (share * WHOLE as f64).round();
        let sound = share.is_finite() && share <= 1.0 && parts >= 1.0;
        sound.then_some(Self(parts as u64))
    }

    /// Whether `part` of `whole` is at or above this share.
    pub(crate) fn is_met(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(WHOLE) >= u128::from(self.0) * u128::from(whole)
    }

    pub(crate) fn as_f64(self) -> f64 {
        self.0 as f64 / WHOLE as f64
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_met_at_the_share_itself() {
        let half = Rate::new(0.5).unwrap();
        assert!(half.is_met(1, 2), "exactly half is at the threshold");
        assert!(!half.is_met(499_999, 1_000_000), "just below half is not");
        assert!(
            Rate::new(0.33).unwrap().is_met(1, 3),
            "33.3 % is above 33 %"
        );
        assert!(
            !Rate::new(0.34).unwrap().is_met(1, 3),
            "33.3 % is below 34 %"
        );
        let whole = Rate::new(1.0).unwrap();
        assert!(whole.is_met(u64::MAX, u64::MAX) && !whole.is_met(u64::MAX - 1, u64::MAX));
    }

    #[test]
    fn shares_outside_their_range_are_no_rate() {
        for share in [0.0, -0.5, 1.01, f64::NAN, f64::INFINITY, 1e-12] {
            assert!(Rate::new(share).is_none(), "{share} is not in (0, 1]");
        }
    }
}
