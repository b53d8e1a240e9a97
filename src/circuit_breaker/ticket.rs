use std::fmt;
use std::time::Duration;

use super::standing::Standing;
use crate::clock::Nanos;

/// What an admitted call carries until it ends; three words, as it is moved into each future.
#[derive(Clone, Copy)]
pub(super) struct Ticket {
    /// How the breaker stood when it admitted the call; none once the ticket was used.
    standing: Standing,
    /// The kind in the lowest bits, and the number of a probe or a watched call.
    mark: u64,
    /// When it was admitted; the end of time where the clock was not read.
    start: Nanos,
}

/// What is known of a call besides its outcome, when it ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notes {
    /// The least open time that its upstream asked for, should it open the circuit.
    pub(super) floor: Duration,
    /// How long it had waited before it was admitted.
    pub(super) waited: Duration,
    /// When the head of its answer was in, where it went on past that and someone listens.
    pub(super) head: Option<Nanos>,
}

/// How an admitted call counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counted,
    /// Admitted by hand; its result counts nowhere.
    Uncounted,
    /// The probe of this number.
    Probe(u64),
    /// Counted, and looked at while it runs, by this number.
    Watched(u64),
}

const KIND_BITS: u32 = 2;

impl Ticket {
    /// For a call that passes and is counted, by a [plain](Standing::is_plain) standing alone.
    #[inline]
    pub(super) fn passing(standing: Standing, start: Nanos) -> Self {
        Self {
            standing,
            mark: 0,
            start,
        }
    }

    /// For any other call.
    pub(super) fn new(epoch: u64, kind: Kind, start: Option<Nanos>) -> Self {
        let mark = match kind {
            Kind::Counted => 0,
            Kind::Uncounted => 1,
            Kind::Probe(number) => number << KIND_BITS | 2,
            Kind::Watched(number) => number << KIND_BITS | 3,
        };
        Self {
            standing: Standing::apart(epoch),
            mark,
            start: start.unwrap_or(Nanos::MAX),
        }
    }

    /// Whether it was not used.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.standing != Standing::NONE
    }

    #[inline]
    pub(super) fn use_up(&mut self) {
        self.standing = Standing::NONE;
    }

    /// Uses the ticket up; `None` where it was before.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Self> {
        let ticket = *self;
        self.use_up();
        ticket.is_open().then_some(ticket)
    }

    pub(super) fn kind(&self) -> Kind {
        let number = self.mark >> KIND_BITS;
        match self.mark & 3 {
            0 => Kind::Counted,
            1 => Kind::Uncounted,
            2 => Kind::Probe(number),
            _ => Kind::Watched(number),
        }
    }

    /// The epoch it was admitted in.
    pub(super) fn epoch(&self) -> u64 {
        self.standing.epoch()
    }

    #[inline]
    pub(super) fn standing(&self) -> Standing {
        self.standing
    }

    /// When it was admitted; the end of time where that is not known.
    #[inline]
    pub(super) fn start(&self) -> Nanos {
        self.start
    }

    /// Nanoseconds from the start to `now`; 0 where the start is not known.
    #[inline]
    pub(super) fn elapsed_nanos(&self, now: Nanos) -> u64 {
        now.as_u64().saturating_sub(self.start.as_u64())
    }

    /// The time from the start to `now`, where the start is known.
    pub(super) fn elapsed(&self, now: Nanos) -> Option<Duration> {
        (self.start < Nanos::MAX).then(|| now.since(self.start))
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in epoch {}", self.kind(), self.epoch())
    }
}
