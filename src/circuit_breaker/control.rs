use super::policy::CircuitPolicy;
use super::registry::OpenPart;
use super::shared::Shared;
use super::state::{CircuitState, Machine, Transition};
use crate::clock::Nanos;

impl Shared {
    /// Carries out a command.
    pub(super) fn command(&self, command: impl Fn(&mut Machine, Nanos) -> Option<Transition>) {
        let mut turn = self.settled_in_any_case(self.clock.now());
        let now = turn.now;
        let transition = command(&mut turn.core.machine, now);
        turn.apply(transition);
        self.set_gate(&turn.core);
        turn.end();
    }

    /// The inner service failed to become ready.
    pub(super) fn readiness_failed(&self) {
        let mut turn = self.settled_in_any_case(self.clock.now());
        let now = turn.now;
        if turn.core.machine.state() == CircuitState::Closed {
            turn.count_failure();
        } else {
            let (machine, rules) = turn.core.split();
            let transition = machine.not_ready(now, rules);
            turn.apply(transition);
        }
        turn.end();
    }

    /// Goes by `policy` from here on.
    pub(super) fn set_policy(&self, policy: CircuitPolicy) {
        let old = {
            let mut turn = self.settled_in_any_case(self.clock.now());
            let old = std::mem::replace(&mut turn.core.policy, policy);
            let now = turn.now;
            let (machine, rules) = turn.core.split();
            let asked_before = machine.asked();
            let transition = machine.go_by(now, rules);
            self.fit(&turn.core);
            turn.apply(transition);
            turn.wake();
            turn.let_on(usize::MAX);
            if asked_before.is_none() {
                turn.ask_again();
            }
            turn.end();
            old
        };
        // Not under the lock: it may hold the last of a user's function.
        drop(old);
    }

    /// Belongs to no registry any more.
    pub(super) fn leave_open_share(&self) {
        self.turn(Nanos::ZERO).core.part = OpenPart::default();
    }

    /// Makes happen what the time alone has decided, open to half-open among it. Gives the time
    /// to look again, if there is one.
    pub(super) fn advance(&self) -> Option<Nanos> {
        let mut turn = self.settled(self.clock.now());
        let now = turn.now;
        let (machine, rules) = turn.core.split();
        let transition = machine.advance(now, rules);
        turn.apply(transition);
        let next = self.next_look(&turn.core, now);
        turn.end();
        next
    }

    fn next_look(&self, core: &super::shared::Core, now: Nanos) -> Option<Nanos> {
        let closed = core.machine.state() == CircuitState::Closed;
        match core.overdue_at().filter(|_| closed) {
            // A call that begins from now on cannot be overdue before.
            Some(threshold) if core.overdue.is_empty() => {
                Some(now.plus(threshold)).filter(|&next| next < Nanos::MAX)
            }
            Some(threshold) => core.overdue.deadline(threshold),
            None => core.machine.next_change(),
        }
    }
}
