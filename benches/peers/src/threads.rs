//! Two threads at once: how much more they do than one, and whether a limit still holds.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tower_layer::Layer;
use tower_sluice::clock::Clock;
use tower_sluice::{
    CircuitBreaker, CircuitBreakerLayer, CircuitPolicy, KeyedRateLimiter, Quota, RateLimiter,
};

use crate::drive::call_once;
use crate::floors::Bare;
use crate::limits::{INTERVAL, PLENTY};
use crate::measure::scaling;

/// What two threads do together over what one does alone.
pub fn scalings() -> Vec<(&'static str, f64)> {
    let quota = Quota::with_period(1, INTERVAL).burst(PLENTY);
    let limiter = RateLimiter::builder(quota)
        .name("one")
        .build()
        .expect("a valid quota");
    let keyed = KeyedRateLimiter::<u64>::new(quota);
    let governor = governor::Quota::with_period(INTERVAL).expect("not zero");
    let governor = governor.allow_burst(NonZeroU32::new(PLENTY).expect("not zero"));
    let governor = governor::RateLimiter::dashmap(governor);
    let breaker = |policy: CircuitPolicy| CircuitBreakerLayer::new("one", policy).layer(Bare);
    let consecutive = CircuitPolicy::builder()
        .consecutive(5)
        .build()
        .expect("a valid policy");
    let (windowed, counted) = (
        breaker(CircuitPolicy::default()),
        breaker(consecutive.clone()),
    );
    let handle = CircuitBreaker::new("one", consecutive);
    vec![
        (
            "one limit, allow",
            scaling(|_| |times| (0..times).for_each(|_| drop(limiter.check()))),
        ),
        (
            "distinct keys, allow",
            scaling(|thread| keys(&keyed, thread)),
        ),
        (
            "governor, distinct keys, allow",
            scaling(|thread| {
                let governor = &governor;
                move |times| (0..times).for_each(|n| drop(governor.check_key(&key(thread, n))))
            }),
        ),
        (
            "one closed breaker layer, time window",
            scaling(|_| serve(windowed.clone())),
        ),
        (
            "one closed breaker layer, consecutive",
            scaling(|_| serve(counted.clone())),
        ),
        (
            "one closed breaker handle, consecutive",
            scaling(|_| {
                let handle = &handle;
                move |times| {
                    (0..times)
                        .for_each(|_| drop(handle.try_acquire().map(|permit| permit.success())));
                }
            }),
        ),
    ]
}

fn key(thread: usize, n: u64) -> u64 {
    (n % 500) * 2 + thread as u64
}

fn keys(keyed: &KeyedRateLimiter<u64>, thread: usize) -> impl FnMut(u64) + Send {
    move |times| (0..times).for_each(|n| drop(keyed.check(&key(thread, n))))
}

fn serve<S: tower_service::Service<u64> + Send>(mut service: S) -> impl FnMut(u64) + Send {
    move |times| (0..times).for_each(|n| drop(call_once(&mut service, n)))
}

/// Two threads ask a limit of 1,000 a second as fast as they can for 5 s: how many were admitted
/// over what the quota promises for the time between the first and the last admission, and the
/// most in any one second, both by the clock readings taken.
pub fn accuracy() -> (f64, usize) {
    const RATE: u32 = 1_000;
    let clock = Clock::tokio();
    let quota = Quota::per_second(RATE).burst(1);
    let limiter = RateLimiter::builder(quota)
        .clock(clock.clone())
        .build()
        .expect("a valid quota");
    let admitted = Mutex::new(Vec::new());
    let end = Instant::now() + Duration::from_secs(5);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut mine = Vec::new();
                while Instant::now() < end {
                    if limiter.check().is_ok() {
                        mine.push(clock.now().as_u64());
                    }
                }
                admitted
                    .lock()
                    .expect("no thread panicked")
                    .append(&mut mine);
            });
        }
    });
    let mut admitted = admitted.into_inner().expect("no thread panicked");
    admitted.sort_unstable();
    let span = (admitted[admitted.len() - 1] - admitted[0]) as f64 / 1e9;
    let promised = 1.0 + f64::from(RATE) * span;
    let most = (0..admitted.len()).map(|first| {
        let within = |at: &&u64| **at < admitted[first] + 1_000_000_000;
        admitted[first..].iter().take_while(within).count()
    });
    (
        admitted.len() as f64 / promised,
        most.max().unwrap_or_default(),
    )
}
