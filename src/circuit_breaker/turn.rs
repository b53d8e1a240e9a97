use std::any::Any;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::event::{CircuitEvent, CircuitEventKind};
use super::policy::{OpenTime, OpenTimeFn};
use super::shared::{Core, FALLBACK_OPEN, Shared};
use super::state::{Asked, CircuitState, Transition, TransitionReason};
use crate::clock::Nanos;
use crate::sync::{MutexGuard, Ordering};

/// One change of a breaker: everything under its lock, then, after, what must not be.
pub(super) struct Turn<'a> {
    pub(super) shared: &'a Shared,
    pub(super) core: MutexGuard<'a, Core>,
    pub(super) now: Nanos,
    /// Whether those who wait must look again.
    wake: bool,
    /// How many instances in back-pressure mode may go on, or must see to their alarm.
    places: usize,
    asked: Option<Asked>,
    /// A panic of the user's function about what went before this turn, which goes on at its end.
    panic: Option<Payload>,
}

/// Deliberately not dropped unless it goes on: what it holds may panic as it goes.
type Payload = ManuallyDrop<Box<dyn Any + Send>>;

impl<'a> Turn<'a> {
    pub(super) fn new(shared: &'a Shared, core: MutexGuard<'a, Core>, now: Nanos) -> Self {
        Self {
            shared,
            core,
            now,
            wake: false,
            places: 0,
            asked: None,
            panic: None,
        }
    }

    /// Makes happen what the time alone has decided.
    fn settle(&mut self) {
        let now = self.now;
        let (machine, rules) = self.core.split();
        let transition = machine.settle(now, rules);
        self.apply(transition);
        self.count_overdue();
    }

    /// The user's function must be asked for the open time, where a change of policy has made
    /// that come up.
    pub(super) fn ask_again(&mut self) {
        self.asked = self.core.machine.asked();
    }

    /// Those who wait must look again, though the state is the same: a slot came free, or there
    /// is another time to wait for.
    pub(super) fn wake(&mut self) {
        self.wake = true;
    }

    /// `places` more instances in back-pressure mode may go on.
    pub(super) fn let_on(&mut self, places: usize) {
        self.places = self.places.saturating_add(places);
    }

    /// Follows a change of the state machine: windows, gate and listeners.
    pub(super) fn apply(&mut self, transition: Option<Transition>) {
        let Some(transition) = transition else {
            return;
        };
        self.wake = true;
        self.let_on(places_after(transition));
        let shared = self.shared;
        if transition.reason != TransitionReason::Disabled {
            self.start_epoch(transition);
        }
        shared.set_gate(&self.core);
        let asked = match transition.to {
            // Disabled while open: whoever opened it asks.
            CircuitState::Open if transition.reason != TransitionReason::Disabled => {
                self.core.machine.asked()
            }
            _ => None,
        };
        self.asked = asked;
        if shared.events.are_heard() {
            let snapshot = shared.snapshot_of(&self.core, &self.core.machine, self.now);
            let event = self.event(CircuitEventKind::Transition {
                transition,
                snapshot: Box::new(snapshot),
            });
            match asked {
                Some(asked) => shared.events.hold(asked, event),
                None => shared.events.push(event),
            }
        }
    }

    /// Empties what counted for the epoch that is over, before the gate lets anyone see the new
    /// one.
    fn start_epoch(&mut self, transition: Transition) {
        let shared = self.shared;
        let tripped = transition.reason.is_condition();
        self.core.tripped = match tripped {
            true => shared.windows.counts(self.now),
            false => Default::default(),
        };
        if transition.to == CircuitState::Closed {
            self.core.part.close();
        }
        // `apply` sets the gate after this.
        shared.run.store(0, Ordering::Relaxed);
        shared.windows.restart(self.core.machine.counting());
        self.core.overdue.clear();
    }

    pub(super) fn event(&self, kind: CircuitEventKind) -> CircuitEvent {
        CircuitEvent {
            name: self.shared.name.clone(),
            kind,
        }
    }

