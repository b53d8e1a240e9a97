use std::sync::Arc;

use super::place::Places;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

const WHOLE: u64 = 1_000_000;

/// How many of a registry's breakers may be open at once, and how many are.
///
/// Asked under a breaker's lock, so it holds nothing but counts.
#[derive(Debug)]
pub(in crate::circuit_breaker) struct OpenShare {
    /// The allowed share, in millionths.
    share: u64,
    keys: Arc<Places>,
    open: AtomicUsize,
    withheld: AtomicU64,
}

/// A breaker's part in it: whether it counts as open. Given back on drop.
#[derive(Debug, Default)]
pub(in crate::circuit_breaker) struct OpenPart {
    share: Option<Arc<OpenShare>>,
    held: bool,
}

impl OpenShare {
    /// `share` in (0, 1].
    pub(super) fn new(share: f64, keys: Arc<Places>) -> Self {
        Self {
            share: (share * WHOLE as f64) as u64,
            keys,
            open: AtomicUsize::new(0),
            withheld: AtomicU64::new(0),
        }
    }

    /// How often a breaker met its conditions and was kept closed.
    pub(super) fn withheld(&self) -> u64 {
        self.withheld.load(Ordering::Relaxed)
    }

    fn allowed(&self) -> usize {
        let keys = self.keys.taken() as u64;
        // At least one, or a registry of few keys would never break a circuit.
        (keys.saturating_mul(self.share) / WHOLE).max(1) as usize
    }

    fn take(&self) -> bool {
        let allowed = self.allowed();
        let one_more = |open| (open < allowed).then_some(open + 1);
        let taken = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        if taken.is_err() {
            self.withheld.fetch_add(1, Ordering::Relaxed);
        }
        taken.is_ok()
    }
}

impl OpenPart {
    pub(in crate::circuit_breaker) fn of(share: Option<Arc<OpenShare>>) -> Self {
        Self { share, held: false }
    }

    /// Whether the breaker may open; it then counts as open until [`close`](Self::close).
    pub(in crate::circuit_breaker) fn open(&mut self) -> bool {
        if let Some(share) = self.share.as_ref().filter(|_| !self.held) {
            self.held = share.take();
            return self.held;
        }
        true
    }

    pub(in crate::circuit_breaker) fn close(&mut self) {
        if let Some(share) = self.share.as_ref().filter(|_| self.held) {
            share.open.fetch_sub(1, Ordering::Relaxed);
        }
        self.held = false;
    }
}

impl Drop for OpenPart {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(all(test, not(sluice_loom)))]
mod tests {
    use super::*;

    fn keys(number: usize) -> Arc<Places> {
        let keys = Arc::new(Places::new(1_000));
        for _ in 0..number {
            keys.take().expect("room").keep();
        }
        keys
    }

    fn part(share: &Arc<OpenShare>) -> OpenPart {
        OpenPart::of(Some(share.clone()))
    }

    #[test]
    fn as_many_open_as_the_share_of_the_keys_allows_and_one_at_least() {
        for (number, allowed) in [(1, 1), (9, 1), (10, 1), (20, 2), (100, 10)] {
            let share = Arc::new(OpenShare::new(0.1, keys(number)));
            let mut parts: Vec<_> = (0..number).map(|_| part(&share)).collect();
            let open = parts
                .iter_mut()
                .filter_map(|part| part.open().then_some(()))
                .count();
            assert_eq!(open, allowed, "a tenth of {number}");
            assert_eq!(share.withheld() as usize, number - allowed);
        }
    }

    #[test]
    fn a_part_comes_back_once_by_closing_or_by_going_away() {
        let share = Arc::new(OpenShare::new(0.5, keys(2)));
        let (mut first, mut second) = (part(&share), part(&share));
        assert!(first.open() && first.open(), "open already: it counts once");
        assert!(!second.open());
        first.close();
        first.close();
        assert!(second.open());
        drop(second);
        assert!(first.open());
    }
}
