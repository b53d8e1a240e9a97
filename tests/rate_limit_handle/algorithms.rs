//! What each algorithm admits.

use tower_sluice::clock::Nanos;
use tower_sluice::rate_limit::{Algorithm, Quota, RateLimiter};

use super::support::alloc::allocations;
use super::{every_algorithm, greedy, manual, millis, secs};

#[test]
fn h16_calls_within_the_limit_are_never_refused_over_twenty_windows() {
    // tower-rs/tower#438: the state machine wrote over its own reset.
    let (limiter, time) = manual(Quota::per_second(3).fixed_window());
    for round in 0..20 {
        let first = limiter.check().expect("the first call of a window passes");
        assert_eq!(first.remaining(), 2, "round {round}: the window is new");
        for _ in 0..2 {
            limiter.check().expect("calls within the limit pass");
        }
        time.advance(millis(1_500));
    }
}

#[test]
fn h21_a_clock_that_steps_back_locks_nobody_out() {
    // ProfessionalWiki/MediaWiki-MCP-Server#557
    let (limiter, time) = manual(Quota::per_second(1).burst(3));
    time.set(Nanos::from(secs(100)));
    for _ in 0..3 {
        limiter.check().expect("the burst passes");
    }
    time.set(Nanos::from(secs(89)));
    let refusal = limiter
        .check()
        .expect_err("nothing is left, whatever the clock reads");
    assert_eq!(refusal.remaining(), 0, "tokens never go below 0");
    let wait = refusal.retry_after().expect("a wait is known");
    assert!(
        wait <= secs(3),
        "no wait longer than a full bucket's is quoted: {wait:?}"
    );
    time.set(Nanos::from(secs(103)));
    for _ in 0..3 {
        limiter.check().expect("three seconds on, three calls");
    }
    assert!(limiter.check().is_err(), "and no more than three");
}

#[test]
fn h21_stepping_forward_and_back_gives_no_second_burst() {
    let (limiter, time) = manual(Quota::per_second(1).burst(3));
    time.set(Nanos::from(secs(100)));
    let mut admitted = 0;
    for reading in [100, 200, 100, 200, 100, 200] {
        time.set(Nanos::from(secs(reading)));
        while limiter.check().is_ok() {
            admitted += 1;
        }
    }
    assert_eq!(admitted, 6, "one bucket at 100 s and one at 200 s");
}

#[test]
fn h26_what_passes_in_the_first_period_is_what_the_algorithm_promises() {
    // boinkor-net/governor#219
    let minute = secs(60);
    let count = |quota| {
        let (limiter, time) = manual(quota);
        greedy(&limiter, &time, minute)
    };
    let quota = Quota::per_minute(60);
    assert_eq!(
        count(quota),
        119,
        "a burst of 60 and what refills in a minute"
    );
    assert_eq!(count(quota.burst(1)), 60, "evenly spaced");
    assert_eq!(count(quota.fixed_window()), 60, "exactly the limit");
    assert_eq!(count(quota.sliding_log()), 60, "exactly the limit");
    assert_eq!(count(quota.sliding_window()), 60, "a first window is exact");

    let (limiter, time) = manual(quota.burst(1));
    let admitted = greedy(&limiter, &time, minute) + u64::from(limiter.check().is_ok());
    assert_eq!(admitted, 61, "61 at most, both ends of the minute included");
}

#[test]
fn h29_around_a_window_edge_each_algorithm_admits_what_it_states() {
    // express-rate-limit/express-rate-limit#207
    let count = |quota: Quota| {
        let (limiter, time) = manual(quota);
        let mut admitted = 0;
        for at in [59_900, 60_100] {
            time.set(Nanos::from(millis(at)));
            admitted += (0..5).filter(|_| limiter.check().is_ok()).count();
        }
        admitted
    };
    let quota = Quota::per_minute(5);
    assert_eq!(
        count(quota),
        5,
        "a token bucket of burst 5 has refilled nothing yet"
    );
    assert_eq!(count(quota.sliding_log()), 5, "the log counts both");
    assert_eq!(
        count(quota.fixed_window()),
        5,
        "a window from the first call holds both"
    );
    assert_eq!(
        count(quota.fixed_window().aligned()),
        10,
        "two windows, as documented"
    );
    assert_eq!(
        count(quota.sliding_window().aligned()),
        6,
        "the limit and one more: 5 × 0.2 s / 60 s, rounded up, as stated"
    );
}

#[test]
fn h55_a_flooded_log_keeps_no_more_than_its_limit() {
    // levy-street/world-of-claudecraft#128
    let (limiter, time) = manual(Quota::per_minute(100).sliding_log());
    let (_, filled) = allocations(|| while limiter.check().is_ok() {});
    assert!(
        filled <= 2 * 100 * 16 + 64,
        "grown by doubling up to 100 entries: {filled} bytes"
    );
    // A million in a minute; fewer without optimizations, where each takes a while.
    let calls = if cfg!(debug_assertions) {
        100_000
    } else {
        1_000_000
    };
    let (count, _) = allocations(|| {
        for _ in 0..calls {
            time.advance(secs(59) / calls);
            assert!(limiter.check().is_err(), "the minute is not over");
        }
    });
    assert_eq!(count, 0, "a refused call is not kept");
    time.advance(secs(60));
    let (count, _) = allocations(|| while limiter.check().is_ok() {});
    assert_eq!(count, 0, "the next hundred use the room of the last");
}

