use std::fmt;
use std::sync::Arc;

use super::desks::Grant;
use super::shared::Shared;
use super::stored::StoredKey;
use crate::rate_limit::{Allowed, RateLimited};

/// A call of a key admitted for an estimated cost, from
/// [`KeyedRateLimiter::reserve`](super::KeyedRateLimiter::reserve).
///
/// [`settle`](Self::settle) it with what the call did cost. Dropping it gives the estimate back.
///
/// What is given back never lets any span admit more than the quotas promise: at most what time
/// has provably not refilled since, and nothing once the key's window has turned over, the key was
/// let go or [reset](super::KeyedRateLimiter::reset), or the quotas were replaced. Nor does
/// anything come back from the state that all keys without a place share.
///
/// ```
/// use tower_sluice::clock::Clock;
/// use tower_sluice::rate_limit::{KeyedRateLimiter, Quota};
///
/// let time = Clock::manual();
/// let tokens = KeyedRateLimiter::<str>::builder(Quota::per_minute(1_000)).clock(&time).build()?;
/// let call = tokens.reserve("acme", 400)?;
/// assert_eq!(tokens.peek("acme")?.remaining(), 600);
/// call.settle(150);
/// assert_eq!(tokens.peek("acme")?.remaining(), 850);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it gives the estimate back"]
pub struct KeyedReservation<K: StoredKey> {
    shared: Arc<Shared<K>>,
    key: K,
    allowed: Allowed,
    estimate: u32,
    charged: Charged,
}

/// What became of the estimate.
enum Charged {
    /// To the key, which may get some of it back.
    Key(Grant),
    /// To the state that keys without a place share.
    Shared,
    /// Settled; or held back by shadow mode, and charged to nobody.
    Nothing,
}

impl<K: StoredKey> KeyedReservation<K> {
    pub(super) fn new(shared: &Arc<Shared<K>>, key: K, estimate: u32) -> Result<Self, RateLimited> {
        let (allowed, charged) = match shared.reserve(key, shared.clock.now(), estimate) {
            Ok((allowed, Some(grant))) => (allowed, Charged::Key(grant)),
            Ok((allowed, None)) => (allowed, Charged::Shared),
            Err(refusal) => (shared.held_back(refusal)?, Charged::Nothing),
        };
        Ok(Self {
            shared: shared.clone(),
            key,
            allowed,
            estimate,
            charged,
        })
    }

    /// What the admission left behind.
    pub fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    /// What was charged.
    pub fn estimate(&self) -> u32 {
        self.estimate
    }

    /// Charges `actual` in place of the estimate.
    ///
    /// Less gives the difference back, by the rule of the type. More is charged whether it is
    /// there or not: what is not is a debt of the key, and nothing is admitted to it until time
    /// has paid it off. (A sliding window forgets it with the period it counts in.)
    pub fn settle(mut self, actual: u32) {
        self.replace_estimate(actual);
    }

    fn replace_estimate(&mut self, actual: u32) {
        let charged = std::mem::replace(&mut self.charged, Charged::Nothing);
        let (shared, key, estimate) = (&self.shared, self.key, self.estimate);
        if let Charged::Key(grant) = &charged {
            if actual < estimate {
                shared.refund(key, None, grant, estimate - actual);
            } else {
                shared.keep(key, grant);
            }
        }
        if actual > estimate && !matches!(charged, Charged::Nothing) {
            shared
                .store
                .charge(key, shared.clock.now(), actual - estimate);
        }
    }
}

impl<K: StoredKey> Drop for KeyedReservation<K> {
    fn drop(&mut self) {
        self.replace_estimate(0);
    }
}

impl<K: StoredKey> fmt::Debug for KeyedReservation<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the key: logs are read by more people than memory.
        f.debug_struct("KeyedReservation")
            .field("limiter", &self.shared.name.as_deref())
            .field("estimate", &self.estimate)
            .finish()
    }
}
