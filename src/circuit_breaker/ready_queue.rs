use std::collections::BTreeMap;
use std::fmt;
use std::task::Waker;

use crate::sync::Mutex;

/// The service instances that wait until they may answer ready: first come, first woken.
///
/// A waiter registers and *then* looks at the state once more; whoever changes the state does so
/// and *then* notifies. Both pass through the lock, so one of the two always sees the other and
/// no wake-up is lost, whatever orderings the state itself uses.
#[derive(Default)]
pub(crate) struct ReadyQueue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    next_turn: u64,
    waiting: BTreeMap<u64, Waker>,
}

impl ReadyQueue {
    /// Wakes the first `places` who wait: so many calls can be admitted.
    pub(crate) fn notify(&self, places: usize) {
        if places == 0 {
            return;
        }
        // All are taken out before any is woken: one that waits again at once is again the first.
        let woken: Vec<_> = {
            let waiting = &mut self.0.lock().waiting;
            let first = std::iter::from_fn(|| waiting.pop_first());
            first.take(places).collect()
        };
        for (_, waker) in woken {
            waker.wake();
        }
    }

    /// Whether nobody waits. One who comes in meanwhile looks at the state after that.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().waiting.is_empty()
    }

    /// Puts `waker` in the queue under `turn`, or at its end.
    fn register(&self, turn: Option<u64>, waker: &Waker) -> u64 {
        let waker = waker.clone();
        let (turn, replaced) = {
            let mut queue = self.0.lock();
            let turn = turn.unwrap_or(queue.next_turn);
            queue.next_turn = queue.next_turn.max(turn.saturating_add(1));
            (turn, queue.waiting.insert(turn, waker))
        };
        // Dropping a waker may run code of its executor, so not under the lock.
        drop(replaced);
        turn
    }

    /// Leaves the queue; tells whether the turn was still waiting.
    fn forget(&self, turn: u64) -> bool {
        let waiting = self.0.lock().waiting.remove(&turn);
        waiting.is_some()
    }
}

impl fmt::Debug for ReadyQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadyQueue({})", self.0.lock().waiting.len())
    }
}

/// One waiter's place in the queue, kept by whoever polls.
///
/// It must be given up with [`leave`](Self::leave), or [`pass_on`](Self::pass_on) where the turn
/// was not used, on the queue it was taken in; it holds no reference to it.
#[derive(Debug, Default)]
pub(crate) struct Queued(Option<u64>);

impl Queued {
    /// Waits in `queue`, keeping the place already held. Look at the state again after this.
    pub(crate) fn wait(&mut self, queue: &ReadyQueue, waker: &Waker) {
        self.0 = Some(queue.register(self.0, waker));
    }

    /// Gives the place up: the waiter has what it came for, or there is nothing to wait for.
    pub(crate) fn leave(&mut self, queue: &ReadyQueue) {
        if let Some(turn) = self.0.take() {
            queue.forget(turn);
        }
    }

    /// Gives the place up; if its turn had come, the next in the queue gets it.
    ///
    /// Without this a waiter dropped between its wake-up and its poll would take the wake-up of
    /// a freed place along, and the rest would sleep beside that place.
    pub(crate) fn pass_on(&mut self, queue: &ReadyQueue) {
        if let Some(turn) = self.0.take()
            && !queue.forget(turn)
        {
            queue.notify(1);
        }
    }
}

#[cfg(all(test, not(sluice_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use tokio_test::task::{Spawn, spawn};

    use super::*;

    fn sleeper(queue: &Arc<ReadyQueue>) -> (Spawn<()>, Queued) {
        let mut task = spawn(());
        let mut turn = Queued::default();
        task.enter(|cx, _| turn.wait(queue, cx.waker()));
        (task, turn)
    }

    #[test]
    fn the_first_to_come_are_the_first_to_be_woken() {
        let queue = Arc::new(ReadyQueue::default());
        let tasks: Vec<_> = (0..4).map(|_| sleeper(&queue)).collect();
        queue.notify(2);
        let woken: Vec<bool> = tasks.iter().map(|(task, _)| task.is_woken()).collect();
        assert_eq!(
            woken,
            [true, true, false, false],
            "two places, two wake-ups"
        );
        queue.notify(usize::MAX);
        assert!(
            tasks.iter().all(|(task, _)| task.is_woken()),
            "the rest too"
        );
    }

    #[test]
    fn a_turn_that_came_and_is_not_used_goes_to_the_next() {
        let queue = Arc::new(ReadyQueue::default());
        let (_first, mut turn) = sleeper(&queue);
        let (second, _turn) = sleeper(&queue);
        queue.notify(1);
        turn.pass_on(&queue);
        assert!(second.is_woken(), "the turn went on");
    }

    #[test]
    fn leaving_before_the_turn_comes_wakes_nobody() {
        let queue = Arc::new(ReadyQueue::default());
        let (_first, mut turn) = sleeper(&queue);
        let (second, _turn) = sleeper(&queue);
        turn.pass_on(&queue);
        assert!(!second.is_woken(), "there was no turn to pass on");
        assert_eq!(format!("{queue:?}"), "ReadyQueue(1)");
    }

    /// Waits again, under its old turn, as it is woken.
    struct Back(Arc<ReadyQueue>, AtomicUsize);

    impl Wake for Back {
        fn wake(self: Arc<Self>) {
            if self.1.fetch_add(1, Ordering::Relaxed) < 9 {
                self.0.register(Some(0), &self.clone().into());
            }
        }
    }

    #[test]
    fn one_that_waits_again_at_once_takes_no_wake_up_of_another() {
        let queue = Arc::new(ReadyQueue::default());
        let back = Arc::new(Back(queue.clone(), AtomicUsize::new(0)));
        queue.register(None, &back.clone().into());
        let (second, _turn) = sleeper(&queue);
        queue.notify(2);
        assert!(second.is_woken(), "two wake-ups for two");
        assert_eq!(back.1.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn waiting_again_keeps_the_place_in_the_queue() {
        let queue = Arc::new(ReadyQueue::default());
        let (mut first, mut turn) = sleeper(&queue);
        let (second, _turn) = sleeper(&queue);
        first.enter(|cx, _| turn.wait(&queue, cx.waker()));
        queue.notify(1);
        assert!(first.is_woken() && !second.is_woken(), "still the first");
    }
}

#[cfg(all(test, sluice_loom))]
mod loom_tests {
    use super::*;
    use crate::sync::{Arc, AtomicBool, Ordering};

    /// Sets a flag when woken.
    struct Flag(std::sync::atomic::AtomicBool);

    impl std::task::Wake for Flag {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }

    #[test]
    fn loom_a_waiter_sees_the_change_or_is_woken() {
        loom::model(|| {
            let queue = Arc::new(ReadyQueue::default());
            // Deliberately relaxed: the queue's lock alone must order the two sides.
            let changed = Arc::new(AtomicBool::new(false));
            let flag = std::sync::Arc::new(Flag(false.into()));
            let other = {
                let (queue, changed) = (queue.clone(), changed.clone());
                loom::thread::spawn(move || {
                    changed.store(true, Ordering::Relaxed);
                    queue.notify(usize::MAX);
                })
            };
            let mut turn = Queued::default();
            turn.wait(&queue, &flag.clone().into());
            let seen = changed.load(Ordering::Relaxed);
            other.join().unwrap();
            assert!(
                seen || flag.0.load(std::sync::atomic::Ordering::SeqCst),
                "neither saw the change nor was woken: it would sleep for ever"
            );
        });
    }
}
