//! A breaker and its model, led through the same steps.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proptest::prelude::*;
use tower_sluice::circuit_breaker::{CircuitBreaker, CircuitEventKind, CircuitOpen, Outcome};
use tower_sluice::clock::{Clock, ManualClock, Nanos};

use crate::model::{Model, Refusal, Told};
use crate::rules::{MS, Rules, policy_of, rules};

/// What may happen besides calls.
#[derive(Clone, Debug)]
pub(crate) enum Around {
    Forward(u64),
    Backward(u64),
    ForceOpen,
    ForceClose,
    Disable,
    Release,
    Reset,
    SetPolicy(Box<Rules>),
    /// A driver looks once.
    Drive,
}

pub(crate) fn around() -> impl Strategy<Value = Around> {
    const TEN_YEARS: u64 = 315_360_000_000 * MS;
    prop_oneof![
        14 => (0..40 * MS).prop_map(Around::Forward),
        3 => (0..300 * MS).prop_map(Around::Forward),
        1 => prop_oneof![5 => Just(TEN_YEARS), 1 => Just(u64::MAX)].prop_map(Around::Forward),
        4 => (0..60 * MS).prop_map(Around::Backward),
        1 => Just(Around::ForceOpen),
        1 => Just(Around::ForceClose),
        1 => Just(Around::Disable),
        4 => Just(Around::Release),
        1 => Just(Around::Reset),
        4 => rules().prop_map(|rules| Around::SetPolicy(Box::new(rules))),
        2 => Just(Around::Drive),
    ]
}

pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => Just(Outcome::Success),
        4 => Just(Outcome::Failure),
        1 => Just(Outcome::Ignored),
    ]
}

pub(crate) struct Pair {
    pub(crate) breaker: CircuitBreaker,
    pub(crate) model: Model,
    time: ManualClock,
    told: Arc<Mutex<Vec<Told>>>,
    heard: bool,
}

impl Pair {
    /// With a listener, or without: then refusals and passes take the ways that need no lock.
    pub(crate) fn new(rules: Rules, heard: bool) -> Self {
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
            model: Model::new(rules, heard),
            time,
            told,
            heard,
        }
    }

    /// Does the same to both. `None`: the user's function panicked, in both.
    pub(crate) fn both<R, M>(
        &mut self,
        real: impl FnOnce(&CircuitBreaker) -> R,
        model: impl FnOnce(&mut Model) -> M,
    ) -> Option<(R, M)> {
        let real = catch_unwind(AssertUnwindSafe(|| real(&self.breaker)));
        let model = model(&mut self.model);
        let panicked = self.model.take_panic();
        match real {
            Ok(real) => {
                assert!(!panicked, "the panic of the user's function is lost");
                Some((real, model))
            }
            Err(payload) => {
                let users = payload.downcast_ref() == Some(&"the user's function");
                assert!(panicked && users, "panics with {payload:?}");
                None
            }
        }
    }

    pub(crate) fn step(&mut self, step: &Around) {
        match step {
            Around::Forward(by) => self.set_time(self.model.now.saturating_add(*by)),
            Around::Backward(by) => self.set_time(self.model.now.saturating_sub(*by)),
            Around::ForceOpen => self.command(CircuitBreaker::force_open, Model::force_open),
            Around::ForceClose => self.command(CircuitBreaker::force_close, Model::force_close),
            Around::Disable => self.command(CircuitBreaker::disable, Model::disable),
            Around::Release => self.command(CircuitBreaker::release, Model::release),
            Around::Reset => self.command(CircuitBreaker::reset, Model::reset),
            Around::SetPolicy(rules) => {
                let policy = policy_of(rules);
                let rules = Rules::clone(rules);
                self.both(|real| real.set_policy(policy), |m| m.set_rules(rules));
            }
            Around::Drive => {
                let look = |real: &CircuitBreaker| {
                    let _pending = tokio_test::task::spawn(real.drive()).poll();
                };
                self.both(look, Model::advance);
            }
        }
    }

    fn set_time(&mut self, now: u64) {
        self.model.now = now;
        self.time.set(Nanos::new(now));
    }

    fn command(&mut self, real: fn(&CircuitBreaker), model: fn(&mut Model)) {
        self.both(real, model);
    }

    pub(crate) fn compare(&mut self, in_flight: usize) {
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
        assert_eq!(real.listener_panics, seen.caught, "panics caught");
        if self.heard {
            let told = std::mem::take(&mut *self.told.lock());
            assert_eq!(told, self.model.told, "the events");
            let totals = real.totals.expect("a listener implies counters");
            assert_eq!(totals.in_flight as usize, in_flight, "in flight");
        }
        self.model.told.clear();
    }
}

pub(crate) fn assert_same_refusal(real: &CircuitOpen, (reason, left): Refusal) {
    assert_eq!(real.reason(), reason, "the reason of a refusal");
    let left = left.map(Duration::from_nanos);
    assert_eq!(real.retry_after(), left, "the time left");
}

fn told_of(kind: &CircuitEventKind) -> Option<Told> {
    let nanos = |time: Duration| time.as_nanos() as u64;
    Some(match kind {
        CircuitEventKind::Transition {
            transition,
            snapshot,
        } => {
            assert_eq!(snapshot.state, transition.to, "a snapshot after the fact");
            Told::Transition {
                from: transition.from,
                to: transition.to,
                reason: transition.reason,
                epoch: snapshot.epoch,
                trips: snapshot.trips,
                counts: (snapshot.calls, snapshot.failures, snapshot.slow),
                left: snapshot.retry_after.map(nanos),
            }
        }
        CircuitEventKind::Refused {
            reason,
            retry_after,
        } => Told::Refused(*reason, retry_after.map(nanos)),
        CircuitEventKind::WouldHaveRefused { reason } => Told::WouldHaveRefused(*reason),
        CircuitEventKind::Completed {
            end,
            slow,
            elapsed,
            waited,
            ..
        } => Told::Completed(*end, *slow, nanos(*elapsed), nanos(*waited)),
        CircuitEventKind::Discarded {
            end,
            slow,
            elapsed,
            waited,
            ..
        } => Told::Discarded(*end, *slow, nanos(*elapsed), nanos(*waited)),
        _ => return None,
    })
}
