use std::collections::BTreeMap;
use std::task::Waker;

use crate::sync::Mutex;

/// Those who wait for the state to change. All are woken by a change, in the order in which they
/// came and outside of its lock, and leave the list by it; who must wait on registers again, then
/// looks again. By place, so that thousands who do that at once do not each go through all.
#[derive(Debug)]
pub(super) struct Waiters(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    next: u64,
    waiting: BTreeMap<u64, Waker>,
}

/// A place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64);

impl Waiters {
    pub(super) fn new() -> Self {
        Self(Mutex::new(List::default()))
    }

    /// Registers `waker` at `place`, or at a new one. The caller looks at the state after this,
    /// not only before, or a change between the two is lost.
    pub(super) fn register(&self, place: &mut Option<Place>, waker: &Waker) {
        let waker = waker.clone();
        let replaced = {
            let mut list = self.0.lock();
            let id = match place {
                Some(Place(id)) => *id,
                None => {
                    list.next += 1;
                    list.next
                }
            };
            *place = Some(Place(id));
            list.waiting.insert(id, waker)
        };
        // Not under the lock: dropping a waker may run code of its executor.
        drop(replaced);
    }

    /// Gives a place back.
    pub(super) fn leave(&self, place: &mut Option<Place>) {
        let Some(Place(id)) = place.take() else {
            return;
        };
        let left = self.0.lock().waiting.remove(&id);
        drop(left);
    }

    /// Wakes all.
    pub(super) fn wake(&self) {
        let woken = std::mem::take(&mut self.0.lock().waiting);
        for (_, waker) in woken {
            waker.wake();
        }
    }
}

#[cfg(all(test, not(sluice_loom)))]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    /// Notes its number when woken.
    struct Noted(usize, Arc<Mutex<Vec<usize>>>);

    impl Wake for Noted {
        fn wake(self: Arc<Self>) {
            self.1.lock().push(self.0);
        }
    }

    #[test]
    fn all_are_woken_in_the_order_they_came_whoever_leaves_and_whoever_comes_again() {
        let (waiters, woken) = (Waiters::new(), Arc::default());
        let waker = |number| Waker::from(Arc::new(Noted(number, Arc::clone(&woken))));
        let mut places = [None; 4];
        for (number, place) in places.iter_mut().enumerate() {
            waiters.register(place, &waker(number));
        }
        waiters.leave(&mut places[0]);
        waiters.register(&mut places[2], &waker(2));
        waiters.wake();
        assert_eq!(*woken.lock(), [1, 2, 3], "each once");
        for number in [3, 1] {
            waiters.register(&mut places[number], &waker(number));
        }
        waiters.wake();
        assert_eq!(*woken.lock(), [1, 2, 3, 1, 3], "their places are kept");
    }
}
