//! What a breaker must do, said plainly: one thread, one list of outcomes counted anew each time.
//!
//! Here is what it remembers and how a reader sees it; `calls` decides and ends calls, `circuit`
//! changes the state, `window` counts, `by_hand` obeys, `instance` is the layer's share.

mod by_hand;
mod calls;
mod circuit;
mod instance;
mod window;

use tower_sluice::circuit_breaker::{
    CallEnd, CircuitOpenReason, CircuitState, Command, TransitionReason,
};

use crate::rules::Rules;
pub(crate) use calls::Call;
pub(crate) use instance::{Instance, Readiness};

/// Calls, failures, slow calls.
pub(crate) type Counts = (u64, u64, u64);
/// A refusal's reason, and the time left.
pub(crate) type Refusal = (CircuitOpenReason, Option<u64>);

/// What listeners must hear.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Transition {
        from: CircuitState,
        to: CircuitState,
        reason: TransitionReason,
        /// As it was right after.
        epoch: u64,
        trips: u64,
        counts: Counts,
        left: Option<u64>,
    },
    Refused(CircuitOpenReason, Option<u64>),
    WouldHaveRefused(CircuitOpenReason),
    /// How, whether slow, elapsed, waited.
    Completed(CallEnd, bool, u64, u64),
    Discarded(CallEnd, bool, u64, u64),
}

/// A probe in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    id: u64,
    deadline: u64,
    /// Held by an instance that answered ready.
    reserved: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) rules: Rules,
    /// Whether anyone listens.
    heard: bool,
    pub(crate) now: u64,
    pub(crate) state: CircuitState,
    pub(crate) reason: Option<TransitionReason>,
    pub(crate) epoch: u64,
    pub(crate) trips: u64,
    pub(crate) told: Vec<Told>,
    pub(crate) run: u32,
    /// Every outcome counted since the window was emptied: its bucket, whether failed, slow.
    outcomes: Vec<(u64, bool, bool)>,
    tripped: Counts,
    /// The latest time that began a bucket.
    newest: u64,
    /// Forced open, forced closed, disabled.
    commands: [bool; 3],
    since: u64,
    until: Option<u64>,
    by_time: bool,
    arrivals: u64,
    pub(crate) successes: usize,
    pub(crate) out: Vec<Probe>,
    attempts: u32,
    grown: Option<u64>,
    last_open: u64,
    /// The length of a gentle return, and the parts of a call that are paid.
    ramp: Option<(u64, u64)>,
    /// Calls in flight that were not found overdue yet: start and number.
    watched: Vec<(u64, u64)>,
    next_id: u64,
    /// Whether a call unwinds just now; then the user's function cannot panic any further.
    pub(crate) unwinding: bool,
    /// Whether the user's function has panicked towards the caller.
    panicked: bool,
    /// Panics that reach nobody.
    pub(crate) caught: u64,
}

use CircuitState::{Closed, HalfOpen, Open};

impl Model {
    pub(crate) fn new(rules: Rules, heard: bool) -> Self {
        Self {
            rules,
            heard,
            now: 0,
            state: Closed,
            reason: None,
            epoch: 0,
            trips: 0,
            told: Vec::new(),
            run: 0,
            outcomes: Vec::new(),
            tripped: (0, 0, 0),
            newest: 0,
            commands: [false; 3],
            since: 0,
            until: None,
            by_time: false,
            arrivals: 0,
            successes: 0,
            out: Vec::new(),
            attempts: 0,
            grown: None,
            last_open: 0,
            ramp: None,
            watched: Vec::new(),
            next_id: 0,
            unwinding: false,
            panicked: false,
            caught: 0,
        }
    }

    /// Whether the user's function has panicked towards the caller since this was asked last.
    pub(crate) fn take_panic(&mut self) -> bool {
        std::mem::take(&mut self.panicked)
    }

    /// As a reader sees it: what the time has decided is seen, though nothing made it happen.
    pub(crate) fn seen(&self) -> Self {
        let mut seen = self.clone();
        // A reader counts no call as overdue and asks no function.
        seen.watched.clear();
        seen.settle_probes(false);
        seen
    }

    pub(crate) fn retry_after(&self) -> Option<u64> {
        let until = self.until.filter(|_| self.state == Open);
        until.map(|until| until.saturating_sub(self.now))
    }

    pub(crate) fn command(&self) -> Option<Command> {
        let [open, closed, off] = self.commands;
        let forced = closed.then_some(Command::ForceClose);
        let forced = if open {
            Some(Command::ForceOpen)
        } else {
            forced
        };
        forced.or(off.then_some(Command::Disable))
    }

    fn is_shadow(&self) -> bool {
        self.command() == Some(Command::Disable)
    }
}
