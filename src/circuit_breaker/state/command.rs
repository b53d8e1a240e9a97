use std::time::Duration;

use super::machine::{Machine, Phase};
use super::opening::Open;
use super::{CircuitState, Command, Transition, TransitionReason};
use crate::clock::Nanos;

/// The commands in force; any number at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commands {
    force_open: bool,
    force_closed: bool,
    disabled: bool,
}

impl Commands {
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn force_open(self) -> bool {
        self.force_open
    }

    /// Whether forced closed has effect: forced open wins.
    pub(crate) fn force_closed(self) -> bool {
        self.force_closed && !self.force_open
    }

    /// Whether refusing is off, and nothing stronger in force.
    pub(crate) fn shadow(self) -> bool {
        self.disabled && !self.force_open && !self.force_closed
    }

    /// The one that has effect.
    pub(crate) fn strongest(self) -> Option<Command> {
        if self.force_open {
            Some(Command::ForceOpen)
        } else if self.force_closed {
            Some(Command::ForceClose)
        } else {
            self.disabled.then_some(Command::Disable)
        }
    }
}

impl Machine {
    /// Any to open, until released. Calls in flight are of an earlier epoch from here on.
    pub(crate) fn force_open(&mut self, now: Nanos) -> Option<Transition> {
        if std::mem::replace(&mut self.commands.force_open, true) {
            return None;
        }
        let open = Open {
            since: now,
            until: Nanos::MAX,
            asked: None,
        };
        self.forget();
        Some(self.enter(Phase::Open(open), TransitionReason::ForcedOpen))
    }

    /// Any to closed, until released, unless forced open.
    pub(crate) fn force_close(&mut self, now: Nanos) -> Option<Transition> {
        if std::mem::replace(&mut self.commands.force_closed, true) || self.commands.force_open {
            return None;
        }
        self.forget();
        Some(self.close(now, None, TransitionReason::ForcedClosed))
    }

    /// Stays in its state, of the same epoch, and refuses no more.
    pub(crate) fn disable(&mut self) -> Option<Transition> {
        if std::mem::replace(&mut self.commands.disabled, true) || !self.commands.shadow() {
            return None;
        }
        let state = self.state();
        Some(Transition {
            from: state,
            to: state,
            reason: TransitionReason::Disabled,
        })
    }

    /// Any to closed, with all commands ended and nothing remembered; nothing where none is in
    /// force.
    pub(crate) fn release(&mut self, now: Nanos) -> Option<Transition> {
        if self.commands.is_empty() {
            return None;
        }
        self.commands = Commands::default();
        self.forget();
        Some(self.close(now, None, TransitionReason::Released))
    }

    /// Any to closed, with nothing remembered; commands stay, and so does the state that forced
    /// open keeps.
    pub(crate) fn reset(&mut self, now: Nanos) -> Option<Transition> {
        self.forget();
        if self.commands.force_open {
            return None;
        }
        Some(self.close(now, None, TransitionReason::Reset))
    }

    /// Forgets growth and arrivals.
    fn forget(&mut self) {
        self.attempts = 0;
        self.grown = None;
        self.last_open = Duration::ZERO;
        self.arrivals = 0;
    }

    /// The inner service failed to become ready. Half-open, or open and due, to open, as a probe
    /// that failed would, which as one admitted begins the count of arrivals anew if it was due;
    /// `None` elsewhere.
    pub(crate) fn not_ready(&mut self, now: Nanos, rules: super::Rules<'_>) -> Option<Transition> {
        let due = !self.would_refuse(now, rules);
        let hit = match self.state() {
            CircuitState::Closed => false,
            CircuitState::HalfOpen => true,
            CircuitState::Open => due,
        };
        if due {
            self.arrivals = 0;
        }
        hit.then(|| self.open(now, TransitionReason::NotReady, Duration::ZERO, rules))
    }
}
