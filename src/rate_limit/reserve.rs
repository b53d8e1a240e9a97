use std::fmt;

use super::engine::Grant;
use super::{Allowed, RateLimited, RateLimiter};
use crate::clock::Nanos;

/// A call admitted for an estimated cost, from [`RateLimiter::reserve`].
///
/// [`settle`](Self::settle) it with what the call did cost. Dropping it gives the estimate back.
///
/// What is given back never lets any span admit more than the quota promises: at most what time
/// has provably not refilled since, and nothing once the window has turned over or the quota was
/// replaced. While others give back too, that is judged on the safe side, so a little less than
/// the difference may come back.
///
/// ```
/// use tower_sluice::clock::Clock;
/// use tower_sluice::rate_limit::{Quota, RateLimiter};
///
/// let time = Clock::manual();
/// let tokens = RateLimiter::builder(Quota::per_minute(1_000)).clock(&time).build()?;
/// let call = tokens.reserve(400)?;
/// assert_eq!(tokens.peek()?.remaining(), 600);
/// call.settle(150);
/// assert_eq!(tokens.peek()?.remaining(), 850);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it gives the estimate back"]
pub struct Reservation {
    limiter: RateLimiter,
    allowed: Allowed,
    estimate: u32,
    /// `None` once settled, and in shadow mode where nothing was charged.
    grant: Option<Grant>,
}

impl Reservation {
    pub(super) fn new(
        limiter: &RateLimiter,
        now: Nanos,
        estimate: u32,
    ) -> Result<Self, RateLimited> {
        let (decision, grant) = limiter.0.engine.grant(now, now, estimate);
        Ok(Self {
            allowed: limiter.0.answer(decision)?,
            limiter: limiter.clone(),
            estimate,
            grant,
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
    /// there or not: what is not is a debt, and nothing is admitted until time has paid it off.
    /// (A sliding window or log forgets it with the period it counts in.)
    pub fn settle(mut self, actual: u32) {
        if let Some(grant) = self.grant.take() {
            self.replace_estimate(&grant, actual);
        }
    }

    fn replace_estimate(&self, grant: &Grant, actual: u32) {
        let inner = &self.limiter.0;
        let now = || inner.clock.now();
        if actual > self.estimate {
            inner.engine.charge(now(), actual - self.estimate);
        } else if actual < self.estimate {
            inner.engine.refund(grant, now, self.estimate - actual);
            inner.serve(now());
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            self.replace_estimate(&grant, 0);
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("limiter", &self.limiter.name())
            .field("estimate", &self.estimate)
            .finish()
    }
}
