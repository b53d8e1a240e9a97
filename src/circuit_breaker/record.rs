use std::time::Duration;

use super::call_end::CallEnd;
use super::event::{CircuitEvent, CircuitEventKind};
use super::permit::Recorded;
use super::plan::Plan;
use super::shared::Shared;
use super::standing::Standing;
use super::state::{ProbeEnd, TransitionReason, Verdict};
use super::ticket::{Kind, Notes, Ticket};
use super::turn::Turn;
use super::window::{Landed, Mark, Tally};
use crate::clock::Nanos;
use crate::sync::Ordering;

/// An admitted call that has ended.
#[derive(Clone, Copy)]
struct Done {
    ticket: Ticket,
    end: CallEnd,
    at: Nanos,
    elapsed: Option<Duration>,
    slow: bool,
    /// `None`: adds nothing.
    tally: Option<Tally>,
    notes: Notes,
}

impl Shared {
    /// Ends a call that succeeded where the breaker stands as it did when it admitted the call, and
    /// stood [plainly](Standing::is_plain); otherwise does nothing.
    #[inline]
    pub(super) fn succeed_at_once(&self, ticket: &mut Ticket) -> Option<Recorded> {
        let standing = self.gate.standing();
        if standing != ticket.standing() {
            return None;
        }
        ticket.use_up();
        Some(match standing.writes_nothing() {
            true => Recorded::Counted,
            false => self.succeed_in_window(standing, ticket.start()),
        })
    }

    /// Takes of the ticket what counts, in registers.
    #[inline(never)]
    fn succeed_in_window(&self, standing: Standing, start: Nanos) -> Recorded {
        let epoch = standing.epoch();
        if !standing.is_timed() {
            return Recorded::counted_if(self.windows.mark_good_in_ring(epoch) == Landed::Yes);
        }
        let now = self.clock.now();
        let elapsed = now.as_u64().saturating_sub(start.as_u64());
        if standing.plan().ring() || self.gate.is_slow(elapsed) {
            return self.succeed_slowly(epoch, start, now);
        }
        let landed = self.windows.mark_good(epoch, now, elapsed);
        Recorded::counted_if(landed == Landed::Yes)
    }

    /// The notes are of no use here: there is no floor, and nobody listens.
    #[inline(never)]
    fn succeed_slowly(&self, epoch: u64, start: Nanos, at: Nanos) -> Recorded {
        let ticket = Ticket::new(epoch, Kind::Counted, Some(start));
        self.finish_any(ticket, CallEnd::Success, at, Notes::default())
    }

    /// Records how an admitted call ended, whose upstream asked for `retry_after` if anything.
    #[inline(never)]
    pub(super) fn finish_asked(
        &self,
        ticket: Ticket,
        end: CallEnd,
        retry_after: Option<Duration>,
    ) -> Recorded {
        let notes = Notes {
            floor: retry_after.unwrap_or_default(),
            ..Notes::default()
        };
        self.finish(ticket, end, notes)
    }

    /// Records how an admitted call ended.
    #[inline(never)]
    pub(super) fn finish(&self, ticket: Ticket, end: CallEnd, notes: Notes) -> Recorded {
        self.finish_any(ticket, end, self.clock.now(), notes)
    }

    #[inline(never)]
    fn finish_any(&self, ticket: Ticket, end: CallEnd, at: Nanos, notes: Notes) -> Recorded {
        let plan = self.gate.standing().plan();
        let slow = self.gate.is_slow(ticket.elapsed_nanos(at));
        let done = Done {
            ticket,
            end,
            at,
            elapsed: ticket.elapsed(at),
            slow,
            tally: plan.tally(end, slow),
            notes,
        };
        match (ticket.kind(), done.tally) {
            (Kind::Counted, Some(tally)) if !tally.is_failing() => self.succeed(plan, done, tally),
            (Kind::Counted, None) => {
                let counted = self.gate.epoch() == ticket.epoch();
                self.only_tell(done, Recorded::counted_if(counted))
            }
            (Kind::Uncounted, _) => self.only_tell(done, Recorded::Uncounted),
            _ => self.finish_under_lock(done),
        }
    }

    /// The end of a call that counts nowhere.
    fn only_tell(&self, done: Done, recorded: Recorded) -> Recorded {
        self.note_elapsed(done);
        self.report(done, recorded);
        self.events.deliver();
        recorded
    }

    fn succeed(&self, plan: Plan, done: Done, tally: Tally) -> Recorded {
        let epoch = done.ticket.epoch();
        let landed = if plan.ring() {
            self.windows.mark_ring(done.mark(tally))
        } else if plan.timed() {
            self.windows.mark_stripe(done.mark(tally))
        } else if self.gate.epoch() == epoch {
            Landed::Yes
        } else {
            Landed::Late
        };
        // Also where the policy counts no row: a later one may, and this success was in between.
        if landed == Landed::Yes && self.run.load(Ordering::Relaxed) != 0 {
            self.end_run(epoch);
        }
        let recorded = Recorded::counted_if(landed == Landed::Yes);
        if plan.counted() || plan.heard() {
            self.report(done, recorded);
            self.events.deliver();
        }
        recorded
    }

    #[cold]
    fn end_run(&self, epoch: u64) {
        // The time plays no part in this.
        let turn = self.turn(Nanos::ZERO);
        if turn.core.machine.epoch() == epoch {
            self.set_run(&turn.core, 0);
        }
    }

