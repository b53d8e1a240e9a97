use std::fmt;
use std::sync::Arc;

use super::breaker::CircuitBreaker;
use super::event::{CircuitEvent, Listener};
use super::policy::CircuitPolicy;
use super::registry::OpenShare;
use super::shared::Shared;
use crate::Name;
use crate::clock::Clock;

/// Builds a [`CircuitBreaker`].
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct CircuitBreakerBuilder {
    name: Name,
    policy: CircuitPolicy,
    clock: Option<Clock>,
    counters: bool,
    listeners: Vec<Listener>,
    share: Option<Arc<OpenShare>>,
}

impl CircuitBreakerBuilder {
    pub(super) fn new(name: Name, policy: CircuitPolicy) -> Self {
        Self {
            name,
            policy,
            clock: None,
            counters: false,
            listeners: Vec::new(),
            share: None,
        }
    }

    /// Reads the time from `clock`. Default: [`Clock::tokio`].
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// Keeps [totals](super::Totals) and the number of calls in flight. Default: off, unless
    /// there is a listener or the policy counts overdue calls. On, each call writes two counters,
    /// kept apart for each core, and a refusal one.
    pub fn counters(mut self) -> Self {
        self.counters = true;
        self
    }

    /// Tells `listener` of each [event](CircuitEvent). Any number; each event goes to all of them
    /// in the order they were added, before the next event goes to any.
    ///
    /// Events of one breaker are told in their order, by one thread at a time: one of those whose
    /// calls caused them. That thread tells what others have caused meanwhile too, so a listener
    /// should be quick: count, or send on. Slower than the calls that come, it keeps that one call
    /// for as long as they do, and events of calls are [dropped](super::Snapshot::events_dropped)
    /// once 4,096 wait. It may call back into the breaker. Its panic is caught and
    /// [counted](super::Snapshot::listener_panics).
    pub fn on_event<F>(mut self, listener: F) -> Self
    where
        F: Fn(&CircuitEvent) + Send + Sync + 'static,
    {
        self.listeners.push(Arc::new(listener));
        self
    }

    /// A builder of the same breaker, which must be as if new and have no other handle: `None`
    /// where something would be lost.
    pub(super) fn again(breaker: &CircuitBreaker) -> Option<Self> {
        if breaker.handles() > 1 || !breaker.is_fresh() {
            return None;
        }
        let shared = breaker.shared();
        Some(Self {
            name: shared.name.clone(),
            policy: breaker.policy(),
            clock: Some(shared.clock.clone()),
            counters: shared.counters.is_some(),
            listeners: shared.events.listeners().to_vec(),
            share: None,
        })
    }

    /// Opens only while `share` has room for one more.
    pub(super) fn share(mut self, share: Option<Arc<OpenShare>>) -> Self {
        self.share = share;
        self
    }

    /// Makes the breaker, closed.
    pub fn build(self) -> CircuitBreaker {
        let implied = self.policy.count_overdue || !self.listeners.is_empty();
        CircuitBreaker::from_shared(Arc::new(Shared::new(
            self.name,
            self.policy,
            self.clock.unwrap_or_default(),
            self.counters || implied,
            self.listeners,
            self.share,
        )))
    }
}

impl fmt::Debug for CircuitBreakerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreakerBuilder")
            .field("name", &self.name)
            .field("policy", &self.policy)
            .field("clock", &self.clock)
            .field("counters", &self.counters)
            .field("listeners", &self.listeners.len())
            .finish()
    }
}
