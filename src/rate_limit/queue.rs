//! The first-come-first-served order of waiting calls.
//!
//! Pure but for the wakers it keeps: it never wakes nor drops one itself, but hands them out as
//! [`Wakes`], for after the lock that its owner holds.
//!
//! Each call sleeps towards its own turn, as it was planned when it last looked. Whoever comes by
//! (a call at its turn, a new call, a refund, a changed quota) serves the queue: in order, as many
//! as fit, up to the first that does not. Served calls and the new head are woken, nobody else.
//! So a head whose task is not polled for a while holds up nobody: the next one serves it.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use crate::clock::Nanos;

/// A queue whose calls end with a verdict `V`, and bring along an `A` to be judged by.
#[derive(Debug)]
pub(crate) struct WaitQueue<V, A = ()> {
    next: Place,
    /// In the order of arrival, which is that of the places.
    waiting: VecDeque<Waiter<A>>,
    /// Of those served or turned away who have not heard of it yet.
    verdicts: BTreeMap<Place, V>,
}

/// Identifies a waiting call in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

/// A call that waits.
#[derive(Debug)]
pub(crate) struct Waiter<A = ()> {
    place: Place,
    pub(crate) along: A,
    pub(crate) cost: u32,
    pub(crate) deadline: Nanos,
    waker: Option<Waker>,
}

/// Who is to be woken, and whose waker only dropped, once no lock is held.
#[derive(Debug, Default)]
#[must_use = "wake them once the lock is released"]
pub(crate) struct Wakes {
    wake: Vec<Waker>,
    drop: Vec<Waker>,
}

impl<A> Waiter<A> {
    pub(crate) fn place(&self) -> Place {
        self.place
    }
}

impl Wakes {
    pub(crate) fn wake(self) {
        for waker in self.wake {
            waker.wake();
        }
    }

    pub(crate) fn and(mut self, other: Self) -> Self {
        self.wake.extend(other.wake);
        self.drop.extend(other.drop);
        self
    }
}

impl<V, A> Default for WaitQueue<V, A> {
    fn default() -> Self {
        Self {
            next: Place(0),
            waiting: VecDeque::new(),
            verdicts: BTreeMap::new(),
        }
    }
}

impl<V, A> WaitQueue<V, A> {
    /// How many wait; those who were served and have not heard yet do not.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits and all have heard.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.verdicts.is_empty()
    }

    /// The waiting calls, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiter<A>> {
        self.waiting.iter()
    }

    /// Takes the last place.
    pub(crate) fn join(&mut self, cost: u32, deadline: Nanos, along: A) -> Place {
        let place = self.next;
        self.next = Place(place.0 + 1);
        self.waiting.push_back(Waiter {
            place,
            along,
            cost,
            deadline,
            waker: None,
        });
        place
    }

    pub(crate) fn is_head(&self, place: Place) -> bool {
        self.waiting.front().is_some_and(|head| head.place == place)
    }

    /// Fetches the verdict on `place`, if there is one; the place is gone then.
    pub(crate) fn verdict(&mut self, place: Place) -> Option<V> {
        self.verdicts.remove(&place)
    }

    /// Notes who is to be woken for `place`.
    pub(crate) fn park(&mut self, place: Place, waker: Waker) -> Wakes {
        let mut wakes = Wakes::default();
        if let Some(at) = self.find(place) {
            let waiter = &mut self.waiting[at];
            wakes.drop.extend(waiter.waker.replace(waker));
        }
        wakes
    }

    /// Gives up `place`. Returns the verdict nobody fetched; the rest move up.
    pub(crate) fn leave(&mut self, place: Place) -> (Option<V>, Wakes) {
        let mut wakes = Wakes::default();
        if let Some(at) = self.find(place) {
            let left = self.waiting.remove(at);
            wakes.drop.extend(left.and_then(|waiter| waiter.waker));
            if at == 0 {
                wakes = wakes.and(self.wake_head());
            }
        }
        (self.verdicts.remove(&place), wakes)
    }

    /// Serves the head of the queue for as long as `decide` has a verdict on it.
    pub(crate) fn serve(&mut self, mut decide: impl FnMut(&Waiter<A>) -> Option<V>) -> Wakes {
        let mut wakes = Wakes::default();
        let mut served = false;
        while let Some(head) = self.waiting.front()
            && let Some(verdict) = decide(head)
        {
            served = true;
            if let Some(head) = self.waiting.pop_front() {
                wakes.wake.extend(head.waker);
                self.verdicts.insert(head.place, verdict);
            }
        }
        if served {
            // Its turn may be earlier than it was planned.
            wakes = wakes.and(self.wake_head());
        }
        wakes
    }

    /// Turns away, wherever they stand, those on whom `judge` has a verdict.
    pub(crate) fn turn_away(&mut self, mut judge: impl FnMut(&Waiter<A>) -> Option<V>) -> Wakes {
        let mut wakes = Wakes::default();
        let verdicts = &mut self.verdicts;
        self.waiting.retain_mut(|waiter| match judge(waiter) {
            None => true,
            Some(verdict) => {
                wakes.wake.extend(waiter.waker.take());
                verdicts.insert(waiter.place, verdict);
                false
            }
        });
        wakes.and(self.wake_head())
    }

    /// Has the head look at its turn again.
    pub(crate) fn wake_head(&mut self) -> Wakes {
        let head = self.waiting.front_mut();
        Wakes {
            wake: head
                .and_then(|head| head.waker.take())
                .into_iter()
                .collect(),
            drop: Vec::new(),
        }
    }

    fn find(&self, place: Place) -> Option<usize> {
        self.waiting
            .binary_search_by_key(&place, |waiter| waiter.place)
            .ok()
    }
}
