//! What an operator or an admin page does with a handle.

use std::borrow::Borrow;

use super::key::Key;
use super::limiter::KeyedRateLimiter;
use super::stats::KeyedStats;
use crate::ConfigError;
use crate::clock::Clock;
use crate::rate_limit::Quota;
use crate::sync::Ordering;

impl<K: Key + ?Sized> KeyedRateLimiter<K> {
    /// Replaces the quota, for all keys at once: when this returns, every key is under the new
    /// one. Takes a moment for each key held, one short lock after another.
    ///
    /// A key keeps its time to full, but no longer than the new quota takes to fill: nobody gets a
    /// free burst, and putting the same quota again changes nothing. A window goes on with its
    /// count, and ends within a new period. Waiting calls are asked again at once.
    ///
    /// A key that is in [debt](super::KeyedReservation::settle), or was last called under a quota of its
    /// own, keeps its time to full as it is.
    ///
    /// # Errors
    ///
    /// Where the limiter has several quotas, or the algorithm differs, or for a sliding window the
    /// period: what is kept of the keys would mean nothing. Nothing is changed then.
    pub fn set_quota(&self, quota: Quota) -> Result<(), ConfigError> {
        self.set_quotas(&[quota])
    }

    /// Replaces all quotas, in order, as [`set_quota`](Self::set_quota) does one.
    ///
    /// # Errors
    ///
    /// Where there are more or fewer quotas than before, or one differs from the one before it as
    /// `set_quota` says. Nothing is changed then.
    pub fn set_quotas(&self, quotas: &[Quota]) -> Result<(), ConfigError> {
        self.shared.set_quotas(quotas)
    }

    /// The quota of keys that have none of their own; of several, the first.
    pub fn quota(&self) -> Quota {
        self.shared.quotas.lock()[0]
    }

    /// The quotas of keys that have none of their own, in the order they were given.
    pub fn quotas(&self) -> Vec<Quota> {
        self.shared.quotas.lock().clone()
    }

    /// How many keys are held.
    pub fn len(&self) -> usize {
        self.shared.store.len()
    }

    /// Whether no key is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many calls wait for their turn.
    pub fn waiting(&self) -> usize {
        self.shared.desks.waiting()
    }

    /// Counts of keys and memory. Visits every shard; for a metrics page, not for every call.
    pub fn stats(&self) -> KeyedStats {
        KeyedStats {
            held_back: self.shared.held_back.load(Ordering::Relaxed),
            ..self.shared.store.stats()
        }
    }

    /// Lets go of every key whose state is worth no more than a fresh one, and says how many went.
    /// Never needed for the limits to hold; for those who want memory back at a time of their
    /// choice.
    pub fn sweep(&self) -> usize {
        self.shared.store.sweep(self.shared.clock.now())
    }

    /// Forgets what `key` has spent, by an operator's choice; whether there was anything.
    pub fn reset<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Key<Stored = K::Stored> + ?Sized,
    {
        let key = key.stored(self.shared.store.hasher());
        self.shared.reset(key)
    }

    /// The limiter's name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.shared.name.as_deref()
    }

    /// What time is read from.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }
}
