//! New quotas for all keys, and quotas of a key's own.

use std::time::Duration;

use tower_sluice::clock::{Clock, ManualClock};
use tower_sluice::rate_limit::{KeyedRateLimiter, Quota, RateLimitedReason};

const SECOND: Duration = Duration::from_secs(1);

fn limiter(quota: Quota, time: &ManualClock) -> KeyedRateLimiter<str> {
    KeyedRateLimiter::builder(quota)
        .clock(time)
        .build()
        .unwrap()
}

fn drain(limiter: &KeyedRateLimiter<str>, key: &str) -> usize {
    std::iter::from_fn(|| limiter.check(key).ok())
        .take(10_000)
        .count()
}

#[test]
fn h46_a_new_quota_is_in_force_for_old_keys_and_new_ones_at_once() {
    let time = Clock::manual();
    for quota in [
        Quota::per_second(100),
        Quota::per_second(3),
        Quota::with_period(7, 13 * SECOND),
    ] {
        let clients = limiter(quota, &time);
        time.advance(SECOND);
        assert_eq!(drain(&clients, "a"), quota.limit() as usize);
        clients.check("b").unwrap();
        clients.set_quota(Quota::per_second(1)).unwrap();
        assert_eq!(clients.quota(), Quota::per_second(1));
        assert_eq!(drain(&clients, "a"), 0, "no free burst");
        assert!(
            drain(&clients, "b") <= 1,
            "no key keeps more than the new burst"
        );
        assert_eq!(drain(&clients, "new"), 1);
        time.advance(SECOND);
        for key in ["a", "b", "new"] {
            assert_eq!(drain(&clients, key), 1, "{key} under {quota}: one a second");
        }
    }
}

#[test]
fn a_key_that_changes_its_quota_is_told_the_wait_that_admits_it() {
    let quotas = [
        Quota::per_minute(1),
        Quota::per_second(100).burst(1),
        Quota::with_period(7, 13 * SECOND),
    ];
    for store in quotas {
        for (before, after) in [(0, 1), (1, 0), (0, 2), (2, 1), (1, 2), (2, 0)] {
            let time = Clock::manual();
            let clients = limiter(store, &time);
            let ask = |tier: usize| match quotas[tier] == store {
                true => clients.check("a"),
                false => clients.check_own("a", 1, &quotas[tier]),
            };
            while ask(before).is_ok() {}
            let Err(refusal) = ask(after) else { continue };
            let wait = refusal.retry_after().expect("a wait that helps");
            time.advance(wait - Duration::from_nanos(3));
            assert!(
                ask(after).is_err(),
                "{store}, {before} to {after}: not before"
            );
            time.advance(Duration::from_nanos(3));
            assert!(
                ask(after).is_ok(),
                "{store}, {before} to {after}: after {wait:?}"
            );
        }
    }
}

#[test]
fn a_key_put_under_a_lower_limit_starts_the_next_window_whole() {
    let time = Clock::manual();
    let (higher, lower) = (Quota::per_minute(100), Quota::per_minute(5));
    let clients = limiter(lower.fixed_window(), &time);
    clients
        .check_own("paid", 100, &higher.fixed_window())
        .unwrap();
    assert_eq!(drain(&clients, "paid"), 0, "its window is spent");
    time.advance(60 * SECOND);
    assert_eq!(drain(&clients, "paid"), 5, "it owes nothing");
    time.advance(60 * SECOND);
    assert_eq!(clients.sweep(), 1, "nor does it stay");
}

#[test]
fn setting_the_same_quota_again_changes_nothing() {
    let time = Clock::manual();
    for quota in [
        Quota::per_second(3),
        Quota::per_second(10),
        Quota::per_second(3).fixed_window(),
        Quota::per_second(3).sliding_window(),
    ] {
        let clients = limiter(quota, &time);
        for n in 0..200_u32 {
            clients.set_quota(quota).unwrap();
            let expected = n < quota.limit();
            assert_eq!(
                clients.check("a").is_ok(),
                expected,
                "call {n} under {quota}"
            );
        }
        time.advance(5 * SECOND);
    }
}

