use std::time::Duration;

use crate::clock::Nanos;

/// What an admitted call carries until it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub(super) kind: Kind,
    /// The epoch it was admitted in.
    pub(super) epoch: u64,
    /// When it was admitted, if the clock was read.
    pub(super) start: Option<Nanos>,
    /// How long it had waited before.
    pub(super) waited: Duration,
}

/// How an admitted call counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counted,
    /// Counted, and looked at while it runs, by this number.
    Watched(u64),
    /// Admitted by hand; its result counts nowhere.
    Uncounted,
    /// The probe of this number.
    Probe(u64),
}
