//! The limiter as a plain handle.

#[path = "../support/mod.rs"]
mod support;

mod algorithms;
mod configuration;
mod numbers;
mod reload;
mod reserve;
mod several;
mod shadow;
mod threads;
mod waiting;
mod waiting_cases;

use std::time::Duration;

use tower_sluice::clock::ManualClock;
use tower_sluice::rate_limit::{Quota, RateLimiter};

/// A limiter on a clock that stands still until it is moved.
fn manual(quota: Quota) -> (RateLimiter, ManualClock) {
    let time = tower_sluice::clock::Clock::manual();
    let limiter = RateLimiter::builder(quota)
        .clock(&time)
        .build()
        .expect("a valid limiter");
    (limiter, time)
}

/// The same numbers under every algorithm; GCRA's burst is the limit.
fn every_algorithm(limit: u32, period: Duration) -> [Quota; 4] {
    let quota = Quota::with_period(limit, period);
    [
        quota,
        quota.fixed_window(),
        quota.sliding_window(),
        quota.sliding_log(),
    ]
}

/// Calls as fast as it is let, from now on and for less than `span`; returns how many passed.
fn greedy(limiter: &RateLimiter, time: &ManualClock, span: Duration) -> u64 {
    let end = time.now().plus(span);
    let mut admitted = 0;
    loop {
        match limiter.check() {
            Ok(_) => admitted += 1,
            Err(refusal) => {
                let wait = refusal
                    .retry_after()
                    .expect("a single call is never too dear");
                if time.now().plus(wait) >= end {
                    time.set(end);
                    return admitted;
                }
                time.advance(wait);
            }
        }
    }
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
