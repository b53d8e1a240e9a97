use std::task::Poll;

use tower_sluice::circuit_breaker::Command;

use super::calls::Arrived;
use super::{Call, Closed, Model};

/// One instance of a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instance {
    /// Waits in `poll_ready` while the circuit is open.
    waits: bool,
    /// May be given calls that pass unguarded.
    skips: bool,
    polled: bool,
    /// The probe's place that it holds.
    reserved: Option<Call>,
    waiting_since: Option<u64>,
    waited: u64,
}

/// What one `poll_ready` of the inner service answers.
pub(crate) type Readiness = Poll<Result<(), ()>>;

impl Instance {
    pub(crate) fn new(waits: bool, skips: bool) -> Self {
        Self {
            waits,
            skips,
            ..Self::default()
        }
    }

    /// As a clone begins.
    pub(crate) fn fresh(&self) -> Self {
        Self::new(self.waits, self.skips)
    }
}

impl Model {
    pub(crate) fn poll_ready(&mut self, at: &mut Instance, inner: Readiness) -> Readiness {
        match at.waits {
            true => self.poll_waiting(at, inner),
            false => self.poll_refusing(at, inner),
        }
    }

    fn poll_refusing(&mut self, at: &mut Instance, inner: Readiness) -> Readiness {
        let seen = self.seen();
        let refuses = !seen.is_shadow() && seen.would_refuse(self.arrivals + 1);
        if refuses && !at.skips {
            return Poll::Ready(Ok(()));
        }
        at.polled = inner == Poll::Ready(Ok(()));
        if inner == Poll::Ready(Err(())) {
            self.readiness_failed();
        }
        inner
    }

    fn poll_waiting(&mut self, at: &mut Instance, inner: Readiness) -> Readiness {
        if at.reserved.is_some_and(|call| call.epoch() != self.epoch) {
            self.give_back(at);
            if self.panicked {
                return inner;
            }
        }
        if at.reserved.is_none() {
            if self.seen().must_wait() {
                at.waiting_since.get_or_insert(self.now);
                return Poll::Pending;
            }
            if let Some(since) = at.waiting_since.take() {
                at.waited += self.now.saturating_sub(since);
            }
        }
        at.polled = inner == Poll::Ready(Ok(()));
        if !at.polled {
            self.give_back(at);
            if inner.is_ready() && !self.panicked {
                self.readiness_failed();
            }
        } else if at.reserved.is_none() {
            self.settle();
            if self.panicked {
                return inner;
            }
            // A call found overdue may just have opened it.
            if self.must_wait() {
                at.waiting_since = Some(self.now);
                return Poll::Pending;
            }
            if self.state != Closed && !self.is_shadow() {
                at.reserved = Some(self.send_probe(true));
            }
        }
        inner
    }

    fn must_wait(&self) -> bool {
        !self.is_shadow() && self.would_refuse(self.arrivals)
    }

    fn would_refuse(&self, arrivals: u64) -> bool {
        let forced = self.command() == Some(Command::ForceOpen);
        forced || (self.state != Closed && self.not_due(arrivals).is_some())
    }

    pub(crate) fn give_back(&mut self, at: &mut Instance) {
        if let Some(held) = at.reserved.take() {
            self.settle();
            if self.is_current(held) {
                self.free(held);
            }
        }
    }

    /// A call that passes unguarded; says whether the instance may be given one.
    pub(crate) fn skip(at: &mut Instance) -> bool {
        let ready = at.skips && at.polled;
        at.polled &= !ready;
        ready
    }

    pub(crate) fn call(&mut self, at: &mut Instance) -> Arrived {
        if !at.polled {
            return self.arrive(false);
        }
        let mut begun = None;
        if let Some(held) = at.reserved.take() {
            self.settle();
            if self.panicked {
                return None;
            }
            begun = self.is_current(held).then(|| self.begin(held));
        }
        let arrived = match begun {
            Some(call) => Some(Ok(call)),
            None => self.arrive(true),
        };
        if let Some(Ok(call)) = arrived {
            at.polled = false;
            let waited = std::mem::take(&mut at.waited);
            return Some(Ok(Self::after_waiting(call, waited)));
        }
        arrived
    }
}
