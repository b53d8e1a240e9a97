use std::fmt;
use std::time::Duration;

use super::breaker::CircuitBreaker;
use super::call_end::CallEnd;
use super::classify::Outcome;
use super::shared::Shared;
use super::ticket::{Notes, Ticket};
use crate::clock::Nanos;

/// One admitted call, recorded once: by one of the methods that take it, or when dropped.
///
/// Dropped without an outcome the call was cancelled, and counts by the policy's
/// [`Cancel`](super::Cancel) rule; dropped by a panic it failed. A probe's slot comes back either
/// way. Its time runs from the moment it was acquired.
#[must_use = "dropping a permit records its call as cancelled"]
pub struct Permit<'a> {
    shared: &'a Shared,
    ticket: Ticket,
}

/// A [`Permit`] that owns its handle, for calls that outlive the borrow: in spawned tasks and
/// futures. Costs one count of a shared reference more.
#[must_use = "dropping a permit records its call as cancelled"]
pub struct OwnedPermit {
    admitted: Admitted,
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
        Self { shared, ticket }
    }

    /// Records a success.
    #[inline]
    pub fn success(self) -> Recorded {
        self.record(Outcome::Success)
    }

    /// Records a failure.
    #[inline]
    pub fn failure(self) -> Recorded {
        self.record(Outcome::Failure)
    }

    /// Records that the call says nothing of its callee.
    pub fn ignore(self) -> Recorded {
        self.record(Outcome::Ignored)
    }

    /// Records `outcome`.
    #[inline]
    pub fn record(self, outcome: Outcome) -> Recorded {
        self.record_with(outcome, None)
    }

    /// Records `outcome`; should it open the circuit, then for `retry_after` at least, up to the
    /// policy's [cap](super::CircuitPolicyBuilder::retry_after_cap).
    #[inline]
    pub fn record_with(self, outcome: Outcome, retry_after: Option<Duration>) -> Recorded {
        let (shared, mut ticket) = (self.shared, self.ticket);
        // It owns nothing that a drop would have to free.
        std::mem::forget(self);
        if is_plain(outcome, retry_after)
            && let Some(recorded) = shared.succeed_at_once(&mut ticket)
        {
            return recorded;
        }
        shared.finish_asked(ticket, outcome.into(), retry_after)
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.shared.finish_asked(self.ticket, end_of_drop(), None);
    }
}

impl OwnedPermit {
    pub(super) fn new(admitted: Admitted) -> Self {
        Self { admitted }
    }

    /// Records a success.
    #[inline]
    pub fn success(self) -> Recorded {
        self.record(Outcome::Success)
    }

    /// Records a failure.
    #[inline]
    pub fn failure(self) -> Recorded {
        self.record(Outcome::Failure)
    }

    /// Records that the call says nothing of its callee.
    pub fn ignore(self) -> Recorded {
        self.record(Outcome::Ignored)
    }

    /// Records `outcome`.
    #[inline]
    pub fn record(self, outcome: Outcome) -> Recorded {
        self.record_with(outcome, None)
    }

    /// Records `outcome`; should it open the circuit, then for `retry_after` at least, up to the
    /// policy's [cap](super::CircuitPolicyBuilder::retry_after_cap).
    #[inline]
    pub fn record_with(mut self, outcome: Outcome, retry_after: Option<Duration>) -> Recorded {
        if is_plain(outcome, retry_after)
            && let Some(recorded) = self.admitted.succeed_at_once()
        {
            return recorded;
        }
        self.admitted.finish(outcome.into(), retry_after, None)
    }
}

impl Drop for OwnedPermit {
    #[inline]
    fn drop(&mut self) {
        if self.admitted.ticket.is_open() {
            self.admitted.finish(end_of_drop(), None, None);
        }
    }
}

/// Whether it may be a success that takes little to record. With a floor for the open time it is
/// not, should it be a slow one.
#[inline]
pub(super) fn is_plain(outcome: Outcome, retry_after: Option<Duration>) -> bool {
    outcome == Outcome::Success && retry_after.is_none()
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
    ticket: Ticket,
    /// How long it had waited before; nanoseconds, for a word less in each future.
    waited: Nanos,
}

impl Admitted {
    #[inline]
    pub(super) fn new(breaker: CircuitBreaker, ticket: Ticket) -> Self {
        Self {
            breaker,
            ticket,
            waited: Nanos::ZERO,
        }
    }

    /// Records a success where that takes little; otherwise does nothing.
    #[inline]
    pub(super) fn succeed_at_once(&mut self) -> Option<Recorded> {
        self.breaker.shared().succeed_at_once(&mut self.ticket)
    }

    /// Records `outcome`; `retry_after` is what the upstream asked for, if anything.
    pub(super) fn end(mut self, outcome: Outcome, retry_after: Option<Duration>) {
        self.finish(outcome.into(), retry_after, None);
    }

    /// Records `outcome` of a call that went on past the head of its answer, which was in at
    /// `head`.
    #[cfg_attr(not(feature = "http"), allow(dead_code))] // bodies are http's
    pub(crate) fn record_past_head(
        mut self,
        outcome: Outcome,
        retry_after: Option<Duration>,
        head: Option<Nanos>,
    ) {
        self.finish(outcome.into(), retry_after, head);
    }

    /// Records that the inner call or poll panicked.
    #[cold]
    pub(crate) fn panicked(mut self) {
        self.finish(CallEnd::Panicked, None, None);
    }

    /// Says how long the instance waited for the circuit before the call.
    #[inline]
    pub(crate) fn set_waited(&mut self, waited: Duration) {
        self.waited = Nanos::saturating(waited);
    }

    /// The time now, if anyone wants to hear when the head of the answer was in.
    #[cfg_attr(not(feature = "http"), allow(dead_code))] // as above
    pub(crate) fn time_of_head(&self) -> Option<Nanos> {
        let shared = self.breaker.shared();
        shared.events.are_heard().then(|| shared.clock.now())
    }

    #[cold]
    #[inline(never)]
    fn cancel(&mut self) {
        self.finish(CallEnd::Cancelled, None, None);
    }

    /// Records the end, unless one was.
    #[inline(never)]
    fn finish(
        &mut self,
        end: CallEnd,
        retry_after: Option<Duration>,
        head: Option<Nanos>,
    ) -> Recorded {
        let notes = Notes {
            floor: retry_after.unwrap_or_default(),
            waited: self.waited.into(),
            head,
        };
        match self.ticket.take() {
            Some(ticket) => self.breaker.shared().finish(ticket, end, notes),
            None => Recorded::Stale,
        }
    }
}

impl Drop for Admitted {
    #[inline]
    fn drop(&mut self) {
        if self.ticket.is_open() {
            self.cancel();
        }
    }
}

/// A probe's slot held by a service instance that answered ready; comes back when dropped.
pub(crate) struct Reservation {
    breaker: CircuitBreaker,
    ticket: Ticket,
}

impl Reservation {
    pub(super) fn new(breaker: CircuitBreaker, ticket: Ticket) -> Self {
        Self { breaker, ticket }
    }

    /// Whether the state it was taken in still stands.
    pub(crate) fn is_current(&self) -> bool {
        let epoch = self.breaker.shared().gate.epoch();
        self.ticket.epoch() == epoch
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
