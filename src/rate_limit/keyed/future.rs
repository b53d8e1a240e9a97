use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::desks::Verdict;
use super::shared::Shared;
use super::stored::StoredKey;
use super::wait::{Ask, Step};
use crate::clock::{Nanos, Sleep};
use crate::rate_limit::queue::Place;
use crate::rate_limit::{Allowed, RateLimited};

pin_project! {
    /// A call that waits for its turn, from
    /// [`KeyedRateLimiter::wait`](super::KeyedRateLimiter::wait).
    ///
    /// The place in the queue is taken when it is made, not when it is first polled. Dropping it
    /// gives up its place, or what it was granted without having heard of it.
    #[must_use = "the call holds a place in the queue until this is polled or dropped"]
    pub struct KeyedWait<K: StoredKey> {
        turn: Turn<K>,
        #[pin]
        sleep: Option<Sleep>,
        // What `sleep` sleeps towards.
        until: Nanos,
    }
}

/// One call's way through the queue.
struct Turn<K: StoredKey> {
    shared: Arc<Shared<K>>,
    ask: Ask<K>,
    stage: Stage,
}

enum Stage {
    Queued(Place),
    Decided(Verdict),
    Done,
}

impl<K: StoredKey> KeyedWait<K> {
    /// Decides at once or takes a place in the queue.
    pub(super) fn new(shared: &Arc<Shared<K>>, ask: Ask<K>) -> Self {
        match shared.join(&ask) {
            Ok(place) => Self::at(shared, ask, Stage::Queued(place)),
            Err(verdict) => Self::decided(shared, ask, verdict),
        }
    }

    pub(super) fn decided(shared: &Arc<Shared<K>>, ask: Ask<K>, verdict: Verdict) -> Self {
        Self::at(shared, ask, Stage::Decided(verdict))
    }

    fn at(shared: &Arc<Shared<K>>, ask: Ask<K>, stage: Stage) -> Self {
        Self {
            turn: Turn {
                shared: shared.clone(),
                ask,
                stage,
            },
            sleep: None,
            until: Nanos::ZERO,
        }
    }
}

impl<K: StoredKey> Turn<K> {
    /// The decision, once there is one; until then what to sleep towards.
    fn step(&mut self, cx: &mut Context<'_>) -> Result<Result<Allowed, RateLimited>, Nanos> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Decided(verdict) => Ok(self.heard(verdict)),
            Stage::Done => panic!("`KeyedWait` polled after it was ready"),
            Stage::Queued(place) => match self.shared.look(place, &self.ask, cx) {
                Step::Sleep(until) => {
                    self.stage = Stage::Queued(place);
                    Err(until)
                }
                Step::Done(verdict) => {
                    let waited = self.shared.clock.now().since(self.ask.since);
                    let mut decided = self.heard(verdict);
                    if let Ok(allowed) = &mut decided {
                        allowed.set_waited(waited.into());
                    }
                    Ok(decided)
                }
            },
        }
    }

    fn heard(&self, verdict: Verdict) -> Result<Allowed, RateLimited> {
        let (allowed, grant) = verdict?;
        if let Some(grant) = grant {
            self.shared.keep(self.ask.key, &grant);
        }
        Ok(allowed)
    }
}

impl<K: StoredKey> Future for KeyedWait<K> {
    type Output = Result<Allowed, RateLimited>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let until = match this.turn.step(cx) {
                Err(until) => until,
                Ok(decided) => {
                    this.sleep.set(None);
                    return Poll::Ready(decided);
                }
            };
            if this.sleep.is_none() || *this.until != until {
                *this.until = until;
                let sleep = this.turn.shared.clock.sleep_until(until);
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

impl<K: StoredKey> Drop for Turn<K> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Queued(place) => self.shared.leave(place, &self.ask),
            Stage::Decided(verdict) => self.shared.give_back(verdict, &self.ask),
            Stage::Done => {}
        }
    }
}

impl<K: StoredKey> fmt::Debug for KeyedWait<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.turn.stage {
            Stage::Queued(_) => "Queued",
            Stage::Decided(_) => "Decided",
            Stage::Done => "Done",
        };
        write!(f, "KeyedWait({stage})")
    }
}
