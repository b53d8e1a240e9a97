use crate::sync::{AtomicUsize, Ordering};

/// How many entries there may be, and how many there are.
#[derive(Debug)]
pub(in crate::circuit_breaker) struct Places {
    taken: AtomicUsize,
    cap: usize,
}

/// Room for one entry, given back on drop unless an entry keeps it.
#[derive(Debug)]
#[must_use = "dropping it gives the room back"]
pub(super) struct Place<'a>(Option<&'a Places>);

impl Places {
    pub(super) fn new(cap: usize) -> Self {
        Self {
            taken: AtomicUsize::new(0),
            cap,
        }
    }

    /// Takes room, exactly: never more than the cap, whatever the threads do.
    pub(super) fn take(&self) -> Option<Place<'_>> {
        let one_more = |taken| (taken < self.cap).then_some(taken + 1);
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .is_ok()
            // Not `then_some`: a place that was not taken must not be dropped either.
            .then(|| Place(Some(self)))
    }

    /// The room of an entry that has just gone.
    pub(super) fn inherit(&self) -> Place<'_> {
        Place(Some(self))
    }

    pub(super) fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether all are taken, just now.
    pub(super) fn are_taken(&self) -> bool {
        self.taken() >= self.cap
    }

    pub(super) fn cap(&self) -> usize {
        self.cap
    }
}

impl Place<'_> {
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(places) = self.0 {
            places.give_back();
        }
    }
}

#[cfg(all(test, not(sluice_loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_more_places_than_the_cap_are_taken_and_each_comes_back() {
        let places = Places::new(2);
        let first = places.take().expect("room for one");
        places.take().expect("room for two").keep();
        assert!(places.take().is_none(), "the cap holds");
        drop(first);
        assert_eq!(places.taken(), 1, "one was kept, one came back");
        let _again = places.take().expect("room again");
    }
}

#[cfg(all(test, sluice_loom))]
mod loom_tests {
    use super::*;
    use crate::sync::Arc;

    #[test]
    fn loom_two_threads_take_one_place_once() {
        loom::model(|| {
            let places = Arc::new(Places::new(1));
            let other = {
                let places = places.clone();
                loom::thread::spawn(move || places.take().map(Place::keep).is_some())
            };
            let mine = places.take().map(Place::keep).is_some();
            let theirs = other.join().unwrap();
            assert!(mine ^ theirs, "exactly one of the two gets the last place");
        });
    }
}
