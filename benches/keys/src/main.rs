//! Bytes per key, what a new key and a full sweep cost, and how long a known key waits while a
//! flood of new ones comes in.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use tower_sluice::clock::{Clock, ManualClock};
use tower_sluice::{KeyedRateLimiter, Quota};

const MILLION: u64 = 1_000_000;
const SECOND: Duration = Duration::from_secs(1);

/// None of its keys is fresh again within a run, unless a manual clock is moved that far.
fn hourly() -> Quota {
    Quota::per_hour(10)
}

fn main() {
    println!("| a million keys | bytes per key | ns per new key | ns per key of a full sweep |");
    println!("|---|---|---|---|");
    let gcra = [hourly(), Quota::per_minute(10), Quota::per_second(10)];
    let window = hourly().fixed_window();
    integers("`u64`, GCRA", &gcra[..1]);
    integers("`u64`, fixed window", &[window]);
    integers("`u64`, two GCRA", &gcra[..2]);
    integers("`u64`, three GCRA", &gcra);
    integers("`u64`, GCRA and two windows", &[hourly(), window, window]);
    strings("strings of 40 bytes, GCRA", &gcra[..1]);
    strings("strings of 40 bytes, two GCRA", &gcra[..2]);

    println!("\n| a known key among 100,000, ns between two answers | median | p99 | p99.9 |");
    println!("|---|---|---|---|");
    for (name, flood) in [
        ("alone", Flood::None),
        ("another thread asks for known keys", Flood::Known),
        ("another thread floods with new keys", Flood::New),
    ] {
        let [median, p99, p999] = known_key(flood);
        println!("| {name} | {median} | {p99} | {p999} |");
    }
}

fn limiter<K: tower_sluice::rate_limit::Key + ?Sized>(
    quotas: &[Quota],
    time: &ManualClock,
) -> KeyedRateLimiter<K> {
    let builder = KeyedRateLimiter::builder(quotas[0]).clock(time);
    let builder = builder.max_keys(MILLION as usize);
    let more = quotas[1..].iter();
    let builder = more.fold(builder, |builder, quota| builder.quota(*quota));
    builder.build().expect("valid quotas")
}

fn integers(name: &str, quotas: &[Quota]) {
    row::<u64>(name, quotas, |limiter, key| limiter.check(&key).is_ok());
}

fn strings(name: &str, quotas: &[Quota]) {
    // Made before, so that neither their bytes nor their making counts.
    let keys: Vec<String> = (0..MILLION)
        .map(|key| format!("customer-{key:031}"))
        .collect();
    row::<str>(name, quotas, |limiter, key| {
        limiter.check(keys[key as usize].as_str()).is_ok()
    });
}

fn row<K: tower_sluice::rate_limit::Key + ?Sized>(
    name: &str,
    quotas: &[Quota],
    check: impl Fn(&KeyedRateLimiter<K>, u64) -> bool,
) {
    let time = Clock::manual();
    let (mut made, mut insert) = (None, Duration::ZERO);
    let counted = allocation_counter::measure(|| {
        let limiter = limiter::<K>(quotas, &time);
        let start = ThreadTime::now();
        for key in 0..MILLION {
            assert!(check(&limiter, key), "there is room and a fresh bucket");
        }
        insert = start.elapsed();
        made = Some(limiter);
    });
    let limiter = made.expect("it was made");
    assert_eq!(limiter.len() as u64, MILLION, "every key is there");
    time.advance(3_600 * SECOND);
    let start = ThreadTime::now();
    assert_eq!(limiter.sweep() as u64, MILLION, "every key is fresh");
    let sweep = start.elapsed();
    let each = |took: Duration| took.as_nanos() as f64 / MILLION as f64;
    println!(
        "| {name} | {:.1} | {:.0} | {:.0} |",
        counted.bytes_current as f64 / MILLION as f64,
        each(insert),
        each(sweep)
    );
}

#[derive(Clone, Copy, PartialEq)]
enum Flood {
    None,
    Known,
    New,
}

/// Median, 99th and 99.9th percentile of a million calls of one thread, in nanoseconds.
fn known_key(flood: Flood) -> [u64; 3] {
    const KNOWN: u64 = 100_000;
    let builder = KeyedRateLimiter::<u64>::builder(hourly()).max_keys(MILLION as usize);
    let limiter = builder.build().expect("valid quotas");
    for key in 0..KNOWN {
        let _ = limiter.check(&key);
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if flood != Flood::None {
            scope.spawn(|| {
                let mut next = KNOWN;
                while !over.load(Ordering::Relaxed) {
                    let key = if flood == Flood::New {
                        next
                    } else {
                        next % KNOWN
                    };
                    let _ = limiter.check(&key);
                    next += 1;
                }
            });
        }
        let mut rng = fastrand::Rng::with_seed(7);
        let mut took = Vec::with_capacity(MILLION as usize);
        let mut last = Instant::now();
        for _ in 0..MILLION {
            let _ = limiter.check(&rng.u64(..KNOWN));
            let now = Instant::now();
            took.push((now - last).as_nanos() as u64);
            last = now;
        }
        over.store(true, Ordering::Relaxed);
        took.sort_unstable();
        [500, 990, 999].map(|permille| took[took.len() * permille / 1_000])
    })
}
