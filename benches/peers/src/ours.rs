//! This crate's contenders.

use std::sync::Arc;
use std::time::Duration;

use tower_layer::Layer;
use tower_sluice::clock::Clock;
use tower_sluice::{
    CircuitBreaker, CircuitBreakerLayer, CircuitPolicy, KeyedRateLimiter, Quota, RateLimitLayer,
    RateLimiter,
};

use crate::drive::call_once;
use crate::floors::Bare;
use crate::limits::{INTERVAL, PLENTY};
use crate::measure::Contender;

type Draw = fn(&mut fastrand::Rng, u64) -> u64;

fn plenty_quota() -> Quota {
    Quota::with_period(1, INTERVAL).burst(PLENTY)
}

fn plenty(clock: Clock) -> RateLimiter {
    let builder = RateLimiter::builder(plenty_quota());
    builder
        .name("plenty")
        .clock(clock)
        .build()
        .expect("a valid quota")
}

fn spent(clock: Clock) -> RateLimiter {
    let builder = RateLimiter::builder(Quota::per_hour(1));
    let limiter = builder
        .name("spent")
        .clock(clock)
        .build()
        .expect("a valid quota");
    let _ = limiter.check();
    limiter
}

fn check(name: &'static str, limiter: RateLimiter) -> Contender {
    Contender::new(name, move || limiter.check().is_ok())
}

pub fn limit_allow() -> Vec<Contender> {
    vec![
        check("tower-sluice, `Instant`", plenty(Clock::tokio())),
        check("tower-sluice, counter", plenty(Clock::tsc())),
    ]
}

pub fn limit_refuse() -> Vec<Contender> {
    vec![
        check("tower-sluice, `Instant`", spent(Clock::tokio())),
        check("tower-sluice, counter", spent(Clock::tsc())),
    ]
}

pub fn keyed_allow(keys: u64, draw: Draw) -> Vec<Contender> {
    let one = |name, clock: Clock| {
        let limiter = KeyedRateLimiter::<u64>::builder(plenty_quota())
            .max_keys(2_000_000)
            .clock(clock)
            .build()
            .expect("a valid quota");
        for key in 0..keys {
            let _ = limiter.check(&key);
        }
        let mut rng = fastrand::Rng::with_seed(7);
        Contender::new(name, move || limiter.check(&draw(&mut rng, keys)).is_ok())
    };
    vec![
        one("tower-sluice, `Instant`", Clock::tokio()),
        one("tower-sluice, counter", Clock::tsc()),
    ]
}

pub fn keyed_strings_allow(names: Arc<[String]>, draw: Draw) -> Vec<Contender> {
    let limiter = KeyedRateLimiter::<str>::builder(plenty_quota())
        .max_keys(2_000_000)
        .build()
        .expect("a valid quota");
    for name in names.iter() {
        let _ = limiter.check(name.as_str());
    }
    let mut rng = fastrand::Rng::with_seed(7);
    let keys = names.len() as u64;
    vec![Contender::new("tower-sluice, `Instant`", move || {
        limiter
            .check(names[draw(&mut rng, keys) as usize].as_str())
            .is_ok()
    })]
}

fn limit_layer(limiter: fn(Clock) -> RateLimiter) -> Vec<Contender> {
    let mut kept = RateLimitLayer::from(limiter(Clock::tokio())).layer(Bare);
    let fresh = kept.clone();
    let mut counter = RateLimitLayer::from(limiter(Clock::tsc())).layer(Bare);
    vec![
        Contender::new("tower-sluice, `Instant`", move || {
            call_once(&mut kept, 7).is_ok()
        }),
        Contender::new("tower-sluice, fresh clone", move || {
            call_once(&mut fresh.clone(), 7).is_ok()
        }),
        Contender::new("tower-sluice, counter", move || {
            call_once(&mut counter, 7).is_ok()
        }),
    ]
}

pub fn limit_layer_allow() -> Vec<Contender> {
    limit_layer(plenty)
}

pub fn limit_layer_refuse() -> Vec<Contender> {
    limit_layer(spent)
}

fn kept_and_fresh(policy: CircuitPolicy, forced: bool) -> Vec<Contender> {
    let breaker = CircuitBreaker::new("peers", policy);
    if forced {
        breaker.try_acquire().expect("it is closed").failure();
    }
    let mut kept = CircuitBreakerLayer::from(breaker).layer(Bare);
    let fresh = kept.clone();
    vec![
        Contender::new("tower-sluice", move || call_once(&mut kept, 7).is_ok()),
        Contender::new("tower-sluice, fresh clone", move || {
            call_once(&mut fresh.clone(), 7).is_ok()
        }),
    ]
}

/// Slow calls are counted, so both ends of a call read the clock.
pub fn breaker_closed_success() -> Vec<Contender> {
    let policy = CircuitPolicy::builder()
        .consecutive(5)
        .slow_threshold(Duration::from_secs(1));
    kept_and_fresh(policy.build().expect("a valid policy"), false)
}

pub fn breaker_closed_success_untimed() -> Vec<Contender> {
    let policy = CircuitPolicy::builder().consecutive(5);
    kept_and_fresh(policy.build().expect("a valid policy"), false)
}

pub fn breaker_open_refuse() -> Vec<Contender> {
    let hours = Duration::from_secs(7_200);
    let policy = CircuitPolicy::builder()
        .consecutive(1)
        .open_for(hours)
        .open_cap(hours);
    kept_and_fresh(policy.build().expect("a valid policy"), true)
}
