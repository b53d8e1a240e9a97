//! The cap on keys, and what becomes of those beyond it.

use std::time::Duration;

use tower_sluice::WhenFull;
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{Hashed, KeyedRateLimiter, Quota, RateLimitedReason};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn h42_a_full_store_forgets_nobody() {
    let time = Clock::manual();
    let clients = KeyedRateLimiter::<u64>::builder(Quota::per_minute(5))
        .max_keys(1_000)
        .when_full(WhenFull::Refuse)
        .clock(&time)
        .build()
        .unwrap();
    for _ in 0..5 {
        clients.check(&0).unwrap();
    }
    let mut placed = Vec::new();
    for key in 1..=5_000 {
        match clients.check(&key) {
            Ok(allowed) => {
                assert_eq!(allowed.remaining(), 4);
                placed.push(key);
            }
            Err(refusal) => assert_eq!(refusal.reason(), RateLimitedReason::StoreFull),
        }
        assert!(clients.len() <= 1_000, "the cap is hard");
    }
    assert_eq!(placed.len(), 999);
    let victim = clients.check(&0).unwrap_err();
    assert_eq!(victim.reason(), RateLimitedReason::Spent, "still refused");
    for key in &placed {
        assert_eq!(
            clients.check(key).unwrap().remaining(),
            3,
            "each keeps its count"
        );
    }
    let stats = clients.stats();
    assert_eq!(
        (stats.evicted, stats.refused_new, stats.overflowed),
        (0, 4_001, 0)
    );

    time.advance(24 * SECOND);
    assert!(
        clients.check(&9_999).is_ok(),
        "room is found once others are fresh"
    );
    assert!(
        clients.check(&0).is_ok(),
        "12 s a token, and the victim's time runs as ever"
    );
    assert!(clients.stats().evicted > 0);
}

#[test]
fn keys_without_a_place_share_one_state_by_default() {
    let time = Clock::manual();
    let clients = KeyedRateLimiter::<u64>::builder(Quota::per_minute(5))
        .max_keys(10)
        .clock(&time)
        .build()
        .unwrap();
    for key in 0..10 {
        clients.check(&key).unwrap();
    }
    let admitted = (10..1_000).filter(|key| clients.check(key).is_ok()).count();
    assert_eq!(admitted, 5, "together what one key would be");
    assert_eq!(
        clients.check(&7).unwrap().remaining(),
        3,
        "those with a place have their own"
    );
    assert_eq!((clients.len(), clients.stats().overflowed), (10, 990));
}

#[test]
fn h44_empty_and_odd_keys_are_keys_and_long_ones_take_no_more_room() {
    let clients = KeyedRateLimiter::<str>::builder(Quota::per_minute(1))
        .max_keys(2)
        .when_full(WhenFull::Refuse)
        .build()
        .unwrap();
    clients
        .check("")
        .expect("the empty key is a key of its own");
    assert_eq!(
        clients.check("").unwrap_err().reason(),
        RateLimitedReason::Spent
    );
    let long = "x".repeat(1_000_000);
    clients.check(&long).unwrap();
    let bytes = clients.stats().bytes;
    for key in ["one", "ONE", "o\0ne", "\0", "three"] {
        assert_eq!(
            clients.check(key).unwrap_err().reason(),
            RateLimitedReason::StoreFull
        );
    }
    assert_eq!(clients.len(), 2);
    assert_eq!(clients.stats().bytes, bytes);
    assert!(
        bytes < 2_000,
        "a key of a megabyte takes what any key takes: {bytes}"
    );

    let roomy = KeyedRateLimiter::<str>::new(Quota::per_minute(1));
    for key in ["", "one", "ONE", "o\0ne", "\0", &long, &long[1..]] {
        roomy.check(key).expect("all differ");
    }
}

#[test]
fn what_cannot_be_admitted_takes_no_place() {
    let clients = KeyedRateLimiter::<u64>::builder(Quota::per_minute(5))
        .build()
        .unwrap();
    let refusal = clients.check_n(&1, 6).unwrap_err();
    assert_eq!(refusal.reason(), RateLimitedReason::CostAboveBurst);
    assert_eq!(refusal.retry_after(), None);
    clients
        .check_n(&1, 0)
        .expect("a cost of 0 is always admitted");
    clients.peek(&1).unwrap();
    assert!(!clients.reset(&1));
    assert!(clients.is_empty(), "asking is not taking");
}

#[test]
fn an_operator_can_reset_one_key() {
    let clients = KeyedRateLimiter::<Hashed<(u8, &str)>>::new(Quota::per_hour(1));
    let (one, two) = (Hashed((1, "a")), Hashed((2, "a")));
    clients.check(&one).unwrap();
    clients.check(&two).unwrap();
    assert!(clients.reset(&one));
    assert!(clients.check(&one).is_ok());
    assert!(clients.check(&two).is_err(), "and no other");
}

#[test]
fn what_cannot_be_built_is_a_typed_error() {
    let builder = || KeyedRateLimiter::<u64>::builder(Quota::per_second(1));
    let error = builder().max_keys(0).build().unwrap_err();
    assert_eq!((error.field(), error.value()), ("max_keys", "0"));
    let error = builder().max_keys(usize::MAX).build().unwrap_err();
    assert_eq!(error.field(), "max_keys");
    let log = Quota::per_second(1).sliding_log();
    let error = KeyedRateLimiter::<u64>::builder(log).build().unwrap_err();
    assert_eq!(error.field(), "algorithm");
}
