use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::breaker::CircuitBreaker;
use super::state::CircuitState;
use super::waiters::Place;

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
