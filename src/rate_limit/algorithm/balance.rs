use super::Gcra;
use crate::clock::Nanos;
use crate::rate_limit::{Algorithm, Quota};

/// What is left of a quota, as a core reports it. Divisions are left to whoever asks: most
/// callers only look at whether they were admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Balance {
    pub(crate) quota: Quota,
    /// Until full (GCRA, log) or until the window ends, in the units of the scale.
    pub(crate) load: u64,
    /// In the quota's units: the instant, that units may be turned into nanoseconds. In
    /// nanoseconds: [`IN_NANOS`] and the calls left, where the core counts calls (GCRA derives
    /// them from `load`). One word for both, as every decision is moved several times.
    at: u64,
}

/// The bit of `Balance::at` that tells the scale.
const IN_NANOS: u64 = 1 << 63;

/// What a refused cost lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortfall {
    pub(crate) balance: Balance,
    /// Until the cost fits, in the units of the balance's scale.
    pub(crate) lacking: u64,
}

/// A charge, for whoever may give some of it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// From [`Rule::mark`](super::Rule::mark).
    pub(crate) state: u64,
    /// Which of the charges that may be given back it is.
    pub(crate) charge: u64,
    /// What had been given back in all before it, in the rule's units.
    pub(crate) returned: u64,
}

/// What a core counts time in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Nanoseconds.
    Nanos,
    /// The units of [`Gcra::scaled`].
    Quota,
}

impl Balance {
    /// A balance in nanoseconds, of a core that counts the calls `left`.
    #[inline]
    pub(crate) fn in_nanos(quota: Quota, load: u64, left: u32) -> Self {
        Self {
            quota,
            load,
            at: IN_NANOS | u64::from(left),
        }
    }

    /// A balance in the units of [`Gcra::scaled`] at `now`, which is before 2^63.
    #[inline]
    pub(crate) fn in_units(quota: Quota, load: u64, now: Nanos) -> Self {
        debug_assert!(
            now.as_u64() & IN_NANOS == 0,
            "time stands still before that"
        );
        Self {
            quota,
            load,
            at: now.as_u64(),
        }
    }

    fn scale(&self) -> Scale {
        if self.at & IN_NANOS == 0 {
            Scale::Quota
        } else {
            Scale::Nanos
        }
    }

    fn nanos(&self, units: u64) -> u64 {
        match self.scale() {
            Scale::Nanos => units,
            Scale::Quota => Gcra::scaled(self.quota).nanos_to_pass(Nanos::new(self.at), units),
        }
    }

    /// How many calls of cost 1 would be admitted now.
    pub(crate) fn remaining(&self) -> u32 {
        match (self.quota.algorithm(), self.scale()) {
            (Algorithm::Gcra, Scale::Quota) => Gcra::scaled(self.quota).left(self.load),
            (Algorithm::Gcra, Scale::Nanos) => Gcra::in_nanos(self.quota).left(self.load),
            _ => self.at as u32,
        }
    }

    /// Nanoseconds until full again, or until the window ends.
    pub(crate) fn reset_after(&self) -> u64 {
        self.nanos(self.load)
    }
}

impl Shortfall {
    /// Nanoseconds until the same cost is admitted.
    pub(crate) fn retry_after(&self) -> u64 {
        self.balance.nanos(self.lacking)
    }
}
