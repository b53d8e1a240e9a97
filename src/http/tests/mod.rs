//! What is needed by several unit tests of this folder.

use std::time::Duration;

use crate::circuit_breaker::CircuitOpen;
use crate::circuit_breaker::error::CircuitOpenReason;
use crate::rate_limit::error::RateLimitedReason;
use crate::rate_limit::{Quota, RateLimited};

pub(crate) fn limited(retry_after: Option<Duration>) -> RateLimited {
    RateLimited {
        name: Some("clients".into()),
        reason: RateLimitedReason::Spent,
        quota: Quota::try_with_period(5, Duration::from_secs(1)).expect("a valid quota"),
        remaining: 0,
        retry_after,
        cause: Default::default(),
    }
}

pub(crate) fn open(retry_after: Option<Duration>) -> CircuitOpen {
    CircuitOpen {
        name: "billing".into(),
        reason: CircuitOpenReason::Open,
        retry_after,
        cause: Default::default(),
    }
}
