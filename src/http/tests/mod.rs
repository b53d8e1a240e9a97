//! What is needed by several unit tests of this folder.

use std::time::Duration;

use crate::circuit_breaker::CircuitOpen;
use crate::circuit_breaker::error::CircuitOpenReason;
use crate::clock::Nanos;
use crate::rate_limit::{Quota, RateLimited};

pub(crate) fn limited(retry_after: Option<Duration>) -> RateLimited {
    let quota = Quota::per_second(5).fixed_window();
    RateLimited::for_tests(Some("clients".into()), quota, retry_after)
}

pub(crate) fn open(retry_after: Option<Duration>) -> CircuitOpen {
    let left = retry_after.map(Nanos::saturating);
    CircuitOpen::new("billing".into(), CircuitOpenReason::Open, left)
}