    #[cold]
    fn finish_under_lock(&self, done: Done) -> Recorded {
        let mut turn = self.settled_in_any_case(done.at);
        let recorded = match done.ticket.kind() {
            Kind::Probe(serial) => turn.end_probe(done, serial),
            Kind::Watched(number) => turn.end_watched(done, number),
            _ => turn.end_counted(done),
        };
        turn.end();
        recorded
    }

    /// A reserved slot comes back: no call was made, so there is nothing to tell.
    pub(super) fn end_reserved(&self, ticket: Ticket) {
        let Kind::Probe(serial) = ticket.kind() else {
            return;
        };
        let mut turn = self.settled_in_any_case(self.clock.now());
        let now = turn.now;
        let (machine, rules) = turn.core.split();
        let none = Verdict::Nothing;
        machine.end_probe(ticket.epoch(), serial, none, now, Duration::ZERO, rules);
        turn.wake();
        turn.let_on(1);
        turn.end();
    }

    fn note_elapsed(&self, done: Done) {
        if let Some(elapsed) = done.elapsed {
            self.windows.note_elapsed(done.at, elapsed);
        }
    }

    /// Counts and tells; delivering is the caller's, once it holds no lock.
    fn report(&self, done: Done, recorded: Recorded) -> Recorded {
        let stale = recorded == Recorded::Stale;
        if let Some(counters) = &self.counters {
            counters.end(done.end, done.slow, stale);
        }
        if self.events.are_heard() {
            let (end, slow) = (done.end, done.slow);
            let elapsed = done.elapsed.unwrap_or_default();
            let to_head = done.notes.head.and_then(|head| done.ticket.elapsed(head));
            let waited = done.notes.waited;
            let kind = match stale {
                true => CircuitEventKind::Discarded {
                    end,
                    slow,
                    elapsed,
                    to_head,
                    waited,
                },
                false => CircuitEventKind::Completed {
                    end,
                    slow,
                    elapsed,
                    to_head,
                    waited,
                },
            };
            let name = self.name.clone();
            self.events.push(CircuitEvent { name, kind });
        }
        recorded
    }
}

impl Done {
    fn mark(&self, tally: Tally) -> Mark {
        Mark {
            epoch: self.ticket.epoch(),
            tally,
            ended: self.at,
            elapsed: self.elapsed,
        }
    }
}

impl Turn<'_> {
    fn end_counted(&mut self, done: Done) -> Recorded {
        let current = self.core.machine.epoch() == done.ticket.epoch();
        let recorded = self.shared.report(done, Recorded::counted_if(current));
        match done.tally.filter(|_| current) {
            Some(tally) => self.count(tally, done.elapsed, done.notes.floor),
            None => self.shared.note_elapsed(done),
        }
        recorded
    }

    /// A call that is looked at while it runs: counted now, unless it was when it was overdue.
    fn end_watched(&mut self, done: Done, number: u64) -> Recorded {
        if self.core.overdue.end(done.ticket.start(), number) {
            return self.end_counted(done);
        }
        let current = self.core.machine.epoch() == done.ticket.epoch();
        self.shared.note_elapsed(done);
        self.shared.report(done, Recorded::counted_if(current))
    }

    fn end_probe(&mut self, done: Done, serial: u64) -> Recorded {
        let verdict = match done.tally {
            None => Verdict::Nothing,
            Some(tally) if tally.is_failing() => Verdict::Failing,
            Some(_) => Verdict::Good,
        };
        let (epoch, now) = (done.ticket.epoch(), self.now);
        let (machine, rules) = self.core.split();
        let end = machine.end_probe(epoch, serial, verdict, now, done.notes.floor, rules);
        let recorded = Recorded::counted_if(end != ProbeEnd::Late);
        self.shared.note_elapsed(done);
        self.shared.report(done, recorded);
        self.wake();
        if verdict == Verdict::Nothing {
            self.let_on(1);
        }
        if let ProbeEnd::Counted(transition) = end {
            self.apply(transition);
        }
        recorded
    }

    /// Counts a call in the window and the row; if it fails, judges.
    pub(super) fn count(&mut self, tally: Tally, elapsed: Option<Duration>, floor: Duration) {
        let shared = self.shared;
        let plan = shared.gate.standing().plan();
        let mark = Mark {
            epoch: self.core.machine.epoch(),
            tally,
            ended: self.now,
            elapsed,
        };
        match plan.ring() {
            true => shared.windows.mark_ring(mark),
            false => shared.windows.mark_stripe(mark),
        };
        let run = match tally.is_failing() && plan.run() {
            true => shared.run.load(Ordering::Relaxed).saturating_add(1),
            false => 0,
        };
        shared.set_run(&self.core, run);
        if tally.is_failing() {
            self.judge(run, floor);
        }
    }

    /// Counts a failure that no call stands for.
    pub(super) fn count_failure(&mut self) {
        let tally = Tally {
            failed: true,
            slow: false,
        };
        if self.core.machine.counting().is_some() {
            self.count(tally, None, Duration::ZERO);
        }
    }

    fn judge(&mut self, run: u32, floor: Duration) {
        let now = self.now;
        let counts = self.shared.windows.counts(now);
        let met: Option<TransitionReason> = self.core.policy.judge(run, counts);
        if let Some(reason) = met.filter(|_| self.core.part.open()) {
            let (machine, rules) = self.core.split();
            let transition = machine.trip(now, reason, floor, rules);
            self.apply(Some(transition));
        }
    }
}
