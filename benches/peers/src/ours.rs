//! This crate's contenders.

use std::rc::Rc;
use std::time::Duration;

use tower_layer::Layer;
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::Key;
use tower_sluice::{
    CircuitBreaker, CircuitBreakerLayer, CircuitPolicy, KeyedRateLimiter, Quota, RateLimitLayer,
    RateLimiter,
};

use crate::drive::call_once;
use crate::floors::{Bare, EveryOther};
use crate::limits::{Draw, INTERVAL, PLENTY, drawn, string_key};
use crate::measure::Contender;

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
        let limiter = keyed_limiter::<u64>(clock);
        for key in 0..keys {
            let _ = limiter.check(&key);
        }
        Contender::over(name, drawn(keys, draw), move |key| {
            limiter.check(key).is_ok()
        })
    };
    vec![
        one("tower-sluice, `Instant`", Clock::tokio()),
        one("tower-sluice, counter", Clock::tsc()),
    ]
}

pub fn keyed_strings_allow(
    keys: u64,
    draw: impl FnMut() -> Rc<String> + 'static,
) -> Vec<Contender> {
    let limiter = keyed_limiter::<str>(Clock::tokio());
    for key in 0..keys {
        let _ = limiter.check(string_key(key).as_str());
    }
    vec![Contender::over(
        "tower-sluice, `Instant`",
        draw,
        move |key| limiter.check(key.as_str()).is_ok(),
    )]
}

pub fn keyed_limiter<K: Key + ?Sized>(clock: impl Into<Clock>) -> KeyedRateLimiter<K> {
    KeyedRateLimiter::builder(plenty_quota())
        .max_keys(2_000_000)
        .clock(clock)
        .build()
        .expect("a valid quota")
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

/// Every other call fails, which no condition finds too many.
pub fn breaker_closed_failure() -> Vec<Contender> {
    let policy = CircuitPolicy::builder()
        .consecutive(5)
        .slow_threshold(Duration::from_secs(1));
    let breaker = CircuitBreaker::new("peers", policy.build().expect("a valid policy"));
    let mut kept = CircuitBreakerLayer::from(breaker).layer(EveryOther::default());
    let windowed = CircuitPolicy::builder().failure_rate(0.9).slow_rate(0.9);
    let windowed = windowed.slow_threshold(Duration::from_secs(1));
    let breaker = CircuitBreaker::new("peers", windowed.build().expect("a valid policy"));
    let mut windowed = CircuitBreakerLayer::from(breaker).layer(EveryOther::default());
    vec![
        Contender::new("tower-sluice, consecutive", move || {
            call_once(&mut kept, 7).is_ok()
        }),
        Contender::new("tower-sluice, time window", move || {
            call_once(&mut windowed, 7).is_ok()
        }),
    ]
}

fn kept_and_fresh(breaker: CircuitBreaker) -> Vec<Contender> {
    let mut kept = CircuitBreakerLayer::from(breaker).layer(Bare);
    let fresh = kept.clone();
    vec![
        Contender::new("tower-sluice", move || call_once(&mut kept, 7).is_ok()),
        Contender::new("tower-sluice, fresh clone", move || {
            call_once(&mut fresh.clone(), 7).is_ok()
        }),
    ]
}

fn slow_and_consecutive() -> CircuitPolicy {
    let policy = CircuitPolicy::builder().consecutive(5);
    let policy = policy.slow_threshold(Duration::from_secs(1));
    policy.build().expect("a valid policy")
}

fn consecutive() -> CircuitPolicy {
    let policy = CircuitPolicy::builder().consecutive(5);
    policy.build().expect("a valid policy")
}

fn open_for_hours() -> CircuitPolicy {
    let hours = Duration::from_secs(7_200);
    let policy = CircuitPolicy::builder().consecutive(1);
    let policy = policy.open_for(hours).open_cap(hours);
    policy.build().expect("a valid policy")
}

/// A breaker that has tripped and stays open for as long as anyone measures.
fn opened() -> CircuitBreaker {
    let breaker = CircuitBreaker::new("peers", open_for_hours());
    breaker.try_acquire().expect("it is closed").failure();
    breaker
}

fn succeed(name: &'static str, policy: CircuitPolicy) -> Contender {
    let breaker = CircuitBreaker::new("peers", policy);
    Contender::new(name, move || {
        breaker.try_acquire().map(|permit| permit.success()).is_ok()
    })
}

pub fn breaker_by_hand_closed() -> Vec<Contender> {
    let calls = CircuitPolicy::builder().failure_rate(0.5).window_calls(100);
    vec![
        succeed("tower-sluice, slow calls", slow_and_consecutive()),
        succeed("tower-sluice, time window", CircuitPolicy::default()),
        succeed(
            "tower-sluice, window of calls",
            calls.build().expect("a valid policy"),
        ),
        succeed("tower-sluice, consecutive", consecutive()),
    ]
}

pub fn breaker_by_hand_open() -> Vec<Contender> {
    let breaker = opened();
    vec![Contender::new("tower-sluice", move || {
        breaker.try_acquire().is_ok()
    })]
}

/// Slow calls are counted, so both ends of a call read the clock.
pub fn breaker_closed_success() -> Vec<Contender> {
    kept_and_fresh(CircuitBreaker::new("peers", slow_and_consecutive()))
}

pub fn breaker_closed_success_untimed() -> Vec<Contender> {
    kept_and_fresh(CircuitBreaker::new("peers", consecutive()))
}

pub fn breaker_open_refuse() -> Vec<Contender> {
    kept_and_fresh(opened())
}
