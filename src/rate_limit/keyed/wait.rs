//! Waiting for the turn of a key: what a limiter does with the queue at its desk.
//!
//! The desk's lock is taken first and the store's inside it, never the other way round.

use std::task::Context;

use super::desks::{Books, Desk, Grant, Verdict};
use super::keys::Asked;
use super::rules::Refused;
use super::shared::Shared;
use super::stored::StoredKey;
use crate::clock::Nanos;
use crate::rate_limit::queue::{Place, Waiter, Wakes};
use crate::rate_limit::{Quota, RateLimitedReason};

/// What a waiting call asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<K> {
    pub(super) key: K,
    pub(super) own: Option<Quota>,
    pub(super) cost: u32,
    pub(super) since: Nanos,
    pub(super) deadline: Nanos,
}

/// What a call that waits does next.
pub(super) enum Step {
    Done(Verdict),
    /// Nothing until the clock reads this, or it is woken.
    Sleep(Nanos),
}

impl<K: StoredKey> Shared<K> {
    fn at_desk<T>(&self, key: K, work: impl FnOnce(&mut Desk) -> (T, Wakes)) -> T {
        self.desks.at(key.place(self.store.hasher()), key, work)
    }

    /// Decides at once or takes a place in the queue.
    pub(super) fn join(&self, ask: &Ask<K>) -> Result<Place, Verdict> {
        let (key, own, now) = (ask.key, ask.own.as_ref(), ask.since);
        if let Err(refusal) = self.check_own(key, own, now) {
            return Err(self.held_back(refusal).map(|allowed| (allowed, None)));
        }
        if self.shadow {
            return Err(self
                .decide(key, own, now, ask.cost)
                .map(|allowed| (allowed, None)));
        }
        self.at_desk(key, |desk| {
            let wakes = self.serve_at(desk, key, now);
            (self.join_at(desk, ask), wakes)
        })
    }

    fn join_at(&self, desk: &mut Desk, ask: &Ask<K>) -> Result<Place, Verdict> {
        let (key, own, now, cost) = (ask.key, ask.own.as_ref(), ask.since, ask.cost);
        if desk.queue.len() == 0 {
            let waiter = (ask.own, now, cost);
            if let Some(verdict) = self.grant(&mut desk.books, key, waiter, now) {
                return Err(verdict);
            }
        }
        let ahead = desk.queue.iter();
        let Some(turn) = self.turn(key, now, ahead, (ask.own, cost)) else {
            return Err(self.refuse_cost(&mut desk.books, key, (ask.own, now, cost), now));
        };
        let reason = if turn > ask.deadline {
            RateLimitedReason::WaitTooLong
        } else if !self.desks.take_seat(desk) {
            RateLimitedReason::QueueFull
        } else {
            return Ok(desk.queue.join(cost, ask.deadline, ask.own));
        };
        Err(self.too_late(key, own, now, turn, (cost, reason)))
    }

    /// Looks whether the turn of `place` has come.
    pub(super) fn look(&self, place: Place, ask: &Ask<K>, cx: &mut Context<'_>) -> Step {
        let (key, now) = (ask.key, self.clock.now());
        // Cloned here: what a waker does is its executor's affair, and not for under the lock.
        let waker = cx.waker().clone();
        self.at_desk(key, |desk| {
            let wakes = self.serve_at(desk, key, now);
            let queue = &mut desk.queue;
            if let Some(verdict) = queue.verdict(place) {
                return (Step::Done(verdict), wakes);
            }
            let ahead = queue.iter().take_while(|waiter| waiter.place() != place);
            let turn = self.turn(key, now, ahead, (ask.own, ask.cost));
            let turn = turn.unwrap_or(Nanos::MAX);
            if now >= ask.deadline && !queue.is_head(place) {
                let (_, left) = queue.leave(place);
                let why = (ask.cost, RateLimitedReason::WaitTooLong);
                let verdict = self.too_late(key, ask.own.as_ref(), now, turn, why);
                return (Step::Done(verdict), wakes.and(left));
            }
            let parked = queue.park(place, waker);
            (Step::Sleep(turn.min(ask.deadline)), wakes.and(parked))
        })
    }

    /// Serves whoever's turn it is with `key`, and has the first look again at when its turn is.
    pub(super) fn serve(&self, key: K, now: Nanos) {
        if self.desks.waiting() == 0 {
            return;
        }
        self.at_desk(key, |desk| {
            let served = self.serve_at(desk, key, now);
            ((), served.and(desk.queue.wake_head()))
        });
    }

    fn serve_at(&self, desk: &mut Desk, key: K, now: Nanos) -> Wakes {
        let (queue, books) = (&mut desk.queue, &mut desk.books);
        queue.serve(|head| self.verdict(books, key, head, now))
    }

    /// The verdict on the first: granted if its turn has come, and came in time however late it is
    /// noticed; refused if it did not come in time.
    fn verdict(
        &self,
        books: &mut Books,
        key: K,
        head: &Waiter<Option<Quota>>,
        now: Nanos,
    ) -> Option<Verdict> {
        let in_time = now.min(head.deadline);
        let granted = self.grant(books, key, (head.along, in_time, head.cost), now);
        if granted.is_some() || now < head.deadline {
            return granted;
        }
        let turn = self.turn(key, now, std::iter::empty(), (head.along, head.cost));
        let turn = turn.unwrap_or(Nanos::MAX);
        let why = (head.cost, RateLimitedReason::WaitTooLong);
        Some(self.too_late(key, head.along.as_ref(), now, turn, why))
    }

