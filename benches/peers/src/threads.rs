//! Two threads at once: how much more they do than one, and whether a limit still holds.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use tower_layer::Layer;
use tower_sluice::clock::Clock;
use tower_sluice::{
    CircuitBreaker, CircuitBreakerLayer, CircuitPolicy, KeyedRateLimiter, Quota, RateLimiter,
};

use crate::drive::call_once;
use crate::floors::{Bare, KeyedLimit};
use crate::limits::{INTERVAL, PLENTY, plenty_floor};
use crate::measure::scaling;

/// What two threads do together over what one does alone.
pub fn scalings() -> Vec<(&'static str, f64)> {
    let quota = Quota::with_period(1, INTERVAL).burst(PLENTY);
    let limiter = RateLimiter::builder(quota)
        .name("one")
        .build()
        .expect("a valid quota");
    let keyed = KeyedRateLimiter::<u64>::new(quota);
    let floor = KeyedLimit::new(plenty_floor(), 1_000);
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
    let handle = CircuitBreaker::new("one", consecutive.clone());
    let timed = CircuitBreaker::new("one", CircuitPolicy::default());
    let open = CircuitBreaker::new("one", consecutive);
    open.force_open();
    let spent = RateLimiter::builder(Quota::per_hour(1)).name("one");
    let spent = spent.build().expect("a valid quota");
    let _ = spent.check();
    vec![
        (
            "one limit, allow",
            scaling(|_| |times| (0..times).for_each(|_| drop(limiter.check()))),
        ),
        (
            "one limit, refuse",
            scaling(|_| |times| (0..times).for_each(|_| drop(spent.check()))),
        ),
        (
            "distinct keys, allow",
            scaling(|thread| keys(&keyed, thread)),
        ),
        (
            "the floor's table, distinct keys, allow",
            scaling(|thread| {
                let floor = &floor;
                move |times| {
                    for n in 0..times {
                        let _ = floor.check(key(thread, n));
                    }
                }
            }),
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
            scaling(|_| acquire(&handle)),
        ),
        (
            "one closed breaker handle, time window",
            scaling(|_| acquire(&timed)),
        ),
        (
            "one open breaker handle, refusal",
            scaling(|_| acquire(&open)),
        ),
    ]
}

fn acquire(breaker: &CircuitBreaker) -> impl FnMut(u64) + Send {
    move |times| {
        (0..times).for_each(|_| drop(breaker.try_acquire().map(|permit| permit.success())));
    }
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

/// Two threads ask a limit of `rate` a second as fast as they can for 5 s: how many were admitted
/// over what the quota promises for the time between the first and the last admission, and the
/// most in any one second, both by the clock readings taken. The burst is a tenth of a second's
/// calls, so that a thread which the machine sets aside loses nothing by it.
pub fn accuracy(rate: u32) -> (f64, usize) {
    let clock = Clock::tokio();
    let burst = rate / 10;
    let limiter = RateLimiter::builder(Quota::per_second(rate).burst(burst))
        .clock(clock.clone())
        .build()
        .expect("a valid quota");
    let end = Instant::now() + Duration::from_secs(5);
    let hammer = || {
        let mut admitted = Vec::new();
        while Instant::now() < end {
            if limiter.check().is_ok() {
                admitted.push(clock.now().as_u64());
            }
        }
        admitted
    };
    let mut admitted = std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(hammer), scope.spawn(hammer));
        let mut admitted = one.join().expect("it ran");
        admitted.append(&mut other.join().expect("it ran"));
        admitted
    });
    admitted.sort_unstable();
    let span = (admitted[admitted.len() - 1] - admitted[0]) as f64 / 1e9;
    let promised = f64::from(burst) + f64::from(rate) * span;
    (
        admitted.len() as f64 / promised,
        most_in_a_second(&admitted),
    )
}

fn most_in_a_second(sorted: &[u64]) -> usize {
    let mut first = 0;
    let most = sorted.iter().enumerate().map(|(last, at)| {
        while sorted[first] + 1_000_000_000 <= *at {
            first += 1;
        }
        last + 1 - first
    });
    most.max().unwrap_or_default()
}
