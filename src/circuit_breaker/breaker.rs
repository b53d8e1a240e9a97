use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::builder::CircuitBreakerBuilder;
use super::call::Call;
use super::drive::Drive;
use super::error::CircuitOpen;
use super::permit::{Admitted, OwnedPermit, Permit, Reservation};
use super::policy::CircuitPolicy;
use super::shared::Shared;
use super::snapshot::Snapshot;
use super::standing::Standing;
use super::state::{CircuitState, Inner, Machine};
use super::wait::WhenClosed;
use crate::Name;

/// A handle to one circuit breaker. Clones are handles to the same breaker.
///
/// See the [module](super) for what it does and how to choose its policy.
#[derive(Clone)]
pub struct CircuitBreaker(Arc<Shared>);

impl CircuitBreaker {
    /// Makes a closed breaker that goes by tokio's time and tells no one.
    pub fn new(name: impl Into<Name>, policy: CircuitPolicy) -> Self {
        Self::builder(name, policy).build()
    }

    /// Starts a breaker with a clock, counters or listeners of its own.
    pub fn builder(name: impl Into<Name>, policy: CircuitPolicy) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder::new(name.into(), policy)
    }

    pub(super) fn from_shared(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.0
    }

    pub(super) fn arc(&self) -> &Arc<Shared> {
        &self.0
    }

    /// Admits a call, or refuses it.
    ///
    /// # Errors
    ///
    /// Where the circuit is open, or half-open with no probe to spare: by which name, why, and the
    /// time left where one is known.
    #[inline]
    pub fn try_acquire(&self) -> Result<Permit<'_>, CircuitOpen> {
        let standing = self.standing();
        // Three exits, so that neither a ticket nor a refusal is moved from where it is put
        // together.
        if standing.is_plain() {
            return Ok(Permit::new(&self.0, self.0.pass_plainly(standing)));
        }
        if let Some(refusal) = self.0.refuse_until_later(standing) {
            return Err(refusal);
        }
        let ticket = self.0.admit_rarely(Inner::Ready)?;
        Ok(Permit::new(&self.0, ticket))
    }

    /// Admits a call, or refuses it, with a permit that may outlive this handle.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn acquire_owned(&self) -> Result<OwnedPermit, CircuitOpen> {
        self.admit().map(OwnedPermit::new)
    }

    /// Runs `future` as one call: its `Ok` is a success, its `Err` a failure.
    ///
    /// Admission is asked for, and the time runs, from the first poll. Dropping the returned
    /// future before it is ready cancels the call; a panic of `future` is a failure, and goes on.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`](crate::Error::Refused) where the call was refused; `future` is then
    /// never polled. [`Error::Inner`](crate::Error::Inner) with its own error.
    pub fn call<F, T, E>(&self, future: F) -> Call<F>
    where
        F: Future<Output = Result<T, E>>,
    {
        Call::new(self.clone(), future)
    }

    /// The breaker's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The state now. Starts no transition: an open state whose time is over reads open until a
    /// call arrives, or [`drive`](Self::drive) looks.
    pub fn state(&self) -> CircuitState {
        let now = self.0.clock.now();
        self.0.view(now, |_, machine| machine.state())
    }

    /// All there is to know now. Starts no transition.
    pub fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    /// The policy in force.
    pub fn policy(&self) -> CircuitPolicy {
        let now = self.0.clock.now();
        self.0.view(now, |core, _| core.policy.clone())
    }

    /// Refuses every call until [released](Self::release), whatever else is commanded. Calls in
    /// flight end as they will; their results change nothing. Counts and growth are dropped.
    pub fn force_open(&self) {
        self.0.command(Machine::force_open);
    }

    /// Admits every call until [released](Self::release), unless forced open, and counts none:
    /// failures never trip. Calls in flight end as they will; their results change nothing. Counts
    /// and growth are dropped.
    pub fn force_close(&self) {
        self.0.command(Machine::force_close);
    }

    /// Refuses no call until [released](Self::release): the shadow mode. The circuit counts,
    /// trips and recovers as ever, and reports what it would have refused; calls that only this
    /// let through do not count. State, counts and calls in flight stay as they are. Forced open
    /// and forced closed are stronger.
    pub fn disable(&self) {
        self.0.command(|machine, _| machine.disable());
    }

    /// Ends all commands: the circuit is closed, with empty counts and no growth. Results of calls
    /// in flight change nothing. Does nothing where no command is in force.
    pub fn release(&self) {
        self.0.command(Machine::release);
    }

    /// Makes the circuit as if new: closed, with empty counts and no growth, unless forced open.
    /// Results of calls in flight change nothing. Commands stay in force; trips and totals go on.
    pub fn reset(&self) {
        self.0.command(Machine::reset);
    }

    /// Goes by `policy` from here on, in the state as it is:
    ///
    /// - a window of the same kind and size keeps its calls, another starts empty; the count in a
    ///   row stays until an outcome ends it, or fails under a policy that counts none; what is met
    ///   already is judged at the next failing outcome;
    /// - a gentle return that runs goes on; calls in flight are slow, and overdue, by the new
    ///   threshold, but for those that began where nothing asked for the time: they are not slow;
    /// - an open time that runs goes on, unless it has no end and the new policy gives one;
    /// - half-open goes on with the probes in flight under their old deadlines, and closes at once
    ///   if as many have succeeded as are now needed.
    ///
    /// A call that ends in the same moment may be counted in the window that is left.
    pub fn set_policy(&self, policy: CircuitPolicy) {
        self.0.set_policy(policy);
    }

    /// Waits, without polling, until the circuit is closed. Dropping the future leaves nothing
    /// behind.
    ///
    /// It starts no transition, so where no calls arrive something else must: a caller that tries,
    /// or [`drive`](Self::drive).
    pub fn when_closed(&self) -> WhenClosed {
        WhenClosed::new(self.clone())
    }

    /// Makes due transitions happen without a call: open to half-open when the open time is over,
    /// half-open to open when a probe has run too long, closed to open when calls are overdue and
    /// [counted](super::CircuitPolicyBuilder::count_overdue). Spawn it where gauges and listeners
    /// must not wait for traffic; nothing else needs it.
    ///
    /// It holds no handle, and ends when the last one goes.
    pub fn drive(&self) -> Drive {
        Drive::new(self)
    }
}

