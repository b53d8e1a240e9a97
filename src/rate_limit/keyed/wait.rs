//! Waiting for the turn of a key.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::shared::Shared;
use super::store::Undo;
use super::stored::StoredKey;
use crate::clock::{Nanos, Sleep};
use crate::rate_limit::{Allowed, Quota, RateLimited, RateLimitedReason};
use crate::sync::Mutex;

/// The calls that wait, by key: first come, first served for each key, and keys do not wait for
/// each other.
///
/// Only the first of a key's queue asks the store; it sleeps until the store says it may, asks
/// again, and hands over to the next. Whoever takes from the key without waiting (`check`) may
/// get in between, and the first then sleeps on, but never past the wait it agreed to.
pub(super) struct Waiters<K> {
    queues: Mutex<Queues<K>>,
    most: usize,
}

struct Queues<K> {
    by_key: HashMap<K, VecDeque<Waiter>>,
    waiting: usize,
    next_id: u64,
}

struct Waiter {
    id: u64,
    own: Option<Quota>,
    cost: u32,
    waker: Option<Waker>,
}

/// What a call is while it waits.
#[derive(Clone, Copy)]
struct Ticket<K> {
    id: u64,
    key: K,
}

impl<K: StoredKey> Waiters<K> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            queues: Mutex::new(Queues {
                by_key: HashMap::default(),
                waiting: 0,
                next_id: 0,
            }),
            most,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queues.lock().waiting
    }

    /// Wakes the first of every queue, to ask the store again.
    pub(super) fn wake_first(&self) {
        let wakers: Vec<Waker> = {
            let mut queues = self.queues.lock();
            let firsts = queues.by_key.values_mut();
            firsts
                .filter_map(|queue| queue.front_mut()?.waker.take())
                .collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn is_first(&self, ticket: Ticket<K>) -> bool {
        let queues = self.queues.lock();
        let queue = queues.by_key.get(&ticket.key);
        queue.and_then(VecDeque::front).map(|first| first.id) == Some(ticket.id)
    }

    /// Notes whom to wake.
    fn park(&self, ticket: Ticket<K>, waker: &Waker) {
        let replaced = {
            let mut queues = self.queues.lock();
            let queue = queues.by_key.get_mut(&ticket.key);
            let own = queue.and_then(|queue| queue.iter_mut().find(|one| one.id == ticket.id));
            own.and_then(|own| own.waker.replace(waker.clone()))
        };
        // Dropping a waker may run code of its executor, so not under the lock.
        drop(replaced);
    }

    /// Leaves the queue and wakes whoever is first then.
    fn leave(&self, ticket: Ticket<K>) {
        let (left, next) = self.queues.lock().remove(ticket);
        if let Some(next) = next {
            next.wake();
        }
        drop(left);
    }
}

impl<K: StoredKey> Queues<K> {
    fn push(&mut self, key: K, own: Option<Quota>, cost: u32) -> Ticket<K> {
        let id = self.next_id;
        self.next_id += 1;
        self.waiting += 1;
        self.by_key.entry(key).or_default().push_back(Waiter {
            id,
            own,
            cost,
            waker: None,
        });
        Ticket { id, key }
    }

    /// Takes a call out; with it, whom to wake because it has become the first.
    fn remove(&mut self, ticket: Ticket<K>) -> (Option<Waiter>, Option<Waker>) {
        let Some(queue) = self.by_key.get_mut(&ticket.key) else {
            return (None, None);
        };
        // Ids of a queue ascend.
        let Ok(at) = queue.binary_search_by_key(&ticket.id, |one| one.id) else {
            return (None, None);
        };
        let left = queue.remove(at);
        self.waiting -= 1;
        let next = if at == 0 {
            queue.front_mut().and_then(|first| first.waker.take())
        } else {
            None
        };
        if queue.is_empty() {
            self.by_key.remove(&ticket.key);
            // A burst of waiters is no reason to keep their room for ever.
            if self.by_key.is_empty() {
                self.by_key = HashMap::default();
            }
        }
        (left, next)
    }
}

pin_project! {
    /// A call that waits for its turn, from
    /// [`KeyedRateLimiter::wait`](super::KeyedRateLimiter::wait).
    ///
    /// The place in the queue is taken when it is made, not when it is first polled. Dropping it
    /// gives the place to the next and spends nothing.
    #[must_use = "futures do nothing unless polled"]
    pub struct KeyedWait<K: StoredKey> {
        place: Place<K>,
        until: Nanos,
        #[pin]
        sleep: Option<Sleep>,
    }
}

struct Place<K: StoredKey> {
    shared: Arc<Shared<K>>,
    stage: Stage<K>,
    since: Nanos,
    deadline: Nanos,
    own: Option<Quota>,
    cost: u32,
}

enum Stage<K> {
    Queued(Ticket<K>),
    Decided(Result<(Allowed, Option<Undo<K>>), RateLimited>),
    Done,
}

impl<K: StoredKey> KeyedWait<K> {
    /// Queues for `key`, or decides at once where there is nothing to wait for.
    pub(super) fn new(
        shared: &Arc<Shared<K>>,
        key: K,
        own: Option<Quota>,
        now: Nanos,
        cost: u32,
        most: Duration,
    ) -> Self {
        let deadline = now.plus(most);
        Self {
            place: Place {
                stage: shared.queue(key, own, now, cost, deadline),
                shared: shared.clone(),
                since: now,
                deadline,
                own,
                cost,
            },
            until: Nanos::ZERO,
            sleep: None,
        }
    }
}

impl<K: StoredKey> Shared<K> {
    fn queue(
        &self,
        key: K,
        own: Option<Quota>,
        now: Nanos,
        cost: u32,
        deadline: Nanos,
    ) -> Stage<K> {
        // The store's locks are only ever taken inside this one, never the other way round.
        let mut queues = self.waiters.queues.lock();
        let queue = queues.by_key.get(&key);
        if queue.is_none() {
            match self.decide_undoably(key, own.as_ref(), now, cost) {
                Err(refusal) if refusal.reason() == RateLimitedReason::Spent => {}
                decided => return Stage::Decided(decided),
            }
        } else if let Err(refusal) = self.may_ever_fit(key, own.as_ref(), now, cost) {
            return Stage::Decided(Err(refusal));
        }
        let ahead = queue.into_iter().flatten();
        let calls = ahead
            .map(|one| (one.own.as_ref(), one.cost))
            .chain([(own.as_ref(), cost)]);
        let turn = self.store.plan(key, now, calls);
        let refused = if turn > deadline {
            RateLimitedReason::WaitTooLong
        } else if queues.waiting >= self.waiters.most {
            RateLimitedReason::QueueFull
        } else {
            return Stage::Queued(queues.push(key, own, cost));
        };
        Stage::Decided(Err(self.too_late(key, own.as_ref(), now, turn, refused)))
    }
}

impl<K: StoredKey> Future for KeyedWait<K> {
    type Output = Result<Allowed, RateLimited>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let ticket = match std::mem::replace(&mut this.place.stage, Stage::Done) {
                Stage::Queued(ticket) => ticket,
                Stage::Decided(decided) => {
                    return Poll::Ready(decided.map(|(allowed, _)| allowed));
                }
                Stage::Done => panic!("`KeyedWait` polled after it was ready"),
            };
            this.place.stage = Stage::Queued(ticket);
            // Before looking whether it is the first, so that becoming so in between wakes it.
            this.place.shared.waiters.park(ticket, cx.waker());
            let until = match this.place.attempt(ticket) {
                Attempt::Decided(decided) => {
                    this.sleep.set(None);
                    this.place.leave(ticket);
                    return Poll::Ready(decided);
                }
                Attempt::Again(until) => until,
            };
            if *this.until != until || this.sleep.is_none() {
                *this.until = until;
                let sleep = this.place.shared.clock.sleep_until(until);
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

enum Attempt {
    Decided(Result<Allowed, RateLimited>),
    /// Not yet: ask again then, or when woken.
    Again(Nanos),
}

impl<K: StoredKey> Place<K> {
    fn attempt(&self, ticket: Ticket<K>) -> Attempt {
        let now = self.shared.clock.now();
        let own = self.own.as_ref();
        let first = self.shared.waiters.is_first(ticket);
        let turn = if first {
            match self.shared.decide(ticket.key, own, now, self.cost) {
                Ok(allowed) => return Attempt::Decided(Ok(self.waited(allowed, now))),
                Err(refusal) if refusal.reason() != RateLimitedReason::Spent => {
                    return Attempt::Decided(Err(refusal));
                }
                Err(refusal) => now.plus(refusal.retry_after().unwrap_or(Duration::MAX)),
            }
        } else {
            // Looks up once its time is over; until then those before it wake it.
            now.max(self.deadline).plus(Duration::from_nanos(1))
        };
        // At the end of time no later instant is left to ask again at.
        let over = now > self.deadline || now == Nanos::MAX;
        if over || (first && turn > self.deadline) {
            let reason = RateLimitedReason::WaitTooLong;
            let refusal = self.shared.too_late(ticket.key, own, now, turn, reason);
            return Attempt::Decided(Err(refusal));
        }
        Attempt::Again(turn)
    }

    fn waited(&self, mut allowed: Allowed, now: Nanos) -> Allowed {
        allowed.set_waited(now.since(self.since).into());
        allowed
    }

    fn leave(&mut self, ticket: Ticket<K>) {
        self.stage = Stage::Done;
        self.shared.waiters.leave(ticket);
    }
}

impl<K: StoredKey> Drop for Place<K> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Queued(ticket) => self.leave(ticket),
            Stage::Decided(Ok((_, Some(undo)))) => {
                if self.shared.store.undo(undo) {
                    self.shared.waiters.wake_first();
                }
            }
            Stage::Decided(_) | Stage::Done => {}
        }
    }
}

impl<K: StoredKey> fmt::Debug for KeyedWait<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.place.stage {
            Stage::Queued(_) => "Queued",
            Stage::Decided(_) => "Decided",
            Stage::Done => "Done",
        };
        write!(f, "KeyedWait({stage})")
    }
}
