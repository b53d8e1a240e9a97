use tower_sluice::circuit_breaker::{Command, TransitionReason};

use super::{Closed, HalfOpen, Model, Open};
use crate::rules::Rules;

impl Model {
    fn forget(&mut self) {
        (self.attempts, self.grown) = (0, None);
        (self.last_open, self.arrivals) = (0, 0);
    }

    pub(crate) fn force_open(&mut self) {
        self.settle();
        if !std::mem::replace(&mut self.commands[0], true) {
            self.forget();
            self.enter(self.now, Open, None, TransitionReason::ForcedOpen);
        }
    }

    pub(crate) fn force_close(&mut self) {
        self.settle();
        if !std::mem::replace(&mut self.commands[1], true) && !self.commands[0] {
            self.forget();
            self.close(TransitionReason::ForcedClosed);
        }
    }

    pub(crate) fn disable(&mut self) {
        self.settle();
        if !std::mem::replace(&mut self.commands[2], true) && self.is_shadow() {
            self.tell_transition(self.state, TransitionReason::Disabled);
        }
    }

    pub(crate) fn release(&mut self) {
        self.settle();
        if std::mem::take(&mut self.commands) != [false; 3] {
            self.forget();
            self.close(TransitionReason::Released);
        }
    }

    pub(crate) fn reset(&mut self) {
        self.settle();
        self.forget();
        if !self.commands[0] {
            self.close(TransitionReason::Reset);
        }
    }

    pub(crate) fn set_rules(&mut self, rules: Rules) {
        self.settle();
        let width = |rules: &Rules| rules.window.map(|window| window.div_ceil(10));
        let window = |rules: &Rules| (width(rules), rules.window_calls);
        if window(&self.rules) != window(&rules) {
            self.outcomes.clear();
        }
        self.rules = rules;
        let forced = self.command() == Some(Command::ForceOpen);
        match self.state {
            Open if self.until.is_none() && !forced => self.end_open_time(),
            HalfOpen => {
                self.by_time |= self.rules.recover_every.is_none();
                if self.successes >= self.rules.probes {
                    self.close(TransitionReason::Recovered);
                }
            }
            Open | Closed => {}
        }
    }

    /// The inner service failed to become ready.
    pub(super) fn readiness_failed(&mut self) {
        self.settle();
        let due =
            self.command() != Some(Command::ForceOpen) && self.not_due(self.arrivals + 1).is_none();
        match self.state {
            Closed if self.command() == Some(Command::ForceClose) => {}
            Closed => self.count(true, false, 0),
            Open | HalfOpen => {
                if due {
                    self.arrivals = 0;
                }
                if due || self.state == HalfOpen {
                    self.open(self.now, TransitionReason::NotReady, 0, true);
                }
            }
        }
    }

    /// Open to half-open where the time is up, with no call to be the probe.
    pub(crate) fn advance(&mut self) {
        self.settle();
        if self.panicked {
            return;
        }
        let over = self.until.is_some_and(|until| until <= self.now);
        if self.state == Open && over {
            self.enter(
                self.now,
                HalfOpen,
                self.until,
                TransitionReason::OpenTimeOver,
            );
            self.by_time = true;
        }
    }
}
