//! What a refused caller is told.

use std::fmt;
use std::time::Duration;

use super::Quota;
use crate::Name;
use crate::reject::{Cause, Refusal, RefusalKind, refusal_sealed};

/// A call refused by a rate limit. It spent nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimited {
    pub(crate) name: Option<Name>,
    pub(crate) reason: RateLimitedReason,
    pub(crate) quota: Quota,
    pub(crate) remaining: u32,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) cause: Cause,
}

/// Why a rate limit refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RateLimitedReason {
    /// The quota is spent for now.
    Spent,
    /// The call costs more than the quota's burst: it would be refused for ever.
    CostAboveBurst,
    /// The store of keys is full and refuses new keys.
    StoreFull,
    /// The call was willing to wait, but its turn would come too late.
    WaitTooLong,
    /// The call was willing to wait, but as many calls as may wait already do.
    QueueFull,
}

impl RateLimited {
    /// The limiter's name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Why the call was refused.
    pub fn reason(&self) -> RateLimitedReason {
        self.reason
    }

    /// The quota that refused.
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// How many calls of cost 1 would still be admitted now: more than zero where the cost was
    /// higher.
    pub fn remaining(&self) -> u32 {
        self.remaining
    }

    /// How long to wait before the same call is admitted, from the moment it was refused. `None`
    /// where no wait helps.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
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
        match self.retry_after() {
            Some(wait) => write!(f, ", retry after {wait:?}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RateLimited {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source(self)
    }
}
