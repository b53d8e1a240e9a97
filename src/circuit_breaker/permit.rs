use std::fmt;
use std::time::Duration;

use super::breaker::CircuitBreaker;
use super::call_end::CallEnd;
use super::classify::Outcome;
use super::shared::Shared;
use super::ticket::Ticket;

/// One admitted call, recorded once: by one of the methods that take it, or when dropped.
///
/// Dropped without an outcome the call was cancelled, and counts by the policy's
/// [`Cancel`](super::Cancel) rule; dropped by a panic it failed. A probe's slot comes back either
/// way. Its time runs from the moment it was acquired.
#[must_use = "dropping a permit records its call as cancelled"]
pub struct Permit<'a> {
    shared: &'a Shared,
    /// Taken when recorded.
    ticket: Option<Ticket>,
}

/// A [`Permit`] that owns its handle, for calls that outlive the borrow: in spawned tasks and
/// futures. Costs one count of a shared reference more.
#[must_use = "dropping a permit records its call as cancelled"]
pub struct OwnedPermit {
    /// Taken when recorded.
    admitted: Option<Admitted>,
}

/// Whether a result changed what the breaker counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Recorded {
    /// It was taken into account; an ignored outcome by freeing its probe's slot, if any.
    Counted,
    /// It came too late: the state that the call was admitted in was left, or its probe's slot
    /// taken back. Only listeners hear of it.
    Stale,
    /// The call was admitted by hand, forced or disabled, and its result counts nowhere.
    Uncounted,
}

impl Recorded {
    pub(super) fn counted_if(current: bool) -> Self {
        if current { Self::Counted } else { Self::Stale }
    }
}

impl<'a> Permit<'a> {
    pub(super) fn new(shared: &'a Shared, ticket: Ticket) -> Self {
        Self {
            shared,
            ticket: Some(ticket),
        }
    }

    /// Records a success.
    pub fn success(self) -> Recorded {
        self.record(Outcome::Success)
    }

    /// Records a failure.
    pub fn failure(self) -> Recorded {
        self.record(Outcome::Failure)
    }

    /// Records that the call says nothing of its callee.
    pub fn ignore(self) -> Recorded {
        self.record(Outcome::Ignored)
    }

    /// Records `outcome`.
    pub fn record(self, outcome: Outcome) -> Recorded {
        self.record_with(outcome, None)
    }

    /// Records `outcome`; should it open the circuit, then for `retry_after` at least, up to the
    /// policy's [cap](super::CircuitPolicyBuilder::retry_after_cap).
    pub fn record_with(mut self, outcome: Outcome, retry_after: Option<Duration>) -> Recorded {
        match self.ticket.take() {
            Some(ticket) => {
                let floor = retry_after.unwrap_or_default();
                self.shared.finish(ticket, outcome.into(), floor)
            }
            None => Recorded::Stale, // never: it is taken by the methods that take the permit
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.shared.finish(ticket, end_of_drop(), Duration::ZERO);
        }
    }
}

impl OwnedPermit {
    pub(super) fn new(admitted: Admitted) -> Self {
        Self {
            admitted: Some(admitted),
        }
    }

    /// Records a success.
    pub fn success(self) -> Recorded {
        self.record(Outcome::Success)
    }

    /// Records a failure.
    pub fn failure(self) -> Recorded {
        self.record(Outcome::Failure)
    }

    /// Records that the call says nothing of its callee.
    pub fn ignore(self) -> Recorded {
        self.record(Outcome::Ignored)
    }

    /// Records `outcome`.
    pub fn record(self, outcome: Outcome) -> Recorded {
        self.record_with(outcome, None)
    }

    /// Records `outcome`; should it open the circuit, then for `retry_after` at least, up to the
    /// policy's [cap](super::CircuitPolicyBuilder::retry_after_cap).
    pub fn record_with(mut self, outcome: Outcome, retry_after: Option<Duration>) -> Recorded {
        match self.admitted.take() {
            Some(admitted) => admitted.record(outcome, retry_after),
            None => Recorded::Stale, // never, as above
        }
    }
}

impl Drop for OwnedPermit {
    fn drop(&mut self) {
        if let Some(admitted) = self.admitted.take() {
            admitted.finish(end_of_drop(), Duration::ZERO);
        }
    }
}

/// What a permit held by hand means by being dropped.
fn end_of_drop() -> CallEnd {
    if std::thread::panicking() {
        CallEnd::Panicked
    } else {
        CallEnd::Cancelled
    }
}

/// One admitted call, as the futures of this crate hold it. Dropped, it is cancelled whatever the
/// thread is doing: that a future is dropped by a panic elsewhere says nothing of its own call,
/// and a panic of its own is told by [`panicked`](Self::panicked).
#[doc(hidden)]
pub struct Admitted {
    breaker: CircuitBreaker,
    ticket: Option<Ticket>,
}

impl Admitted {
    pub(super) fn new(breaker: CircuitBreaker, ticket: Ticket) -> Self {
        Self {
            breaker,
            ticket: Some(ticket),
        }
    }

    /// Records `outcome`; `retry_after` is what the upstream asked for, if anything.
    #[inline]
    pub(crate) fn record(self, outcome: Outcome, retry_after: Option<Duration>) -> Recorded {
        self.finish(outcome.into(), retry_after.unwrap_or_default())
    }

    /// Records that the inner call or poll panicked.
    pub(crate) fn panicked(self) -> Recorded {
        self.finish(CallEnd::Panicked, Duration::ZERO)
    }

    /// Says how long the call waited before it was admitted.
    pub(crate) fn set_waited(&mut self, waited: Duration) {
        if let Some(ticket) = &mut self.ticket {
            ticket.waited = waited;
        }
    }

    #[inline]
    fn finish(mut self, end: CallEnd, floor: Duration) -> Recorded {
        match self.ticket.take() {
            Some(ticket) => self.breaker.shared().finish(ticket, end, floor),
            None => Recorded::Stale, // never, as above
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let shared = self.breaker.shared();
            shared.finish(ticket, CallEnd::Cancelled, Duration::ZERO);
        }
    }
}

/// A probe's slot held by a service instance that answered ready; comes back when dropped.
pub(crate) struct Reservation {
    breaker: CircuitBreaker,
    ticket: Option<Ticket>,
}

impl Reservation {
    pub(super) fn new(breaker: CircuitBreaker, ticket: Ticket) -> Self {
        Self {
            breaker,
            ticket: Some(ticket),
        }
    }

    /// Whether the state it was taken in still stands.
    pub(crate) fn is_current(&self) -> bool {
        let epoch = self.breaker.shared().gate.epoch();
        self.ticket.is_some_and(|ticket| ticket.epoch == epoch)
    }

    /// Begins the probe. `None` where the slot was lost meanwhile: the state was left, or the
    /// slot held longer than a probe may take. The call is then admitted as any other.
    pub(crate) fn begin(mut self) -> Option<Admitted> {
        let ticket = self.ticket.take()?;
        let begun = self.breaker.shared().begin_reserved(ticket)?;
        Some(Admitted::new(self.breaker.clone(), begun))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.breaker.shared().end_reserved(ticket);
        }
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({}, {:?})", self.shared.name, self.ticket)
    }
}

impl fmt::Debug for OwnedPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedPermit({:?})", self.admitted)
    }
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {:?}", self.breaker.name(), self.ticket)
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservation({})", self.breaker.name())
    }
}
