//! What a refused caller is told.

use std::fmt;
use std::time::Duration;

use super::algorithm::{Balance, Shortfall};
use super::rare::Rare;
use super::{Quota, Standing};
use crate::Name;
use crate::clock::Nanos;
use crate::reject::{Cause, Refusal, RefusalKind, refusal_sealed};

/// A call refused by a rate limit. It spent nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct RateLimited {
    name: Option<Name>,
    reason: RateLimitedReason,
    standing: Standing,
    /// Until the cost fits: in the units of the standing where the reason is `Spent`, otherwise
    /// in nanoseconds; `NEVER` where no wait helps.
    lacking: u64,
    /// All standings, where the limiter has several quotas. Boxed as it stands: one word, where
    /// a slice takes two, in a value that is moved on every refusal.
    standings: Rare<Vec<Standing>>,
    cause: Cause,
}

/// A wait without end. No core lacks that many units.
const NEVER: u64 = u64::MAX;

/// Why a rate limit refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u64)] // a byte and its padding take longer to move than a word
pub enum RateLimitedReason {
    /// The quota is spent for now.
    Spent,
    /// The call costs more than the quota's burst: it would be refused for ever.
    CostAboveBurst,
    /// The store of keys is full and refuses new keys.
    StoreFull,
    /// The key function found no key in the request.
    NoKey,
    /// The key's own quota counts by another algorithm than its limiter, or, for a sliding window,
    /// in another period.
    QuotaMismatch,
    /// The call was willing to wait, but its turn would come too late.
    WaitTooLong,
    /// The call was willing to wait, but as many calls as may wait already do.
    QueueFull,
}

impl RateLimited {
    #[inline]
    pub(crate) fn spent(name: Option<Name>, shortfall: Shortfall) -> Self {
        Self {
            name,
            reason: RateLimitedReason::Spent,
            standing: Standing(shortfall.balance),
            lacking: shortfall.lacking,
            standings: Rare::NONE,
            cause: Cause::default(),
        }
    }

    /// Refuses for `reason`, for good.
    pub(crate) fn for_good(
        name: Option<Name>,
        reason: RateLimitedReason,
        balance: Balance,
    ) -> Self {
        let lacking = NEVER;
        Self {
            reason,
            ..Self::spent(name, Shortfall { balance, lacking })
        }
    }

    /// A refusal as tests of responders want it.
    #[cfg(all(test, feature = "http"))]
    pub(crate) fn for_tests(name: Option<Name>, quota: Quota, wait: Option<Duration>) -> Self {
        let balance = Balance::in_nanos(quota, 0, 0);
        let lacking = wait.map_or(NEVER, |wait| Nanos::saturating(wait).as_u64());
        Self::spent(name, Shortfall { balance, lacking })
    }

    #[cold]
    pub(crate) fn set_name(&mut self, name: Name) {
        self.name = Some(name);
    }

    /// Refuses for `reason`, another than `Spent`, whose end is `wait` away.
    pub(crate) fn for_now(
        name: Option<Name>,
        reason: RateLimitedReason,
        balance: Balance,
        wait: Duration,
    ) -> Self {
        let lacking = Nanos::saturating(wait).as_u64();
        Self {
            reason,
            ..Self::spent(name, Shortfall { balance, lacking })
        }
    }

    pub(crate) fn with_standings(self, standings: Vec<Standing>) -> Self {
        let standings = Rare::new(standings);
        Self { standings, ..self }
    }

    /// The limiter's name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Why the call was refused.
    pub fn reason(&self) -> RateLimitedReason {
        self.reason
    }

    /// The quota that refused; of several, the one with the longest wait.
    pub fn quota(&self) -> &Quota {
        self.standing.quota()
    }

    /// How many calls of cost 1 [`quota`](Self::quota) would still admit now: more than zero
    /// where the cost was higher.
    pub fn remaining(&self) -> u32 {
        self.standing.remaining()
    }

    /// As [`Standing::reset_after`], of [`quota`](Self::quota).
    pub fn reset_after(&self) -> Duration {
        self.standing.reset_after()
    }

    /// How each of the limiter's quotas stands, in the order they were given.
    pub fn standings(&self) -> &[Standing] {
        match self.standings.as_deref() {
            Some(standings) => standings,
            None => std::slice::from_ref(&self.standing),
        }
    }

    /// How long to wait before the same call is admitted, from the moment it was refused. `None`
    /// where no wait helps.
    ///
    /// Exact: alone on the limiter, a call is admitted after this wait and not a nanosecond
    /// earlier. Of a call that was willing to wait, how long its turn is away.
    pub fn retry_after(&self) -> Option<Duration> {
        if self.lacking == NEVER {
            return None;
        }
        let shortfall = Shortfall {
            balance: self.standing.0,
            lacking: self.lacking,
        };
        Some(Duration::from_nanos(match self.reason {
            RateLimitedReason::Spent => shortfall.retry_after(),
            _ => self.lacking,
        }))
    }
}

impl refusal_sealed::Sealed for RateLimited {}

impl Refusal for RateLimited {
    fn name(&self) -> Option<&str> {
        self.name()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after()
    }

    fn kind(&self) -> RefusalKind {
        match self.reason {
            RateLimitedReason::StoreFull => RefusalKind::Unavailable,
            _ => RefusalKind::Limited,
        }
    }
}

impl fmt::Display for RateLimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rate limited")?;
        if let Some(name) = self.name() {
            write!(f, " by {name}")?;
        }
        f.write_str(match self.reason {
            RateLimitedReason::Spent => "",
            RateLimitedReason::CostAboveBurst => ", the call costs more than is ever admitted",
            RateLimitedReason::StoreFull => ", too many keys",
            RateLimitedReason::NoKey => ", the request has no key",
            RateLimitedReason::QuotaMismatch => ", its own quota does not fit the limiter",
            RateLimitedReason::WaitTooLong => ", the wait would be too long",
            RateLimitedReason::QueueFull => ", too many calls wait",
        })?;
        match self.retry_after() {
            Some(wait) => write!(f, ", retry after {wait:?}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for RateLimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimited")
            .field("name", &self.name())
            .field("reason", &self.reason)
            .field("quota", self.quota())
            .field("remaining", &self.remaining())
            .field("retry_after", &self.retry_after())
            .finish()
    }
}

impl std::error::Error for RateLimited {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source(self)
    }
}
