//! The future of a call that waits.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::queue::Place;
use super::wait::{Step, Verdict};
use super::{Allowed, RateLimited, RateLimiter};
use crate::clock::{Nanos, Sleep};

/// What a waiting call asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    since: Nanos,
    pub(super) deadline: Nanos,
    pub(super) cost: u32,
}

pin_project! {
    /// Waits for a call's turn; from [`RateLimiter::wait`] and [`RateLimiter::wait_n`].
    ///
    /// Owns its handle, so it is `'static`. Dropping it gives up its place, or what it was
    /// granted without having heard of it.
    #[must_use = "the call holds a place in the queue until this is polled or dropped"]
    pub struct Acquire {
        turn: Turn,
        #[pin]
        sleep: Option<Sleep>,
        // What `sleep` sleeps towards.
        until: Nanos,
    }
}

/// One call's way through the queue.
struct Turn {
    limiter: RateLimiter,
    wait: Wait,
    stage: Stage,
}

enum Stage {
    Queued(Place),
    Decided(Verdict),
    Done,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let inner = &self.limiter.0;
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Queued(place) => inner.leave(place, self.wait.cost),
            Stage::Decided(verdict) => inner.give_back(verdict, self.wait.cost),
            Stage::Done => {}
        }
    }
}

impl Turn {
    /// The verdict, once there is one; until then what to sleep towards.
    fn step(&mut self, cx: &mut Context<'_>) -> Step {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Decided(verdict) => Step::Done(verdict),
            Stage::Done => panic!("`Acquire` polled after it was ready"),
            Stage::Queued(place) => {
                let mut step = self.limiter.0.look(place, &self.wait, cx);
                match &mut step {
                    Step::Sleep(_) => self.stage = Stage::Queued(place),
                    Step::Done(Ok((allowed, _))) => {
                        let now = self.limiter.0.clock.now();
                        allowed.set_waited(now.since(self.wait.since).into());
                    }
                    Step::Done(Err(_)) => {}
                }
                step
            }
        }
    }
}

impl Acquire {
    pub(super) fn new(limiter: RateLimiter, since: Nanos, cost: u32, deadline: Nanos) -> Self {
        let stage = match limiter.0.join(since, cost, deadline) {
            Ok(place) => Stage::Queued(place),
            Err(verdict) => Stage::Decided(verdict),
        };
        let wait = Wait {
            since,
            deadline,
            cost,
        };
        Self {
            turn: Turn {
                limiter,
                wait,
                stage,
            },
            sleep: None,
            until: Nanos::ZERO,
        }
    }
}

impl Future for Acquire {
    type Output = Result<Allowed, RateLimited>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let until = match this.turn.step(cx) {
                Step::Sleep(until) => until,
                Step::Done(verdict) => {
                    this.sleep.set(None);
                    return Poll::Ready(verdict.map(|(allowed, _)| allowed));
                }
            };
            if this.sleep.is_none() || *this.until != until {
                *this.until = until;
                let sleep = this.turn.limiter.0.clock.sleep_until(until);
                this.sleep.set(Some(sleep));
            }
            if let Some(sleep) = this.sleep.as_mut().as_pin_mut()
                && sleep.poll(cx).is_pending()
            {
                return Poll::Pending;
            }
            this.sleep.set(None);
        }
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("limiter", &self.turn.limiter.name())
            .field("wait", &self.turn.wait)
            .field("queued", &matches!(self.turn.stage, Stage::Queued(_)))
            .finish()
    }
}
