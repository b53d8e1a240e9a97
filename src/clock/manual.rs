use std::fmt;
use std::task::Waker;
use std::time::Duration;

use super::Nanos;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

/// A clock that moves only when told to, forward or backward. Clones are the same clock.
///
/// Moving it wakes every call that waits for the time it reaches. Made by
/// [`Clock::manual`](super::Clock::manual).
#[derive(Clone)]
pub struct ManualClock(Arc<Shared>);

struct Shared {
    now: AtomicU64,
    sleepers: Mutex<Sleepers>,
}

#[derive(Default)]
struct Sleepers {
    next_id: u64,
    waiting: Vec<Sleeper>,
}

struct Sleeper {
    id: u64,
    deadline: Nanos,
    waker: Waker,
}

impl ManualClock {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared {
            now: AtomicU64::new(0),
            sleepers: Mutex::default(),
        }))
    }

    /// Reads the time.
    #[inline]
    pub fn now(&self) -> Nanos {
        Nanos::new(self.0.now.load(Ordering::Acquire))
    }

    /// Moves the clock on; stops at [`Nanos::MAX`].
    pub fn advance(&self, by: Duration) {
        let by = Nanos::saturating(by).as_u64();
        let moved = |now: u64| Some(now.saturating_add(by));
        let _ = self
            .0
            .now
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, moved);
        self.wake_due();
    }

    /// Sets the clock, also to an earlier time.
    pub fn set(&self, now: Nanos) {
        self.0.now.store(now.as_u64(), Ordering::Release);
        self.wake_due();
    }

    fn wake_due(&self) {
        let now = self.now();
        let due: Vec<Sleeper> = {
            let mut sleepers = self.0.sleepers.lock();
            sleepers
                .waiting
                .extract_if(.., |sleeper| sleeper.deadline <= now)
                .collect()
        };
        // Outside the lock: a waker may run the task at once, and the task may come back here.
        for sleeper in due {
            sleeper.waker.wake();
        }
    }

    /// Notes that `waker` waits for `deadline`, under the id it already has or a new one.
    pub(super) fn register(&self, id: Option<u64>, deadline: Nanos, waker: &Waker) -> u64 {
        let (id, replaced) = {
            let mut sleepers = self.0.sleepers.lock();
            let known =
                id.and_then(|id| sleepers.waiting.iter_mut().find(|sleeper| sleeper.id == id));
            match known {
                Some(sleeper) if sleeper.waker.will_wake(waker) => (sleeper.id, None),
                Some(sleeper) => (
                    sleeper.id,
                    Some(std::mem::replace(&mut sleeper.waker, waker.clone())),
                ),
                None => {
                    let id = sleepers.next_id;
                    sleepers.next_id += 1;
                    sleepers.waiting.push(Sleeper {
                        id,
                        deadline,
                        waker: waker.clone(),
                    });
                    (id, None)
                }
            }
        };
        // Dropping a waker may run code of its executor, so not under the lock.
        drop(replaced);
        id
    }

    /// Forgets the sleeper `id`.
    pub(super) fn forget(&self, id: u64) {
        let forgotten = {
            let mut sleepers = self.0.sleepers.lock();
            let place = sleepers.waiting.iter().position(|sleeper| sleeper.id == id);
            place.map(|place| sleepers.waiting.swap_remove(place))
        };
        drop(forgotten);
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManualClock({:?})", self.now())
    }
}
