use std::time::Duration;

use super::error::{CircuitOpen, CircuitOpenReason};
use super::event::CircuitEventKind;
use super::shared::Shared;
use super::standing::{Standing, Way};
use super::state::{Arrival, Inner, Phase};
use super::ticket::{Kind, Ticket};
use super::turn::Turn;
use super::window::Tally;
use crate::clock::Nanos;

impl Shared {
    /// Decides on a call that arrives at an instance whose inner service is as `inner` says.
    #[inline]
    pub(super) fn admit(&self, inner: Inner) -> Result<Ticket, CircuitOpen> {
        let standing = self.gate.standing();
        match inner == Inner::Ready && standing.is_plain() {
            true => Ok(self.pass_plainly(standing)),
            false => self.admit_otherwise(standing, inner),
        }
    }

    /// The ticket of a call that passes by a [plain](Standing::is_plain) standing.
    #[inline]
    pub(super) fn pass_plainly(&self, standing: Standing) -> Ticket {
        let start = match standing.is_timed() {
            true => self.read_clock(),
            false => Nanos::MAX,
        };
        Ticket::passing(standing, start)
    }

    /// Out of line: what comes back is one register, and three kinds of clock stay away.
    #[inline(never)]
    fn read_clock(&self) -> Nanos {
        self.clock.now()
    }

    /// Out of line, so that what passes pays for nothing but passing.
    #[inline(never)]
    fn admit_otherwise(&self, standing: Standing, inner: Inner) -> Result<Ticket, CircuitOpen> {
        match self.refuse_until_later(standing) {
            Some(refusal) => Err(refusal),
            None => self.admit_rarely(inner),
        }
    }

    /// The refusal of an open circuit whose time has an end that has not come; `None` for anything
    /// else.
    #[inline]
    pub(super) fn refuse_until_later(&self, standing: Standing) -> Option<CircuitOpen> {
        let until = self.gate.refusing_until(standing)?;
        let left = self.read_clock().left_until(until)?;
        let name = self.name.clone();
        Some(CircuitOpen::new(name, CircuitOpenReason::Open, Some(left)))
    }

    /// Decides on any call, whatever it takes.
    #[cold]
    #[inline(never)]
    pub(super) fn admit_rarely(&self, inner: Inner) -> Result<Ticket, CircuitOpen> {
        let standing = self.gate.standing();
        match standing.way() {
            Way::Pass if inner == Inner::Ready => Ok(self.pass(standing, Kind::Counted)),
            Way::PassUncounted if inner == Inner::Ready => Ok(self.pass(standing, Kind::Uncounted)),
            Way::RefuseForced => Err(self.refusal(CircuitOpenReason::Forced, None)),
            Way::RefuseForEver => Err(self.refusal(CircuitOpenReason::Open, None)),
            _ => self.ask_to_pass(inner),
        }
    }

    /// Refuses a call that arrives at an instance whose inner service was left alone, if the time
    /// that has not come is why; `None` for any other, which has not been decided on. The clock is
    /// read anew, though `poll_ready` read it: however long the instance sat between the two, the
    /// time left is from now, and a probe that has become due is not taken for a call too many.
    #[inline]
    pub(super) fn refuse_at_once(&self) -> Option<CircuitOpen> {
        self.refuse_until_later(self.gate.standing())
    }

