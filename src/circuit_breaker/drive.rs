use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use super::breaker::CircuitBreaker;
use super::shared::Shared;
use super::waiters::Place;
use crate::clock::Sleep;

/// The future of [`CircuitBreaker::drive`].
///
/// # Panics
///
/// When polled outside of a tokio runtime, unless the breaker's clock is a manual one; and with a
/// panic of the user's open-time function.
#[must_use = "futures do nothing unless polled"]
pub struct Drive {
    shared: Weak<Shared>,
    place: Option<Place>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Drive {
    pub(super) fn new(breaker: &CircuitBreaker) -> Self {
        Self {
            shared: std::sync::Arc::downgrade(breaker.arc()),
            place: None,
            sleep: None,
        }
    }
}

impl Future for Drive {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            // Held no longer than a poll: a driver must not keep alive what it drives.
            let Some(shared) = this.shared.upgrade() else {
                return Poll::Ready(());
            };
            shared.waiters.register(&mut this.place, cx.waker());
            let Some(next) = shared.advance() else {
                this.sleep = None;
                return Poll::Pending;
            };
            let mut sleep = Box::pin(shared.clock.sleep_until(next));
            if sleep.as_mut().poll(cx).is_pending() {
                this.sleep = Some(sleep);
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.waiters.leave(&mut self.place);
        }
    }
}

impl fmt::Debug for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shared.upgrade() {
            Some(shared) => write!(f, "Drive({})", shared.name),
            None => f.write_str("Drive(ended)"),
        }
    }
}
