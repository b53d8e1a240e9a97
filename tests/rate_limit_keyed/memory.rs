//! What keys cost, and that it is given back.

use std::time::Duration;

use tower_sluice::clock::{Clock, ManualClock};
use tower_sluice::rate_limit::{Key, KeyedRateLimiter, Quota};

use crate::support::alloc::allocations;

const SECOND: Duration = Duration::from_secs(1);

fn limiter<K: Key + ?Sized>(max_keys: usize, time: &ManualClock) -> KeyedRateLimiter<K> {
    KeyedRateLimiter::builder(Quota::per_second(10))
        .max_keys(max_keys)
        .clock(time)
        .build()
        .unwrap()
}

/// Bytes held after `work`, by the allocator's count.
fn held<T>(work: impl FnOnce() -> T) -> (T, i64) {
    let mut made = None;
    let info = allocation_counter::measure(|| made = Some(work()));
    (made.unwrap(), info.bytes_current)
}

/// Bytes per key of `keys` integers and as many strings of 40 bytes, all in.
fn bytes_per_key(keys: u64) -> (f64, f64) {
    let time = Clock::manual();
    let (numbers, of_numbers) = held(|| {
        let limiter = limiter::<u64>(keys as usize, &time);
        for key in 0..keys {
            limiter.check(&key).unwrap();
        }
        limiter
    });
    assert_eq!(numbers.len() as u64, keys);
    let (strings, of_strings) = held(|| {
        let limiter = limiter::<str>(keys as usize, &time);
        for key in 0..keys {
            limiter.check(&*format!("{key:040}")).unwrap();
        }
        limiter
    });
    assert_eq!(strings.len() as u64, keys);
    let stats = numbers.stats().bytes as f64 / of_numbers as f64;
    assert!(
        (0.98..=1.02).contains(&stats),
        "what the limiter says of itself is so: {stats}"
    );
    let per_key = |bytes: i64| bytes as f64 / keys as f64;
    (per_key(of_numbers), per_key(of_strings))
}

#[test]
fn a_hundred_thousand_keys_take_no_more_than_36_and_48_bytes_each() {
    let (numbers, strings) = bytes_per_key(100_000);
    assert!(
        numbers <= 36.0 && strings <= 48.0,
        "{numbers} and {strings} bytes"
    );
}

#[test]
#[ignore = "a million keys: run in release for the figures in the docs"]
fn a_million_keys_take_no_more_than_36_and_48_bytes_each() {
    for keys in [500_000, 700_000, 850_000, 1_000_000, 1_048_576] {
        let (numbers, strings) = bytes_per_key(keys);
        println!("{keys} keys: {numbers:.1} bytes a `u64`, {strings:.1} bytes a string of 40");
        assert!(
            numbers <= 36.0 && strings <= 48.0,
            "{numbers} and {strings} bytes"
        );
    }
}

#[test]
fn a_known_key_costs_no_allocation() {
    let time = Clock::manual();
    let numbers = limiter::<u64>(1_000, &time);
    let strings = limiter::<String>(1_000, &time);
    let pairs = limiter::<(String, u32)>(1_000, &time);
    let pair = ("orders".to_owned(), 7);
    for key in 0..500 {
        numbers.check(&key).unwrap();
    }
    strings.check("orders").unwrap();
    pairs.check(&pair).unwrap();
    let counted = allocations(|| {
        for _ in 0..1_000 {
            let _ = (
                numbers.check(&7),
                strings.check("orders"),
                pairs.check(&pair),
            );
            let _ = (numbers.peek(&7), strings.peek("nobody"));
        }
    });
    assert_eq!(counted, (0, 0), "admitted or refused");
}

/// H40 at the size given: one call of each key, a minute of silence, then traffic of one key.
fn keys_of_gone_clients_go(keys: u64) {
    let time = Clock::manual();
    let clients = limiter::<u64>(keys as usize, &time);
    let empty = clients.stats().bytes;
    for key in 0..keys {
        clients.check(&key).unwrap();
    }
    let full = clients.stats().bytes - empty;
    time.advance(60 * SECOND);
    let over = keys / 200;
    for key in 0..over {
        for _ in 0..10 {
            clients.check(&key).unwrap();
        }
    }
    for _ in 0..keys {
        let _ = clients.check(&0);
    }
    let left = clients.len() as u64;
    assert!(
        left >= over,
        "those over their limit are kept: {left} of {over}"
    );
    assert!(left < keys / 100, "{left} of {keys} keys are left");
    assert!(
        (0..over).all(|key| clients.check(&key).is_err()),
        "with their counts"
    );
    let now = clients.stats().bytes - empty;
    assert!(
        now < full / 20,
        "memory is really given back: {now} of {full} bytes"
    );
}

#[test]
fn h40_keys_of_gone_clients_go_and_their_memory_with_them() {
    keys_of_gone_clients_go(50_000);
}

#[test]
#[ignore = "the size of the report: a million keys, in release"]
fn h40_a_million_keys_of_gone_clients_go() {
    keys_of_gone_clients_go(1_000_000);
}

#[test]
fn h40_the_last_handle_takes_everything_with_it() {
    let time = Clock::manual();
    let ((), left) = held(|| {
        let clients = limiter::<u64>(10_000, &time);
        for key in 0..5_000 {
            clients.clone().check(&key).unwrap();
        }
    });
    assert_eq!(left, 0, "no task, no thread, no leak");
}

#[test]
fn a_flood_of_new_keys_resets_nobody_and_grows_nothing() {
    let time = Clock::manual();
    let clients = limiter::<u64>(10_000, &time);
    let victim = u64::MAX;
    let mut most = 0;
    for second in 0..20_u64 {
        let mut admitted = 0;
        for key in 0..20_000 {
            let _ = clients.check(&(second * 20_000 + key));
            if key % 100 == 0 {
                admitted += u32::from(clients.check(&victim).is_ok());
            }
        }
        assert!(
            admitted <= if second == 0 { 10 } else { 11 },
            "{admitted} in a second"
        );
        most = most.max(clients.stats().bytes);
        time.advance(SECOND);
    }
    assert!(clients.len() <= 10_000, "the cap is hard");
    assert!(
        most < 36 * 10_000 + 128 * 1_024 + 10_000,
        "{most} bytes at most"
    );
}