    /// Unlocks, then does what runs other people's code: asks for the open time, wakes, tells.
    pub(super) fn end(self) {
        let Self {
            shared,
            core,
            now,
            wake,
            places,
            asked,
            panic,
        } = self;
        let function = match (&asked, &core.policy.open_time) {
            (Some(_), Some(OpenTime::Function(function))) => Some(function.clone()),
            _ => None,
        };
        drop(core);
        shared.queue.notify(places);
        if let (Some(asked), Some(function)) = (asked, function) {
            shared.ask(asked, &function, now);
        } else {
            shared.after(wake);
        }
        match panic {
            // A second one would end the process.
            Some(panic) if !std::thread::panicking() => {
                resume_unwind(ManuallyDrop::into_inner(panic));
            }
            _ => {}
        }
    }
}

impl Shared {
    /// Takes the lock for what happens at `now`, with all that the time had decided before done.
    /// A question for the user's function that came up by it is answered first: a turn asks one.
    /// Its panic leaves what was to happen undone, which so must hold nothing yet.
    pub(super) fn settled(&self, now: Nanos) -> Turn<'_> {
        loop {
            let mut turn = self.turn(now);
            turn.settle();
            if turn.asked.is_none() {
                return turn;
            }
            turn.end();
        }
    }

    /// The same for what must happen whatever the user's function does about what went before:
    /// a call that ended would be in flight for ever, a command unheard. Its panic goes on at the
    /// end of the turn.
    pub(super) fn settled_in_any_case(&self, now: Nanos) -> Turn<'_> {
        let mut panic = None;
        loop {
            let mut turn = self.turn(now);
            turn.settle();
            if turn.asked.is_none() {
                turn.panic = panic;
                return turn;
            }
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| turn.end())) {
                panic = Some(ManuallyDrop::new(payload));
            }
        }
    }

    /// Wakes and tells, under no lock.
    pub(super) fn after(&self, wake: bool) {
        if wake {
            self.waiters.wake();
        }
        self.events.deliver();
    }

    /// Asks the user's function how long the circuit stays open, and goes by the answer. Its
    /// panic goes on to the caller, with an answer given in its stead; but not out of a drop that
    /// another panic is the reason of, which would end the process.
    fn ask(&self, asked: Asked, function: &OpenTimeFn, now: Nanos) {
        let mut answer = Answer {
            shared: self,
            asked,
            now,
            time: FALLBACK_OPEN,
        };
        let ask = || function.call(asked.trips, asked.reason);
        if std::thread::panicking() {
            match catch_unwind(AssertUnwindSafe(ask)) {
                Ok(time) => answer.time = time,
                Err(payload) => {
                    self.events.count_panic();
                    // Not dropped, as in `Events::deliver`: here a second panic would abort.
                    std::mem::forget(payload);
                }
            }
        } else {
            answer.time = ask();
        }
    }
}

/// How many of the instances that wait until they may answer ready are to look again. One of them
/// when the circuit opens: it sets the alarm.
fn places_after(transition: Transition) -> usize {
    match transition.to {
        _ if transition.reason == TransitionReason::Disabled => usize::MAX,
        CircuitState::Closed => usize::MAX,
        CircuitState::Open => 1,
        // Whoever made this transition has the slot it was made for; the others have the alarm.
        CircuitState::HalfOpen => 0,
    }
}

/// Gives the answer when dropped, so that a panic leaves no question open.
struct Answer<'a> {
    shared: &'a Shared,
    asked: Asked,
    now: Nanos,
    time: Duration,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        let retry_after = {
            let mut turn = self.shared.turn(self.now);
            let taken = turn.core.machine.answer(self.asked, self.time);
            self.shared.set_gate(&turn.core);
            match taken {
                true => turn.core.machine.retry_after(self.now),
                false => Some(self.time),
            }
        };
        self.shared.events.fill(self.asked, retry_after);
        // There is a time to wait for now: who waits sets the alarm.
        self.shared.queue.notify(1);
        self.shared.after(true);
    }
}
