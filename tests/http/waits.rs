//! What a refused caller is told to wait.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::{Request, StatusCode, header};
use proptest::prelude::*;
use tower_sluice::clock::Clock;
use tower_sluice::http as sluice;
use tower_sluice::rate_limit::{Quota, RateLimitLayer, RateLimiter};

use crate::over::{call, get};

fn retry_after(response: &Response) -> u64 {
    let value = response.headers()[header::RETRY_AFTER].to_str();
    value.expect("ASCII").parse().expect("a whole number")
}

const SECOND: Duration = Duration::from_secs(1);

proptest! {
    #[test]
    fn h14_waiting_exactly_retry_after_admits(
        algorithm in 0..4,
        limit in 1_u32..6,
        period_ms in 1_u64..90_000,
        offset_ms in prop::sample::select(vec![0_u64, 1, 500, 999]),
        gaps_ms in prop::collection::vec(0_u64..3_000, 1..20),
    ) {
        let quota = Quota::with_period(limit, Duration::from_millis(period_ms));
        let quota = match algorithm {
            0 => quota,
            1 => quota.fixed_window(),
            2 => quota.sliding_window(),
            _ => quota.sliding_log(),
        };
        let clock = Clock::manual();
        let layer = RateLimitLayer::new(quota)
            .clock(clock.clone())
            .respond_with(sluice::respond);
        clock.advance(Duration::from_millis(offset_ms));
        for gap in gaps_ms {
            let response = call(&layer, get(&[]));
            if response.status() == StatusCode::TOO_MANY_REQUESTS {
                let wait = retry_after(&response);
                prop_assert!(wait >= 1, "never 0");
                let window = Duration::from_millis(period_ms);
                prop_assert!(Duration::from_secs(wait) < window + SECOND, "{wait} s of {window:?}");
                clock.advance(Duration::from_secs(wait));
                let again = call(&layer, get(&[]));
                prop_assert_eq!(again.status(), StatusCode::OK, "waited {} s", wait);
            }
            clock.advance(Duration::from_millis(gap));
        }
    }
}

#[test]
fn h17_a_sub_second_wait_is_told_as_one_second_and_kept_exactly() {
    let clock = Clock::manual();
    let limiter = RateLimiter::builder(Quota::per_second(5).burst(1))
        .clock(clock.clone())
        .build()
        .expect("a valid quota");
    let layer = RateLimitLayer::from(limiter.clone())
        .respond_with(sluice::Responder::new().retry_after_ms());
    assert_eq!(call(&layer, get(&[])).status(), StatusCode::OK);
    let refused = call(&layer, get(&[]));
    assert_eq!(retry_after(&refused), 1, "never 0");
    assert_eq!(refused.headers()["retry-after-ms"], "200");
    let error = limiter.check().expect_err("still spent");
    assert_eq!(
        error.retry_after(),
        Some(Duration::from_millis(200)),
        "the typed error is exact"
    );
}

#[test]
fn h17_true_waits_are_rounded_up_to_whole_seconds() {
    for (wait, told) in [
        (1, 1),
        (999_000_000, 1),
        (1_000_000_000, 1),
        (1_001_000_000, 2),
    ] {
        let clock = Clock::manual();
        let period = Duration::from_secs(5);
        let layer = RateLimitLayer::new(Quota::with_period(1, period))
            .clock(clock.clone())
            .respond_with(sluice::respond);
        assert_eq!(call(&layer, get(&[])).status(), StatusCode::OK);
        clock.advance(period - Duration::from_nanos(wait));
        let refused = call(&layer, get(&[]));
        assert_eq!(retry_after(&refused), told, "a true wait of {wait} ns");
    }
}

/// The waits told to 1,000 clients, each of which has spent its window of 60 s when it asks at
/// `at`.
fn told_at(at: Duration, responder: sluice::Responder) -> BTreeSet<u64> {
    let clock = Clock::manual();
    let key = |request: &Request<Body>| request.headers()["client"].to_str().unwrap().to_owned();
    let layer = RateLimitLayer::keyed(Quota::per_minute(1).fixed_window(), key)
        .clock(clock.clone())
        .respond_with(responder);
    let names: Vec<_> = (0..1_000)
        .map(|client| format!("client-{client}"))
        .collect();
    let ask = |name: &String| call(&layer, get(&[("client", name.as_bytes())]));
    for name in &names {
        assert_eq!(ask(name).status(), StatusCode::OK);
    }
    clock.advance(at);
    names.iter().map(|name| retry_after(&ask(name))).collect()
}

#[test]
fn h54_jitter_spreads_retry_after_and_never_shortens_it() {
    let span = Duration::from_secs(10);
    let spread = sluice::Responder::new().retry_after_jitter(span);
    assert_eq!(
        told_at(Duration::from_secs(30), spread.clone()),
        (30..=40).collect(),
        "from the true wait to the end of the span"
    );
    assert_eq!(
        told_at(Duration::from_millis(30_500), spread),
        (30..=39).collect(),
        "29.5 s: never below it, none above 39.5 s"
    );
    let plain = sluice::Responder::new;
    assert_eq!(
        told_at(Duration::from_secs(30), plain()),
        BTreeSet::from([30]),
        "without jitter all are told the same"
    );
    assert_eq!(
        told_at(Duration::from_millis(30_001), plain()),
        BTreeSet::from([30])
    );
}
