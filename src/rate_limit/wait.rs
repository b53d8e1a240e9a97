//! Waiting for one's turn: what a limiter does with its [`WaitQueue`].

use std::task::Context;

use super::acquire::Wait;
use super::engine::Grant;
use super::error::RateLimitedReason;
use super::ledger::{Ledger, Refused};
use super::limiter::Inner;
use super::queue::{Place, WaitQueue, Waiter, Wakes};
use super::{Allowed, RateLimited};
use crate::clock::Nanos;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// What a waiting call is told.
pub(super) type Verdict = Result<(Allowed, Option<Grant>), RateLimited>;

/// The queue of one limiter.
pub(super) struct Waiting {
    queue: Mutex<WaitQueue<Verdict>>,
    /// The length of the queue, for those who need not lock it when it is 0.
    len: AtomicUsize,
    max: usize,
}

impl Waiting {
    pub(super) fn new(max: usize) -> Self {
        Self {
            queue: Mutex::new(WaitQueue::default()),
            len: AtomicUsize::new(0),
            max,
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Runs `work` on the locked queue, then wakes whom it says with the lock released.
    fn locked<T>(&self, work: impl FnOnce(&mut WaitQueue<Verdict>) -> (T, Wakes)) -> T {
        let (answer, wakes) = {
            let mut queue = self.queue.lock();
            let answered = work(&mut queue);
            self.len.store(queue.len(), Ordering::Relaxed);
            answered
        };
        wakes.wake();
        answer
    }
}

/// What a call that waits does next.
pub(super) enum Step {
    Done(Verdict),
    /// Nothing until the clock reads this, or it is woken.
    Sleep(Nanos),
}

impl Inner {
    /// Serves whoever's turn it is, and has the head look again at when its turn is.
    pub(super) fn serve(&self, now: Nanos) {
        self.waiting.locked(|queue| {
            let served = queue.serve(|head| self.verdict(head, now));
            ((), served.and(queue.wake_head()))
        });
    }

    /// Turns away those whose turn no longer fits their time, and serves the rest.
    pub(super) fn plan_anew(&self, now: Nanos) {
        self.waiting.locked(|queue| {
            let mut plan = self.engine.read(Ledger::clone);
            let mut at = now;
            let turned_away = queue.turn_away(|waiter| {
                let Some(ready) = plan.ready(at, waiter.cost) else {
                    return Some(self.refuse_cost(waiter.cost, now));
                };
                if ready > waiter.deadline {
                    return Some(Err(self.too_long(
                        now,
                        ready,
                        waiter.cost,
                        RateLimitedReason::WaitTooLong,
                    )));
                }
                plan.charge(ready, waiter.cost);
                at = ready;
                None
            });
            let served = queue.serve(|head| self.verdict(head, now));
            ((), turned_away.and(served).and(queue.wake_head()))
        });
    }

    /// The head's verdict: granted if its turn has come, and came in time however late it is
    /// noticed; refused if it did not come in time.
    fn verdict(&self, head: &Waiter, now: Nanos) -> Option<Verdict> {
        let in_time = now.min(head.deadline);
        let (decision, grant) = self.engine.grant(in_time, now, head.cost);
        match &decision.outcome {
            Ok(_) | Err(Refused::AboveBurst(_)) => {
                Some(self.outcome(decision).map(|allowed| (allowed, grant)))
            }
            Err(Refused::Spent(_)) if now < head.deadline => None,
            Err(Refused::Spent(_)) => {
                let ready = self.turn(now, &[], head.cost).unwrap_or(Nanos::MAX);
                Some(Err(self.too_long(
                    now,
                    ready,
                    head.cost,
                    RateLimitedReason::WaitTooLong,
                )))
            }
        }
    }

    /// Refuses a cost above the burst; or decides, where a new quota has made it fit meanwhile.
    fn refuse_cost(&self, cost: u32, now: Nanos) -> Verdict {
        let (decision, grant) = self.engine.grant(now, now, cost);
        self.outcome(decision).map(|allowed| (allowed, grant))
    }

    /// When a call of `cost` behind those of `ahead` has its turn, if nobody else comes.
    fn turn(&self, now: Nanos, ahead: &[u32], cost: u32) -> Option<Nanos> {
        if ahead.is_empty() {
            return self.engine.read(|ledger| ledger.ready(now, cost));
        }
        let mut plan = self.engine.read(Ledger::clone);
        let mut at = now;
        for &ahead in ahead {
            // One that costs more than is ever admitted is turned away and delays nobody.
            if let Some(ready) = plan.ready(at, ahead) {
                plan.charge(ready, ahead);
                at = ready;
            }
        }
        plan.ready(at, cost)
    }

    fn too_long(
        &self,
        now: Nanos,
        ready: Nanos,
        cost: u32,
        reason: RateLimitedReason,
    ) -> RateLimited {
        let (balance, standings) = self.engine.read(|ledger| {
            let several = !ledger.is_single();
            let standings = several.then(|| ledger.standings(now));
            (ledger.slowest(now, cost), standings)
        });
        let refusal = RateLimited::for_now(self.name.clone(), reason, balance, ready.since(now));
        match standings {
            Some(standings) => refusal.with_standings(standings),
            None => refusal,
        }
    }

    /// Decides at once or takes a place in the queue.
    pub(super) fn join(&self, now: Nanos, cost: u32, deadline: Nanos) -> Result<Place, Verdict> {
        if self.shadow {
            let decision = self.engine.decide_apart(now, cost);
            return Err(self.answer(decision).map(|allowed| (allowed, None)));
        }
        self.waiting.locked(|queue| {
            let wakes = queue.serve(|head| self.verdict(head, now));
            let joined = self.join_locked(queue, now, cost, deadline);
            (joined, wakes)
        })
    }

    fn join_locked(
        &self,
        queue: &mut WaitQueue<Verdict>,
        now: Nanos,
        cost: u32,
        deadline: Nanos,
    ) -> Result<Place, Verdict> {
        if queue.len() == 0 {
            let (decision, grant) = self.engine.grant(now, now, cost);
            if !matches!(decision.outcome, Err(Refused::Spent(_))) {
                return Err(self.outcome(decision).map(|allowed| (allowed, grant)));
            }
        }
        let ahead: Vec<u32> = queue.iter().map(|waiter| waiter.cost).collect();
        let Some(ready) = self.turn(now, &ahead, cost) else {
            return Err(self.refuse_cost(cost, now));
        };
        if ready > deadline {
            return Err(Err(self.too_long(
                now,
                ready,
                cost,
                RateLimitedReason::WaitTooLong,
            )));
        }
        if queue.len() >= self.waiting.max {
            return Err(Err(self.too_long(
                now,
                ready,
                cost,
                RateLimitedReason::QueueFull,
            )));
        }
        Ok(queue.join(cost, deadline, ()))
    }

    /// Looks whether the turn of `place` has come.
    pub(super) fn look(&self, place: Place, wait: &Wait, cx: &mut Context<'_>) -> Step {
        let now = self.clock.now();
        // Cloned here: what a waker does is its executor's affair, and not for under the lock.
        let waker = cx.waker().clone();
        self.waiting.locked(|queue| {
            let wakes = queue.serve(|head| self.verdict(head, now));
            if let Some(verdict) = queue.verdict(place) {
                return (Step::Done(verdict), wakes);
            }
            let ahead: Vec<u32> = queue
                .iter()
                .take_while(|waiter| waiter.place() != place)
                .map(|waiter| waiter.cost)
                .collect();
            let turn = self.turn(now, &ahead, wait.cost).unwrap_or(Nanos::MAX);
            if now >= wait.deadline && !queue.is_head(place) {
                let (_, left) = queue.leave(place);
                let refusal = self.too_long(now, turn, wait.cost, RateLimitedReason::WaitTooLong);
                return (Step::Done(Err(refusal)), wakes.and(left));
            }
            let parked = queue.park(place, waker);
            (Step::Sleep(turn.min(wait.deadline)), wakes.and(parked))
        })
    }

    /// Gives up `place`, and what it was granted without having heard of it.
    pub(super) fn leave(&self, place: Place, cost: u32) {
        let unheard = self.waiting.locked(|queue| queue.leave(place));
        if let Some(verdict) = unheard {
            self.give_back(verdict, cost);
        }
    }

    pub(super) fn give_back(&self, unheard: Verdict, cost: u32) {
        if let Ok((_, Some(grant))) = unheard {
            let now = || self.clock.now();
            self.engine.refund(&grant, now, cost);
            self.serve(now());
        }
    }
}
