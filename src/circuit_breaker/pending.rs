use std::task::{Context, Poll, ready};
use std::time::Duration;

use tower_service::Service;

use super::admit::{Admit, sealed};
use super::ready_queue::Queued;
use super::{Admitted, CircuitBreaker, CircuitOpen, Reservation};
use crate::ConfigError;
use crate::clock::Nanos;

/// One breaker for every call, whose `poll_ready` waits while the circuit is open: see
/// [`CircuitBreakerLayer::pending_while_open`](super::CircuitBreakerLayer::pending_while_open).
#[derive(Debug)]
pub struct PendingWhileOpen {
    breaker: CircuitBreaker,
    /// As in [`Single`](super::Single).
    polled: bool,
    /// The probe's place that `poll_ready` took, spent by `call`. It belongs to this instance
    /// and goes back when that is dropped.
    reserved: Option<Reservation>,
    queued: Queued,
    /// When it began to wait for the circuit, while it does.
    waiting_since: Option<Nanos>,
    /// How long it waited for the readiness that `call` spends.
    waited: Duration,
}

impl PendingWhileOpen {
    pub(super) fn new(breaker: CircuitBreaker) -> Result<Self, ConfigError> {
        let policy = breaker.policy();
        if policy.has_timed_recovery() {
            return Ok(Self::fresh(breaker));
        }
        // Calls that wait do not arrive, so counting arrivals would never end their wait.
        let allowed = "left out where the policy does not recover after a finite time";
        Err(ConfigError::new("pending_while_open", policy, allowed))
    }

    pub(super) fn breaker(&self) -> &CircuitBreaker {
        &self.breaker
    }

    fn fresh(breaker: CircuitBreaker) -> Self {
        Self {
            breaker,
            polled: false,
            reserved: None,
            queued: Queued::default(),
            waiting_since: None,
            waited: Duration::ZERO,
        }
    }

    /// Waits until a call could be admitted.
    fn poll_admissible(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.breaker.arc();
        while shared.must_wait() {
            self.waiting_since.get_or_insert_with(|| shared.clock.now());
            self.queued.wait(&shared.queue, cx.waker());
            // Looked at once more: the state may have been left since it was looked at.
            if shared.must_wait() && shared.alarm.poll(shared).is_pending() {
                return Poll::Pending;
            }
        }
        if let Some(since) = self.waiting_since.take() {
            self.waited += shared.clock.now().since(since);
        }
        Poll::Ready(())
    }

    /// The slot held, unless the round of probes that it is of is over.
    fn take_current(&mut self) -> Option<Reservation> {
        self.reserved.take().filter(Reservation::is_current)
    }

    /// Gives back what is held, and lets the next in the queue have it.
    fn give_back(&mut self) {
        self.reserved = None;
        self.queued.pass_on(&self.breaker.shared().queue);
    }
}

impl<Request> Admit<Request> for PendingWhileOpen {
    fn poll_ready<S>(&mut self, inner: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>>
    where
        S: Service<Request>,
    {
        self.reserved = self.take_current();
        loop {
            if self.reserved.is_none() {
                ready!(self.poll_admissible(cx));
            }
            self.polled = false;
            match inner.poll_ready(cx) {
                Poll::Ready(Ok(())) => self.polled = true,
                Poll::Ready(Err(error)) => {
                    self.give_back();
                    self.breaker.readiness_failed();
                    return Poll::Ready(Err(error));
                }
                // Another instance may be ready sooner: this one does not sit on the place.
                Poll::Pending => {
                    self.give_back();
                    return Poll::Pending;
                }
            }
            if self.reserved.is_some() {
                return Poll::Ready(Ok(()));
            }
            if let Ok(reserved) = self.breaker.reserve() {
                self.reserved = reserved;
                self.queued.leave(&self.breaker.shared().queue);
                if self.reserved.is_some() {
                    self.breaker.arc().watch_for_those_behind();
                }
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn admit(&mut self, _request: &Request) -> Result<Option<Admitted>, CircuitOpen> {
        if !self.polled {
            return Err(self.breaker.refuse_unpolled());
        }
        let mut permit = match self.reserved.take().and_then(Reservation::begin) {
            Some(probe) => probe,
            None => self.breaker.admit()?,
        };
        self.polled = false;
        permit.set_waited(std::mem::take(&mut self.waited));
        Ok(Some(permit))
    }
}

impl Clone for PendingWhileOpen {
    // The copy waits, and takes a place, for itself.
    fn clone(&self) -> Self {
        Self::fresh(self.breaker.clone())
    }
}

impl Drop for PendingWhileOpen {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl sealed::Sealed for PendingWhileOpen {}
