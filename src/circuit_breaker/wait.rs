use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::breaker::CircuitBreaker;
use super::permit::Reservation;
use super::state::CircuitState;
use super::waiters::Place;
use crate::clock::{Nanos, Sleep};

/// The future of [`CircuitBreaker::when_closed`].
#[must_use = "futures do nothing unless polled"]
pub struct WhenClosed {
    breaker: CircuitBreaker,
    place: Option<Place>,
}

impl WhenClosed {
    pub(super) fn new(breaker: CircuitBreaker) -> Self {
        Self {
            breaker,
            place: None,
        }
    }
}

impl Future for WhenClosed {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let waiters = &this.breaker.shared().waiters;
        waiters.register(&mut this.place, cx.waker());
        if this.breaker.state() != CircuitState::Closed {
            return Poll::Pending;
        }
        waiters.leave(&mut this.place);
        Poll::Ready(())
    }
}

impl Drop for WhenClosed {
    fn drop(&mut self) {
        self.breaker.shared().waiters.leave(&mut self.place);
    }
}

impl fmt::Debug for WhenClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WhenClosed({})", self.breaker.name())
    }
}

/// A service instance's wait until it may answer ready, in back-pressure mode.
///
/// Woken by every change of state, every slot that comes back, and by the clock when a probe is
/// due: no call from outside is needed.
pub(crate) struct ReadyWait {
    breaker: CircuitBreaker,
    place: Option<Place>,
    sleep: Option<Pin<Box<Sleep>>>,
    until: Nanos,
}

impl ReadyWait {
    pub(crate) fn new(breaker: CircuitBreaker) -> Self {
        Self {
            breaker,
            place: None,
            sleep: None,
            until: Nanos::ZERO,
        }
    }

    /// Ready with a probe's slot, or with none where none is needed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Reservation>> {
        loop {
            let waiters = &self.breaker.shared().waiters;
            waiters.register(&mut self.place, cx.waker());
            if let Ok(reservation) = self.breaker.reserve() {
                self.rest();
                return Poll::Ready(reservation);
            }
            let now = self.breaker.shared().clock.now();
            let next = self
                .breaker
                .shared()
                .view(now, |_, machine| machine.next_change());
            let Some(next) = next else {
                self.sleep = None;
                return Poll::Pending;
            };
            if self.poll_sleep(next, cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Leaves the list and stops the clock.
    fn rest(&mut self) {
        self.breaker.shared().waiters.leave(&mut self.place);
        self.sleep = None;
    }

    fn poll_sleep(&mut self, until: Nanos, cx: &mut Context<'_>) -> Poll<()> {
        let clock = &self.breaker.shared().clock;
        if self.until != until || self.sleep.is_none() {
            self.until = until;
            let sleep = clock.sleep_until(until);
            match &mut self.sleep {
                Some(boxed) => boxed.as_mut().set(sleep),
                None => self.sleep = Some(Box::pin(sleep)),
            }
        }
        let woken = match &mut self.sleep {
            Some(sleep) => sleep.as_mut().poll(cx),
            None => Poll::Ready(()),
        };
        if woken.is_ready() {
            self.sleep = None;
        }
        woken
    }
}

impl Drop for ReadyWait {
    fn drop(&mut self) {
        self.breaker.shared().waiters.leave(&mut self.place);
    }
}

impl fmt::Debug for ReadyWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadyWait({})", self.breaker.name())
    }
}