/// What the layer and the registry ask.
impl CircuitBreaker {
    /// Admits a call that arrives at an instance whose inner service was polled ready.
    #[inline]
    pub(crate) fn admit(&self) -> Result<Admitted, CircuitOpen> {
        let standing = self.standing();
        // Two exits, so that the ticket of the first is never put together in memory.
        match standing.is_plain() {
            true => Ok(self.admit_plainly(standing)),
            false => self.admit_noted(),
        }
    }

    /// How it stands.
    #[inline]
    pub(super) fn standing(&self) -> Standing {
        self.0.gate.standing()
    }

    /// Admits a call where the breaker stands so, which is [plain](Standing::is_plain).
    #[inline]
    pub(super) fn admit_plainly(&self, standing: Standing) -> Admitted {
        let ticket = self.0.pass_plainly(standing);
        Admitted::new(self.clone(), ticket)
    }

    /// The same, for a handle that nobody else needs: one shared count less.
    #[inline]
    pub(crate) fn into_admitted(self) -> Result<Admitted, CircuitOpen> {
        let standing = self.standing();
        if !standing.is_plain() {
            return self.admit_noted();
        }
        let ticket = self.0.pass_plainly(standing);
        Ok(Admitted::new(self, ticket))
    }

    /// Admits a call, or refuses it, whatever it takes to find out.
    #[inline(never)]
    pub(crate) fn admit_noted(&self) -> Result<Admitted, CircuitOpen> {
        let ticket = self.0.admit(Inner::Ready)?;
        Ok(Admitted::new(self.clone(), ticket))
    }

    /// Refuses a call that arrives at an instance whose inner service was left alone when it was
    /// polled, if the circuit is open up to a time that has not come; `None` for any other, which
    /// has not been decided on.
    #[inline]
    pub(crate) fn refuse_at_once(&self) -> Option<CircuitOpen> {
        self.0.refuse_at_once()
    }

    /// Refuses a call that arrives at an instance whose inner service was left alone when it was
    /// polled: as ever while open; otherwise as not ready, with the probe, if one is due, left due.
    #[inline]
    pub(crate) fn refuse_unpolled(&self) -> CircuitOpen {
        self.0.refuse_unpolled()
    }

    /// Whether a call now would be refused without its inner service being needed.
    #[inline]
    pub(super) fn would_refuse(&self, standing: Standing) -> bool {
        self.0.would_refuse(standing)
    }

    /// The inner service failed to become ready: a failure while closed, a probe's failure while
    /// half-open or due.
    pub(crate) fn readiness_failed(&self) {
        self.0.readiness_failed();
    }

    /// Takes a probe's slot for an instance that answers ready: `Err` where it must wait, `None`
    /// where no slot is needed.
    pub(crate) fn reserve(&self) -> Result<Option<Reservation>, ()> {
        let ticket = self.0.reserve()?;
        Ok(ticket.map(|ticket| Reservation::new(self.clone(), ticket)))
    }

    /// Whether the breaker equals one just made, but for successes it has counted.
    pub(crate) fn is_fresh(&self) -> bool {
        self.0.is_fresh()
    }

    /// Opens from here on without regard to the other breakers of its registry, and leaves them
    /// its part.
    pub(crate) fn leave_open_share(&self) {
        self.0.leave_open_share();
    }

    /// How many handles there are, permits of calls in flight among them.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CircuitBreaker({})", self.snapshot())
    }
}
