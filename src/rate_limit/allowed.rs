use std::fmt;
use std::time::Duration;

use super::algorithm::Balance;
use super::rare::Rare;
use super::{Quota, RateLimited};
use crate::clock::Nanos;

/// How one quota stood right after a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Standing(pub(crate) Balance);

impl Standing {
    /// The quota.
    pub fn quota(&self) -> &Quota {
        &self.0.quota
    }

    /// How many calls of cost 1 would be admitted now. Never wraps: 0 also in debt.
    pub fn remaining(&self) -> u32 {
        self.0.remaining()
    }

    /// How long until nothing counts as spent any more (GCRA, sliding log), or until the window
    /// ends (fixed and sliding window). Zero where nothing is spent.
    pub fn reset_after(&self) -> Duration {
        Duration::from_nanos(self.0.reset_after())
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing")
            .field("quota", self.quota())
            .field("remaining", &self.remaining())
            .field("reset_after", &self.reset_after())
            .finish()
    }
}

/// An admitted call: what it left behind.
#[derive(Clone, PartialEq, Eq)]
pub struct Allowed {
    standing: Standing,
    pub(super) extra: Rare<Extra>,
}

/// What only some admitted calls carry; boxed, so that the others stay small.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extra {
    /// All standings, where the limiter has several quotas.
    pub(crate) standings: Vec<Standing>,
    /// The refusal that shadow mode held back.
    pub(crate) refusal: Option<RateLimited>,
    /// How long the call waited for its turn.
    pub(crate) waited: Nanos,
}

impl Allowed {
    #[inline]
    pub(crate) fn new(balance: Balance) -> Self {
        Self {
            standing: Standing(balance),
            extra: Rare::NONE,
        }
    }

    /// Notes that the call waited for its turn.
    pub(crate) fn set_waited(&mut self, waited: Nanos) {
        if waited != Nanos::ZERO {
            self.extra.get_or_default().waited = waited;
        }
    }

    /// The quota; of several, the one that leaves the fewest calls.
    pub fn quota(&self) -> &Quota {
        self.standing.quota()
    }

    /// How many more calls of cost 1 would be admitted now, by all quotas.
    pub fn remaining(&self) -> u32 {
        self.standing.remaining()
    }

    /// As [`Standing::reset_after`], of [`quota`](Self::quota).
    pub fn reset_after(&self) -> Duration {
        self.standing.reset_after()
    }

    /// How each of the limiter's quotas stands, in the order they were given.
    pub fn standings(&self) -> &[Standing] {
        match self.extra.as_deref() {
            Some(extra) if !extra.standings.is_empty() => &extra.standings,
            _ => std::slice::from_ref(&self.standing),
        }
    }

    /// How long the call waited for its turn; zero unless it asked to wait.
    pub fn waited(&self) -> Duration {
        self.extra
            .as_deref()
            .map_or(Duration::ZERO, |extra| extra.waited.into())
    }

    /// The refusal this call would have met, were the limiter not in shadow mode.
    pub fn held_back(&self) -> Option<&RateLimited> {
        self.extra.as_deref()?.refusal.as_ref()
    }
}

impl fmt::Debug for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allowed")
            .field("standings", &self.standings())
            .field("waited", &self.waited())
            .field("held_back", &self.held_back())
            .finish()
    }
}
