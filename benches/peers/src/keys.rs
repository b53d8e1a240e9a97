//! What a million keys cost beside the time of a call: their memory, their first sight, a sweep, and
//! what a flood of new ones does to a known one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use governor::clock::FakeRelativeClock;
use tower_sluice::clock::Clock;
use tower_sluice::{KeyedRateLimiter, Quota};

use crate::limits::{plenty, string_key};
use crate::ours::keyed_limiter;

const KEYS: u64 = 1_000_000;
const DAY: Duration = Duration::from_secs(86_400);

/// What one store of a million keys takes.
pub struct Store {
    pub name: &'static str,
    /// All memory it holds over the number of keys.
    pub bytes_per_key: f64,
    /// Growth of the store included.
    pub first_sight_ns: f64,
    /// To let go of all of them at once.
    pub sweep_ms: f64,
}

pub fn stores() -> Vec<Store> {
    let strings: Vec<String> = (0..KEYS).map(string_key).collect();
    let (ours, peers) = (Clock::manual(), FakeRelativeClock::default());
    let pass = || {
        ours.advance(DAY);
        peers.advance(DAY);
    };
    vec![
        store(
            "tower-sluice, `u64`",
            || keyed_limiter::<u64>(&ours),
            |limiter| (0..KEYS).for_each(|key| drop(limiter.check(&key))),
            pass,
            |limiter| assert_eq!(limiter.sweep(), KEYS as usize, "all are like new"),
        ),
        store(
            "tower-sluice, 40-byte strings",
            || keyed_limiter::<str>(&ours),
            |limiter| {
                strings
                    .iter()
                    .for_each(|key| drop(limiter.check(key.as_str())))
            },
            pass,
            |limiter| assert_eq!(limiter.sweep(), KEYS as usize, "all are like new"),
        ),
        store(
            "tower-sluice, `u64`, two quotas",
            || {
                let builder = KeyedRateLimiter::<u64>::builder(Quota::per_hour(10));
                let builder = builder.quota(Quota::per_second(10));
                let builder = builder.max_keys(2_000_000).clock(&ours);
                builder.build().expect("valid quotas")
            },
            |limiter| (0..KEYS).for_each(|key| drop(limiter.check(&key))),
            pass,
            |limiter| assert_eq!(limiter.sweep(), KEYS as usize, "all are like new"),
        ),
        store(
            "governor, `u64`",
            || governor::RateLimiter::dashmap_with_clock(plenty(), peers.clone()),
            |limiter| (0..KEYS).for_each(|key| drop(limiter.check_key(&key))),
            pass,
            |limiter| limiter.retain_recent(),
        ),
        store(
            "governor, 40-byte strings",
            || governor::RateLimiter::dashmap_with_clock(plenty(), peers.clone()),
            |limiter| strings.iter().for_each(|key| drop(limiter.check_key(key))),
            pass,
            |limiter| limiter.retain_recent(),
        ),
    ]
}

/// Fills a store, lets a day pass, and sweeps it empty. Its clock stands still while it is filled,
/// so no time is spent on reading it.
fn store<L>(
    name: &'static str,
    make: impl Fn() -> L,
    fill: impl Fn(&L),
    pass: impl Fn(),
    sweep: impl Fn(&L),
) -> Store {
    let mut kept = None;
    let mut first_sight = Duration::ZERO;
    let info = allocation_counter::measure(|| {
        let limiter = make();
        let start = Instant::now();
        fill(&limiter);
        first_sight = start.elapsed();
        kept = Some(limiter);
    });
    let limiter = kept.expect("it was made");
    pass();
    let start = Instant::now();
    sweep(&limiter);
    let swept = start.elapsed();
    Store {
        name,
        bytes_per_key: info.bytes_current as f64 / KEYS as f64,
        first_sight_ns: first_sight.as_nanos() as f64 / KEYS as f64,
        sweep_ms: swept.as_secs_f64() * 1e3,
    }
}

/// Times of a known key's call, its clock reads included: the median, and what 99 of 100 stay under.
pub struct Known {
    pub median_ns: u64,
    pub p99_ns: u64,
}

/// Keys that are there before the flood.
const KNOWN: u64 = 100_000;

/// Known keys by themselves, while another thread asks for known ones too, and while it brings new
/// ones, as fast as it can.
pub fn flood() -> [Known; 3] {
    let limiter = keyed_limiter::<u64>(Clock::tokio());
    for key in 0..KNOWN {
        let _ = limiter.check(&key);
    }
    let alone = known(&limiter);
    [
        alone,
        beside(&limiter, 0..KNOWN),
        beside(&limiter, KNOWN..u64::MAX),
    ]
}

fn beside(limiter: &KeyedRateLimiter<u64>, others: std::ops::Range<u64>) -> Known {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = fastrand::Rng::with_seed(11);
            while !done.load(Ordering::Relaxed) {
                let _ = limiter.check(&rng.u64(others.clone()));
            }
        });
        let seen = known(limiter);
        done.store(true, Ordering::Relaxed);
        seen
    })
}

fn known(limiter: &KeyedRateLimiter<u64>) -> Known {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut times: Vec<u64> = (0..2_000_000_u32)
        .map(|_| {
            let key = rng.u64(..KNOWN);
            let start = Instant::now();
            let _ = limiter.check(&key);
            start.elapsed().as_nanos() as u64
        })
        .collect();
    times.sort_unstable();
    Known {
        median_ns: times[times.len() / 2],
        p99_ns: times[times.len() / 100 * 99],
    }
}
