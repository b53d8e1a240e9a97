use std::task::Waker;

use crate::sync::Mutex;

/// Those who wait for the state to change. All are woken by a change, outside of its lock, and
/// leave the list by it; who must wait on registers again, then looks again.
#[derive(Debug)]
pub(super) struct Waiters(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    next: u64,
    waiting: Vec<(u64, Waker)>,
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
            match list.waiting.iter_mut().find(|(known, _)| *known == id) {
                Some((_, old)) => Some(std::mem::replace(old, waker)),
                None => {
                    list.waiting.push((id, waker));
                    None
                }
            }
        };
        // Not under the lock: dropping a waker may run code of its executor.
        drop(replaced);
    }

    /// Gives a place back.
    pub(super) fn leave(&self, place: &mut Option<Place>) {
        let Some(Place(id)) = place.take() else {
            return;
        };
        let left = {
            let mut list = self.0.lock();
            let at = list.waiting.iter().position(|(known, _)| *known == id);
            at.map(|at| list.waiting.swap_remove(at))
        };
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
