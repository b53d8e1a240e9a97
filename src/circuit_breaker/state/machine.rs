use std::time::Duration;

use super::half_open::HalfOpen;
use super::opening::Open;
use super::ramp::Ramp;
use super::{CircuitState, Commands, Transition, TransitionReason};
use crate::circuit_breaker::policy::CircuitPolicy;
use crate::clock::Nanos;

/// The state of one circuit and what it must remember to leave it.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(super) phase: Phase,
    pub(super) commands: Commands,
    pub(super) epoch: u64,
    pub(super) reason: Option<TransitionReason>,
    /// Times opened by itself, ever.
    pub(super) trips: u64,
    /// Times opened since the last recovery that held.
    pub(super) attempts: u32,
    /// The last open time, before jitter: what growth starts from.
    pub(super) grown: Option<Duration>,
    /// The last open time as it was: what a recovery must outlast to have held.
    pub(super) last_open: Duration,
    /// Calls that arrived since the last trip or probe; counted while not closed.
    pub(super) arrivals: u64,
    /// The next probe's number.
    pub(super) serial: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Phase {
    Closed { since: Nanos, ramp: Option<Ramp> },
    Open(Open),
    HalfOpen(HalfOpen),
}

/// What the machine goes by: the policy, and the seed its jitter is drawn from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) policy: &'a CircuitPolicy,
    pub(crate) seed: u64,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Closed {
                since: Nanos::ZERO,
                ramp: None,
            },
            commands: Commands::default(),
            epoch: 0,
            reason: None,
            trips: 0,
            attempts: 0,
            grown: None,
            last_open: Duration::ZERO,
            arrivals: 0,
            serial: 0,
        }
    }

    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    pub(crate) fn commands(&self) -> Commands {
        self.commands
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn reason(&self) -> Option<TransitionReason> {
        self.reason
    }

    pub(crate) fn trips(&self) -> u64 {
        self.trips
    }

    pub(crate) fn state(&self) -> CircuitState {
        match self.phase {
            Phase::Closed { .. } => CircuitState::Closed,
            Phase::Open(_) => CircuitState::Open,
            Phase::HalfOpen(_) => CircuitState::HalfOpen,
        }
    }

    /// The epoch that windows count for: none unless closed by its own doing.
    pub(crate) fn counting(&self) -> Option<u64> {
        let closed = matches!(self.phase, Phase::Closed { .. }) && !self.commands.force_closed();
        closed.then_some(self.epoch)
    }

    /// Whether nothing is remembered that a new machine would not know: closed with all calls
    /// admitted, no command, growth over.
    pub(crate) fn is_fresh(&self, now: Nanos) -> bool {
        let closed = match &self.phase {
            Phase::Closed { ramp: None, .. } => true,
            Phase::Closed {
                ramp: Some(ramp), ..
            } => ramp.is_over(now),
            _ => false,
        };
        closed && self.commands.is_empty() && (self.attempts == 0 || self.has_held(now))
    }

    /// Whether the circuit has now been closed for as long as it was last opened for.
    pub(super) fn has_held(&self, now: Nanos) -> bool {
        match self.phase {
            Phase::Closed { since, .. } => now.since(since) >= self.last_open,
            _ => false,
        }
    }

    /// Enters `phase`, in a new epoch.
    pub(super) fn enter(&mut self, phase: Phase, reason: TransitionReason) -> Transition {
        let from = self.state();
        self.phase = phase;
        self.epoch += 1;
        self.reason = Some(reason);
        Transition {
            from,
            to: self.state(),
            reason,
        }
    }

    /// Half-open to closed, or any to closed by hand.
    pub(super) fn close(
        &mut self,
        now: Nanos,
        ramp_up: Option<Duration>,
        reason: TransitionReason,
    ) -> Transition {
        let ramp = ramp_up.map(|length| Ramp::new(now, length));
        self.enter(Phase::Closed { since: now, ramp }, reason)
    }
}