#[test]
fn a_quota_that_would_make_states_mean_nothing_is_refused_and_changes_nothing() {
    let time = Clock::manual();
    let clients = limiter(Quota::per_second(3), &time);
    let error = clients
        .set_quota(Quota::per_second(3).fixed_window())
        .unwrap_err();
    assert_eq!(error.field(), "algorithm");
    let sliding = limiter(Quota::per_second(3).sliding_window(), &time);
    let error = sliding
        .set_quota(Quota::per_minute(3).sliding_window())
        .unwrap_err();
    assert_eq!(error.field(), "period");
    assert_eq!(sliding.quota(), Quota::per_second(3).sliding_window());
    let own = Quota::per_minute(3).sliding_window();
    let refusal = sliding.check_own("a", 1, &own).unwrap_err();
    assert_eq!(refusal.reason(), RateLimitedReason::QuotaMismatch);
    let refusal = clients.check_own("a", 1, &own).unwrap_err();
    assert_eq!(refusal.reason(), RateLimitedReason::QuotaMismatch);
    assert!(clients.is_empty() && sliding.is_empty());
}

#[test]
fn a_keys_own_quota_comes_with_each_call() {
    let time = Clock::manual();
    for own in [
        Quota::per_second(5),
        Quota::per_second(7),
        Quota::per_minute(7),
    ] {
        let clients = limiter(Quota::per_second(3), &time);
        time.advance(SECOND);
        for n in 0..20 {
            let admitted = clients.check_own("a", 1, &own).is_ok();
            assert_eq!(admitted, n < own.limit(), "call {n} under {own}");
        }
        let wait = clients
            .check_own("a", 1, &own)
            .unwrap_err()
            .retry_after()
            .unwrap();
        time.advance(wait - Duration::from_nanos(1));
        assert!(
            clients.check_own("a", 1, &own).is_err(),
            "a nanosecond early is early"
        );
        time.advance(Duration::from_nanos(1));
        assert!(clients.check_own("a", 1, &own).is_ok(), "exactly then");
        clients.set_quota(Quota::per_second(100)).unwrap();
        assert!(
            clients.check_own("a", 1, &own).is_err(),
            "the store's quota is not its own"
        );
        time.advance(3_600 * SECOND);
        clients.check("other").unwrap();
        assert_eq!(
            clients.sweep(),
            1,
            "a key under its own quota goes when it is fresh"
        );
    }
}

#[test]
fn a_key_that_changes_between_its_own_quota_and_the_stores_gets_no_free_burst() {
    let time = Clock::manual();
    let clients = limiter(Quota::per_second(3), &time);
    let own = Quota::per_second(7);
    time.advance(SECOND);
    let mut admitted = 0;
    for n in 0..1_000 {
        admitted += usize::from(if n % 2 == 0 {
            clients.check("a").is_ok()
        } else {
            clients.check_own("a", 1, &own).is_ok()
        });
    }
    assert!(
        admitted <= 7,
        "never more than the larger burst, not the sum: {admitted}"
    );
    time.advance(SECOND);
    assert!(clients.check("a").is_ok(), "and it refills");
}

#[test]
fn h50_keyed_two_limiters_with_one_key_share_nothing() {
    let time = Clock::manual();
    let minute = limiter(Quota::per_minute(5).fixed_window(), &time);
    let day = limiter(
        Quota::with_period(50, 86_400 * SECOND).fixed_window(),
        &time,
    );
    for _ in 0..5 {
        minute.check("client").unwrap();
        day.check("client").unwrap();
    }
    assert!(minute.check("client").is_err());
    assert_eq!(day.peek("client").unwrap().remaining(), 45);
}

#[test]
fn a_new_quota_gives_nothing_to_a_clock_that_then_goes_back() {
    // The same as a call that read the clock before the quota was replaced and decides after.
    let gcra = |limit, period| Quota::with_period(limit, period);
    for [quota, new] in [
        [gcra(3, SECOND), gcra(3, 2 * SECOND)],
        [gcra(3, SECOND), gcra(4, 2 * SECOND)].map(Quota::fixed_window),
        [gcra(3, SECOND), gcra(4, SECOND)].map(Quota::sliding_window),
    ] {
        for max_keys in [1, 100] {
            let time = Clock::manual();
            let clients = KeyedRateLimiter::<str>::builder(quota)
                .max_keys(max_keys)
                .clock(&time)
                .build()
                .unwrap();
            time.advance(10 * SECOND);
            assert_eq!(drain(&clients, "a"), 3);
            assert_eq!(drain(&clients, "b"), 3, "its own or the shared state");
            let spent_at = time.now();
            time.advance(10 * SECOND);
            clients.set_quota(new).unwrap();
            time.set(spent_at);
            let early = ["a", "b"].map(|key| drain(&clients, key));
            time.advance(10 * SECOND);
            for (key, early) in ["a", "b"].into_iter().zip(early) {
                let all = early + drain(&clients, key);
                assert!(
                    all <= new.limit() as usize,
                    "{new}, {key}, {max_keys} keys: {all}"
                );
            }
        }
    }
}
