//! What the tests of the handle have in common.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitEvent, CircuitEventKind, CircuitPolicy, CircuitPolicyBuilder,
    CircuitState, Transition,
};
use tower_sluice::clock::{Clock, ManualClock};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Trips at `failures` in a row, opens for exactly a second at first.
pub(crate) fn trips_at(failures: u32) -> CircuitPolicyBuilder {
    CircuitPolicy::builder()
        .consecutive(failures)
        .open_for(SECOND)
        .open_jitter(0.0)
}

pub(crate) fn breaker(policy: CircuitPolicyBuilder) -> (CircuitBreaker, ManualClock) {
    let time = Clock::manual();
    let policy = policy.build().expect("a sound policy");
    let breaker = CircuitBreaker::builder("tested", policy).clock(&time);
    (breaker.build(), time)
}

/// The events of a breaker, in the order they were told.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Vec<CircuitEvent>>>);

impl Told {
    pub(crate) fn listener(&self) -> impl Fn(&CircuitEvent) + Send + Sync + use<> {
        let told = self.0.clone();
        move |event| told.lock().push(event.clone())
    }

    pub(crate) fn events(&self) -> Vec<CircuitEvent> {
        std::mem::take(&mut *self.0.lock())
    }

    pub(crate) fn take(&self) -> Vec<CircuitEventKind> {
        self.events().into_iter().map(|event| event.kind).collect()
    }

    pub(crate) fn transitions(&self) -> Vec<Transition> {
        let kinds = self.take().into_iter();
        kinds
            .filter_map(|kind| match kind {
                CircuitEventKind::Transition { transition, .. } => Some(transition),
                _ => None,
            })
            .collect()
    }
}

pub(crate) fn told_breaker(policy: CircuitPolicyBuilder) -> (CircuitBreaker, ManualClock, Told) {
    let (time, told) = (Clock::manual(), Told::default());
    let policy = policy.build().expect("a sound policy");
    let breaker = CircuitBreaker::builder("tested", policy)
        .clock(&time)
        .on_event(told.listener())
        .build();
    (breaker, time, told)
}

/// Fails calls until the circuit opens.
pub(crate) fn trip(breaker: &CircuitBreaker) {
    for _ in 0..1_000 {
        if breaker.state() == CircuitState::Open {
            return;
        }
        breaker.try_acquire().expect("not open yet").failure();
    }
    panic!("does not trip");
}

/// One call that succeeds.
pub(crate) fn succeed(breaker: &CircuitBreaker) {
    breaker.try_acquire().expect("admitted").success();
}