    /// Admits or refuses for good; `None` where what is asked may fit later.
    fn grant(
        &self,
        books: &mut Books,
        key: K,
        (own, at, cost): (Option<Quota>, Nanos, u32),
        now: Nanos,
    ) -> Option<Verdict> {
        let (decision, granted) = self.store.grant(key, own.as_ref(), at, now, cost);
        if let Err(Refused::Spent(_)) = decision.outcome {
            return None;
        }
        let grant = granted.map(|granted| books.enter(&granted, self.kinds.len()));
        Some(self.outcome(decision).map(|allowed| (allowed, grant)))
    }

    /// Admits or refuses at once what may be given back or settled later.
    pub(super) fn reserve(&self, key: K, now: Nanos, estimate: u32) -> Verdict {
        self.at_desk(key, |desk| {
            let (decision, granted) = self.store.grant(key, None, now, now, estimate);
            let grant = granted.map(|granted| desk.books.enter(&granted, self.kinds.len()));
            let verdict = self.outcome(decision).map(|allowed| (allowed, grant));
            (verdict, Wakes::default())
        })
    }

    /// Refuses a cost above the burst; or decides, where new quotas have made it fit meanwhile.
    fn refuse_cost(
        &self,
        books: &mut Books,
        key: K,
        waiter: (Option<Quota>, Nanos, u32),
        now: Nanos,
    ) -> Verdict {
        let (own, _, cost) = waiter;
        self.grant(books, key, waiter, now).unwrap_or_else(|| {
            let why = (cost, RateLimitedReason::WaitTooLong);
            self.too_late(key, own.as_ref(), now, Nanos::MAX, why)
        })
    }

    /// When a call behind those of `ahead` has its turn, if nobody else comes and it ever has.
    fn turn<'a>(
        &self,
        key: K,
        now: Nanos,
        ahead: impl Iterator<Item = &'a Waiter<Option<Quota>>>,
        (own, cost): (Option<Quota>, u32),
    ) -> Option<Nanos> {
        // Until the very end: one ahead that will not be served is in the way for as long as it waits.
        let until = Nanos::MAX;
        let ahead = ahead.map(|waiter| Asked {
            own: waiter.along.as_ref(),
            cost: waiter.cost,
            until,
        });
        let mut last = None;
        let own = own.as_ref();
        let queue = ahead.chain([Asked { own, cost, until }]);
        self.store.plan(key, now, queue, |turn| last = turn);
        last
    }

    /// Turns away those whose turn no longer fits their time, of all keys, and serves the rest.
    pub(super) fn plan_anew(&self, now: Nanos) {
        for (place, key) in self.desks.waited_for() {
            self.desks.at(place, key, |desk| {
                let turned_away = self.turn_away(desk, key, now);
                let served = self.serve_at(desk, key, now);
                ((), turned_away.and(served).and(desk.queue.wake_head()))
            });
        }
    }

    fn turn_away(&self, desk: &mut Desk, key: K, now: Nanos) -> Wakes {
        let mut turns = Vec::with_capacity(desk.queue.len());
        let asked = desk.queue.iter().map(|waiter| Asked {
            own: waiter.along.as_ref(),
            cost: waiter.cost,
            until: waiter.deadline,
        });
        self.store.plan(key, now, asked, |turn| turns.push(turn));
        let (mut turns, books) = (turns.into_iter(), &mut desk.books);
        desk.queue.turn_away(|waiter| {
            let asked = (waiter.along, now, waiter.cost);
            match turns.next().flatten() {
                None => Some(self.refuse_cost(books, key, asked, now)),
                Some(turn) if turn > waiter.deadline => {
                    let why = (waiter.cost, RateLimitedReason::WaitTooLong);
                    Some(self.too_late(key, waiter.along.as_ref(), now, turn, why))
                }
                Some(_) => None,
            }
        })
    }

    /// Gives up `place`, and what it was granted without having heard of it.
    pub(super) fn leave(&self, place: Place, ask: &Ask<K>) {
        let unheard = self.at_desk(ask.key, |desk| desk.queue.leave(place));
        if let Some(verdict) = unheard {
            self.give_back(verdict, ask);
        }
    }

    pub(super) fn give_back(&self, unheard: Verdict, ask: &Ask<K>) {
        if let Ok((_, Some(grant))) = unheard {
            self.refund(ask.key, ask.own.as_ref(), &grant, ask.cost);
        }
    }

    /// Gives back up to `cost` of `grant`, as far as time has not given it back yet, and closes it.
    ///
    /// The clock is read once the state is known: by a reading made before, what others have been
    /// admitted for since would be given back a second time.
    pub(super) fn refund(&self, key: K, own: Option<&Quota>, grant: &Grant, cost: u32) {
        let now = || self.clock.now();
        self.at_desk(key, |desk| {
            let (store, generation) = (&self.store, grant.generation);
            if let Some(charge) = desk.books.close(grant)
                && let Some(given) = store.refund(key, own, now, cost, generation, &charge)
            {
                desk.books.gave(grant, &given);
            }
            let served = self.serve_at(desk, key, now());
            ((), served.and(desk.queue.wake_head()))
        });
    }

    /// Closes `grant`, of which nothing comes back.
    pub(super) fn keep(&self, key: K, grant: &Grant) {
        self.at_desk(key, |desk| {
            desk.books.close(grant);
            ((), Wakes::default())
        });
    }

    /// Forgets what `key` has spent, and what might come back of it; whether there was anything.
    pub(super) fn reset(&self, key: K) -> bool {
        let known = self.at_desk(key, |desk| {
            desk.books = self.desks.open_books();
            (self.store.forget(key), Wakes::default())
        });
        self.serve(key, self.clock.now());
        known
    }
}
