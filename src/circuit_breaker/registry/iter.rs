use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use super::breakers::CircuitBreakers;
use crate::circuit_breaker::CircuitBreaker;

/// Goes through the breakers of a registry, in no order: see [`CircuitBreakers::iter`].
#[must_use = "iterators do nothing unless asked"]
pub struct Iter<'a, K> {
    breakers: &'a CircuitBreakers<K>,
    part: usize,
    entries: std::vec::IntoIter<(Arc<K>, CircuitBreaker)>,
}

impl<'a, K> Iter<'a, K> {
    pub(super) fn new(breakers: &'a CircuitBreakers<K>) -> Self {
        Self {
            breakers,
            part: 0,
            entries: Vec::new().into_iter(),
        }
    }
}

impl<K: Hash + Eq + Clone> Iterator for Iter<'_, K> {
    type Item = (K, CircuitBreaker);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, breaker)) = self.entries.next() {
                return Some((K::clone(&key), breaker));
            }
            // A part at a time, copied out: no lock is held between two items, or by `K::clone`.
            self.entries = self.breakers.part(self.part)?.into_iter();
            self.part += 1;
        }
    }
}

impl<K> fmt::Debug for Iter<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter")
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}
