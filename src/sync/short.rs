use std::hint::spin_loop;
use std::thread;
use std::time::Duration;

use try_lock::{Locked, TryLock};

/// How long a waiter naps once spinning and yielding have not helped.
const NAP: Duration = Duration::from_micros(50);

/// A lock for some tens of instructions, of which there are many, so that nearly always it is free.
///
/// Taking it is one atomic exchange and giving it back a plain store: with the charge under it a
/// plain store too, that is the one read-modify-write of a decision on a word of its own. A lock
/// that parks needs a second one, to learn on the way out whether anybody is parked.
///
/// In return a waiter polls. It spins only as long as a holder that runs takes at most; then the
/// holder has lost its core, and the waiter gives its own away, first by yielding and then by
/// naps, so that a holder of lower priority comes to run as well.
#[derive(Debug, Default)]
pub(crate) struct ShortMutex<T>(TryLock<T>);

impl<T> ShortMutex<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Self(TryLock::new(value))
    }

    #[inline(always)] // part of every keyed decision
    pub(crate) fn lock(&self) -> Locked<'_, T> {
        match self.0.try_lock() {
            Some(locked) => locked,
            None => self.lock_busy(),
        }
    }

    #[cold]
    #[inline(never)]
    #[expect(
        clippy::disallowed_methods,
        reason = "gives a core away; waits for no time to pass"
    )]
    fn lock_busy(&self) -> Locked<'_, T> {
        let mut tries = 0;
        loop {
            match tries {
                // A few microseconds in all: a shard that grows is held for one or two.
                0..8 => (0..1 << tries).for_each(|_| spin_loop()),
                8..32 => thread::yield_now(),
                _ => thread::sleep(NAP),
            }
            if let Some(locked) = self.0.try_lock() {
                return locked;
            }
            tries = (tries + 1).min(32);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn two_holders_never_overlap() {
        let counted = ShortMutex::new(0_u64);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        let mut count = counted.lock();
                        let read = *count;
                        std::hint::spin_loop();
                        *count = read + 1;
                    }
                });
            }
        });
        assert_eq!(*counted.lock(), 4_000, "no step was lost");
    }

    #[test]
    fn whoever_comes_while_it_is_held_gets_it_afterwards() {
        let lock = ShortMutex::new(());
        let (took, hear) = mpsc::channel();
        thread::scope(|scope| {
            let held = lock.lock();
            scope.spawn(|| {
                took.send("waiting").unwrap();
                drop(lock.lock());
                took.send("taken").unwrap();
            });
            assert_eq!(hear.recv(), Ok("waiting"));
            for _ in 0..1_000 {
                thread::yield_now();
            }
            assert!(hear.try_recv().is_err(), "one holder at a time");
            drop(held);
            assert_eq!(hear.recv(), Ok("taken"), "a waiter is not forgotten");
        });
    }

    #[test]
    fn a_panic_gives_it_back() {
        let lock = ShortMutex::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _held = lock.lock();
            panic!("under the lock");
        }));
        assert!(panicked.is_err());
        assert_eq!(*lock.lock(), 1, "neither stuck nor poisoned");
    }
}