    /// Refuses a call that arrives at an instance whose inner service was left alone, whatever it
    /// takes to tell why.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_unpolled(&self) -> CircuitOpen {
        match self.admit_otherwise(self.gate.standing(), Inner::Unpolled) {
            Err(refused) => refused,
            Ok(ticket) => unreachable!("admitted without its inner service: {ticket:?}"),
        }
    }

    /// Whether a call that arrived now would be refused without its inner service being needed,
    /// where the breaker stands as it did in `standing`. Changes nothing, and never says so of a
    /// call that is due to be a probe.
    #[inline]
    pub(super) fn would_refuse(&self, standing: Standing) -> bool {
        match self.gate.refusing_until(standing) {
            Some(until) if self.read_clock() < until => true,
            _ => self.would_refuse_otherwise(),
        }
    }

    #[inline(never)]
    fn would_refuse_otherwise(&self) -> bool {
        match self.gate.standing().way() {
            Way::Pass | Way::PassUncounted => false,
            Way::RefuseForced | Way::RefuseForEver => true,
            Way::RefuseInTime | Way::Ask => {
                let now = self.clock.now();
                self.view(now, |core, machine| {
                    !machine.commands().shadow() && machine.would_refuse(now, core.rules())
                })
            }
        }
    }

    fn pass(&self, standing: Standing, kind: Kind) -> Ticket {
        if let Some(counters) = &self.counters {
            counters.admit();
        }
        let start = standing.is_timed().then(|| self.clock.now());
        Ticket::new(standing.epoch(), kind, start)
    }

    fn refusal(&self, reason: CircuitOpenReason, retry_after: Option<Duration>) -> CircuitOpen {
        let left = retry_after.map(Nanos::saturating);
        CircuitOpen::new(self.name.clone(), reason, left)
    }

    #[cold]
    fn ask_to_pass(&self, inner: Inner) -> Result<Ticket, CircuitOpen> {
        let mut turn = self.settled(self.clock.now());
        let now = turn.now;
        let (machine, rules) = turn.core.split();
        let (arrival, transition) = machine.arrive(now, inner, rules);
        // The probe is admitted before listeners are told of the state that it began.
        let answer = turn.answer_to(arrival, inner);
        turn.apply(transition);
        // The end of a gentle return changes the way, not the state.
        self.set_gate(&turn.core);
        turn.end();
        answer
    }

    /// Takes a probe's slot for an instance that answers ready: `Err` where it must wait, `None`
    /// where no slot is needed.
    pub(super) fn reserve(&self) -> Result<Option<Ticket>, ()> {
        if self.gate.standing().passes() {
            return Ok(None);
        }
        let mut turn = self.settled(self.clock.now());
        let now = turn.now;
        let shadow = turn.core.machine.commands().shadow();
        let (machine, rules) = turn.core.split();
        let reserved = match machine.phase() {
            Phase::Closed { .. } => Ok(None),
            _ if shadow => Ok(None),
            _ => machine.reserve(now, rules).map(Some).ok_or(()),
        };
        let ticket = reserved.map(|probe| {
            probe.map(|(serial, transition)| {
                turn.apply(transition);
                turn.ticket(Kind::Probe(serial))
            })
        });
        turn.end();
        ticket
    }

    /// Makes a reserved slot the probe that begins now; `None` where the slot was lost meanwhile.
    pub(super) fn begin_reserved(&self, ticket: Ticket) -> Option<Ticket> {
        let Kind::Probe(serial) = ticket.kind() else {
            return None;
        };
        let mut turn = self.settled(self.clock.now());
        let now = turn.now;
        let (machine, rules) = turn.core.split();
        let held = machine.begin_reserved(ticket.epoch(), serial, now, rules);
        let begun = held.then(|| {
            turn.wake();
            if let Some(counters) = &self.counters {
                counters.admit();
            }
            turn.ticket(ticket.kind())
        });
        turn.end();
        begun
    }
}

impl Turn<'_> {
    /// Counts, as slow, the calls that have run past the slow threshold by now.
    pub(super) fn count_overdue(&mut self) {
        // Calls that began under another policy may be watched still.
        while self.core.take_overdue(self.now) {
            let tally = Tally {
                failed: false,
                slow: true,
            };
            self.count(tally, None, Duration::ZERO);
        }
    }

    fn answer_to(&mut self, arrival: Arrival, inner: Inner) -> Result<Ticket, CircuitOpen> {
        let kind = match arrival {
            Arrival::Pass if self.core.policy.count_overdue => {
                Kind::Watched(self.core.overdue.begin(self.now))
            }
            Arrival::Pass => Kind::Counted,
            Arrival::PassUncounted => Kind::Uncounted,
            Arrival::Probe(serial) => {
                // Its deadline is a new time for a driver to look at.
                self.wake();
                Kind::Probe(serial)
            }
            Arrival::Refuse { reason, .. } if self.is_overruled(inner) => {
                self.note_would_refuse(reason);
                Kind::Uncounted
            }
            Arrival::Refuse {
                reason,
                retry_after,
            } => return Err(self.refuse(reason, retry_after)),
        };
        if let Some(counters) = &self.shared.counters {
            counters.admit();
        }
        Ok(self.ticket(kind))
    }

    fn ticket(&self, kind: Kind) -> Ticket {
        Ticket::new(self.core.machine.epoch(), kind, Some(self.now))
    }

    /// Whether a refusal is not to be carried out, as the breaker is disabled. One that an
    /// unpolled inner service is the reason of always is: it cannot take the call.
    fn is_overruled(&self, inner: Inner) -> bool {
        self.core.machine.commands().shadow() && inner == Inner::Ready
    }

    fn note_would_refuse(&self, reason: CircuitOpenReason) {
        if let Some(counters) = &self.shared.counters {
            counters.would_refuse();
        }
        self.tell(CircuitEventKind::WouldHaveRefused { reason });
    }

    fn refuse(&self, reason: CircuitOpenReason, retry_after: Option<Duration>) -> CircuitOpen {
        if let Some(counters) = &self.shared.counters {
            counters.refuse();
        }
        self.tell(CircuitEventKind::Refused {
            reason,
            retry_after,
        });
        self.shared.refusal(reason, retry_after)
    }

    fn tell(&self, kind: CircuitEventKind) {
        if self.shared.events.are_heard() {
            self.shared.events.push(self.event(kind));
        }
    }
}
