use super::Gcra;
use crate::clock::Nanos;
use crate::rate_limit::{Algorithm, Quota};

/// What is left of a quota, as a core reports it. Divisions are left to whoever asks: most
/// callers only look at whether they were admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Balance {
    pub(crate) quota: Quota,
    pub(crate) now: Nanos,
    /// Until full (GCRA, log) or until the window ends, in the units of `scale`.
    pub(crate) load: u64,
    /// Calls left, where the core counts calls; GCRA derives them from `load`.
    pub(crate) left: u32,
    pub(crate) scale: Scale,
}

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
#[repr(u32)] // one word with the calls left, and stored with them
pub(crate) enum Scale {
    /// Nanoseconds.
    Nanos,
    /// The units of [`Gcra::scaled`].
    Quota,
}

impl Balance {
    fn nanos(&self, units: u64) -> u64 {
        match self.scale {
            Scale::Nanos => units,
            Scale::Quota => Gcra::scaled(self.quota).nanos_to_pass(self.now, units),
        }
    }

    /// How many calls of cost 1 would be admitted now.
    pub(crate) fn remaining(&self) -> u32 {
        match (self.quota.algorithm(), self.scale) {
            (Algorithm::Gcra, Scale::Quota) => Gcra::scaled(self.quota).left(self.load),
            (Algorithm::Gcra, Scale::Nanos) => Gcra::in_nanos(self.quota).left(self.load),
            _ => self.left,
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
