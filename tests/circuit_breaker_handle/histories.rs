use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proptest::prelude::*;
use tower_sluice::circuit_breaker::{
    CallEnd, CircuitBreaker, CircuitEventKind, Outcome, OwnedPermit, Recorded,
};
use tower_sluice::clock::{Clock, ManualClock, Nanos};

use crate::model::{Call, Model, Told};
use crate::rules::{MS, Rules, policy_of, rules};

#[derive(Clone, Debug)]
enum Step {
    Arrive,
    End(usize, Outcome),
    Drop(usize),
    Panic(usize),
    Forward(u64),
    Backward(u64),
    ForceOpen,
    ForceClose,
    Disable,
    Release,
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Success),
        4 => Just(Outcome::Failure),
        1 => Just(Outcome::Ignored),
    ];
    let step = prop_oneof![
        40 => Just(Step::Arrive),
        30 => (0..4_usize, outcome).prop_map(|(at, outcome)| Step::End(at, outcome)),
        5 => (0..4_usize).prop_map(Step::Drop),
        3 => (0..4_usize).prop_map(Step::Panic),
        14 => (0..40 * MS).prop_map(Step::Forward),
        3 => (0..300 * MS).prop_map(Step::Forward),
        4 => (0..60 * MS).prop_map(Step::Backward),
        1 => Just(Step::ForceOpen),
        1 => Just(Step::ForceClose),
        1 => Just(Step::Disable),
        4 => Just(Step::Release),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 1..160)
}

/// The breaker and its model, side by side.
struct Pair {
    breaker: CircuitBreaker,
    time: ManualClock,
    told: Arc<Mutex<Vec<Told>>>,
    calls: Vec<(OwnedPermit, Call)>,
    model: Model,
}

impl Pair {
    /// With a listener, or without: then refusals and passes take the ways that need no lock.
    fn new(rules: Rules, heard: bool) -> Self {
        let told = Arc::new(Mutex::new(Vec::new()));
        let time = Clock::manual();
        let mut builder = CircuitBreaker::builder("b", policy_of(&rules)).clock(&time);
        if heard {
            let told = told.clone();
            builder = builder.on_event(move |event| {
                told.lock().extend(told_of(&event.kind));
            });
        }
        Self {
            breaker: builder.build(),
            time,
            told,
            calls: Vec::new(),
            model: Model::new(rules),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Arrive => self.arrive(),
            Step::End(at, outcome) => {
                self.end(*at, CallEnd::from(*outcome), |permit| {
                    Some(permit.record(*outcome))
                });
            }
            Step::Drop(at) => self.end(*at, CallEnd::Cancelled, |permit| {
                drop(permit);
                None
            }),
            Step::Panic(at) => self.end(*at, CallEnd::Panicked, |permit| {
                let panicked = catch_unwind(AssertUnwindSafe(|| {
                    let _held = permit;
                    std::panic::resume_unwind(Box::new("the call"));
                }));
                panicked.err().map(|_| Recorded::Counted).filter(|_| false)
            }),
            Step::Forward(by) => self.set_time(self.model.now + by),
            Step::Backward(by) => self.set_time(self.model.now.saturating_sub(*by)),
            Step::ForceOpen => self.command(CircuitBreaker::force_open, Model::force_open),
            Step::ForceClose => self.command(CircuitBreaker::force_close, Model::force_close),
            Step::Disable => self.command(CircuitBreaker::disable, Model::disable),
            Step::Release => self.command(CircuitBreaker::release, Model::release),
            Step::Reset => self.command(CircuitBreaker::reset, Model::reset),
        }
    }

    fn arrive(&mut self) {
        let real = self.breaker.acquire_owned();
        match (real, self.model.arrive()) {
            (Ok(permit), Ok(call)) => self.calls.push((permit, call)),
            (Err(open), Err((reason, left))) => {
                assert_eq!(open.reason(), reason, "the reason of a refusal");
                let left = left.map(Duration::from_nanos);
                assert_eq!(open.retry_after(), left, "the time left");
            }
            (real, model) => panic!("decided otherwise: {real:?}, the model {model:?}"),
        }
    }

    fn end(&mut self, at: usize, end: CallEnd, real: impl FnOnce(OwnedPermit) -> Option<Recorded>) {
        if self.calls.is_empty() {
            return;
        }
        let (permit, call) = self.calls.swap_remove(at % self.calls.len());
        let recorded = real(permit);
        let expected = self.model.end(call, end);
        assert_eq!(recorded.unwrap_or(expected), expected, "what became of it");
    }

    fn set_time(&mut self, now: u64) {
        self.model.now = now;
        self.time.set(Nanos::new(now));
    }

    fn command(&mut self, real: fn(&CircuitBreaker), model: fn(&mut Model)) {
        real(&self.breaker);
        model(&mut self.model);
    }

    fn compare(&self, heard: bool) {
        let seen = self.model.seen();
        let real = self.breaker.snapshot();
        assert_eq!(real.state, seen.state, "the state");
        assert_eq!(real.reason, seen.reason, "why");
        assert_eq!(real.command, seen.command(), "the command in force");
        let counts = (real.calls, real.failures, real.slow);
        assert_eq!(counts, seen.counts(), "calls, failures, slow");
        assert_eq!(real.consecutive, seen.run, "failing in a row");
        let left = seen.retry_after().map(Duration::from_nanos);
        assert_eq!(real.retry_after, left, "the time left");
        assert_eq!((real.epoch, real.trips), (seen.epoch, seen.trips));
        assert_eq!(real.probes_in_flight as usize, seen.out.len(), "probes out");
        let good = real.probes_succeeded as usize;
        assert_eq!(good, seen.successes, "probes that succeeded");
        if heard {
            assert_eq!(*self.told.lock(), self.model.told, "the events");
            let totals = real.totals.expect("a listener implies counters");
            assert_eq!(totals.in_flight as usize, self.calls.len(), "in flight");
        }
    }
}

fn told_of(kind: &CircuitEventKind) -> Option<Told> {
    let nanos = |time: Duration| time.as_nanos() as u64;
    Some(match kind {
        CircuitEventKind::Transition {
            transition,
            snapshot,
        } => {
            assert_eq!(snapshot.state, transition.to, "a snapshot after the fact");
            Told::Transition(transition.from, transition.to, transition.reason)
        }
        CircuitEventKind::Refused {
            reason,
            retry_after,
        } => Told::Refused(*reason, retry_after.map(nanos)),
        CircuitEventKind::WouldHaveRefused { reason } => Told::WouldHaveRefused(*reason),
        CircuitEventKind::Completed {
            end, slow, elapsed, ..
        } => Told::Completed(*end, *slow, nanos(*elapsed)),
        CircuitEventKind::Discarded {
            end, slow, elapsed, ..
        } => Told::Discarded(*end, *slow, nanos(*elapsed)),
        _ => return None,
    })
}

proptest! {
    #[test]
    fn any_history_is_decided_counted_and_told_as_by_the_model(
        rules in rules(),
        steps in steps(),
        heard in any::<bool>(),
    ) {
        let mut pair = Pair::new(rules, heard);
        for step in &steps {
            pair.step(step);
            pair.compare(heard);
        }
    }
}