#[test]
fn h55_a_log_that_would_not_fit_in_memory_is_not_built() {
    let error = Quota::with_period(u32::MAX, secs(60))
        .try_sliding_log()
        .unwrap_err();
    assert_eq!(error.field(), "limit");
    assert!(
        error.allowed().contains("65,536"),
        "the error names the highest limit"
    );
    let (count, _) = allocations(|| RateLimiter::new(Quota::per_minute(65_536).sliding_log()));
    let (small, _) = allocations(|| RateLimiter::new(Quota::per_minute(1).sliding_log()));
    assert_eq!(count, small, "nothing is allocated ahead");
}

#[test]
fn h58_credit_saved_while_idle_is_spent_once() {
    // uber-go/ratelimit#119
    for burst in [1_u32, 3] {
        for idle in [30, 10, 1] {
            let (limiter, time) = manual(Quota::per_second(1).burst(burst));
            limiter.check().expect("the first call passes");
            time.advance(secs(idle));
            let admitted = (0..1_000)
                .filter(|_| {
                    time.advance(millis(20));
                    limiter.check().is_ok()
                })
                .count();
            assert!(
                admitted <= burst as usize + 20,
                "burst {burst}, idle {idle} s: {admitted} in 20 s"
            );
            assert!(admitted >= 20, "the rate itself is never withheld");
        }
    }
}

#[test]
fn h62_a_new_limiter_admits_exactly_its_limit() {
    // redisson/redisson#2072
    for quota in every_algorithm(7, secs(60)) {
        let (limiter, _time) = manual(quota);
        let refusal = limiter.check_n(8).expect_err("more than is ever admitted");
        assert_eq!(refusal.retry_after(), None, "{quota}: no wait helps");
        let admitted = (0..20).filter(|_| limiter.check().is_ok()).count();
        assert_eq!(admitted, 7, "{quota}: the refused call took nothing");
    }
}

#[test]
fn remaining_counts_down_to_zero_and_agrees_with_peek_and_snapshot() {
    for quota in every_algorithm(3, secs(10)) {
        let (limiter, _time) = manual(quota);
        let mut seen = Vec::new();
        for _ in 0..5 {
            let remaining = match limiter.check() {
                Ok(allowed) => allowed.remaining(),
                Err(refusal) => refusal.remaining(),
            };
            assert_eq!(
                limiter.snapshot().remaining(),
                remaining,
                "{quota}: they agree"
            );
            seen.push(remaining);
        }
        assert_eq!(seen, [2, 1, 0, 0, 0], "{quota}");
    }
}

#[test]
fn a_cost_above_what_is_left_leaves_what_is_left() {
    for quota in every_algorithm(3, secs(10)) {
        let (limiter, _time) = manual(quota);
        limiter.check_n(2).expect("two fit");
        let refusal = limiter.check_n(2).expect_err("two do not fit any more");
        assert_eq!(refusal.remaining(), 1, "{quota}: one call would");
        assert!(limiter.check().is_ok(), "{quota}: and does");
    }
}

#[test]
fn a_cost_of_zero_asks_and_spends_nothing() {
    for quota in every_algorithm(1, secs(10)) {
        let (limiter, _time) = manual(quota);
        assert_eq!(limiter.check_n(0).map(|allowed| allowed.remaining()), Ok(1));
        limiter.check().expect("nothing was spent");
        assert!(
            limiter.check_n(0).is_ok(),
            "{quota}: nothing fits where nothing is left"
        );
    }
}

#[test]
fn peeking_spends_nothing_and_sees_what_a_check_would() {
    for quota in every_algorithm(2, secs(10)) {
        let (limiter, _time) = manual(quota);
        for _ in 0..5 {
            assert_eq!(
                limiter.peek().map(|allowed| allowed.remaining()),
                Ok(2),
                "{quota}"
            );
        }
        limiter.check_n(2).expect("nothing was spent");
        let peeked = limiter.peek().expect_err("spent");
        assert_eq!(Err(peeked), limiter.check(), "{quota}: the same refusal");
    }
}

#[test]
fn the_limit_is_in_the_state_and_not_in_the_clone() {
    let (limiter, _time) = manual(Quota::per_second(3));
    let clones = vec![limiter.clone(); 3];
    for clone in &clones {
        clone.check().expect("three calls over three clones");
    }
    assert!(limiter.check().is_err(), "they share one state");
}

#[test]
fn the_algorithm_of_a_quota_can_be_read_back() {
    let algorithms = every_algorithm(1, secs(1)).map(|quota| quota.algorithm());
    let expected = [
        Algorithm::Gcra,
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
    ];
    assert_eq!(algorithms, expected);
}

#[test]
fn admitting_and_refusing_allocate_nothing() {
    for quota in every_algorithm(100, secs(1)) {
        let (limiter, _time) = manual(quota);
        // A log grows to its limit once.
        while limiter.check().is_ok() {}
        let (limiter, time) = (limiter, _time);
        time.advance(secs(10));
        let (count, _) = allocations(|| {
            for _ in 0..200 {
                let _ = limiter.check();
            }
        });
        assert_eq!(count, 0, "{quota}");
    }
}
