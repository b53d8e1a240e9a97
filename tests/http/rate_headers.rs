//! What callers are told of their quota.

// The epoch form is of the wall clock.
#![allow(clippy::disallowed_types)]

use std::time::{Duration, SystemTime};

use axum::response::Response;
use futures_util::FutureExt;
use tower::{Layer, ServiceExt};
use tower_sluice::clock::Clock;
use tower_sluice::http::{self as sluice, RateHeaders};
use tower_sluice::rate_limit::{Quota, RateLimitLayer, RateLimiter};

use crate::over::{call, get};

fn number(response: &Response, name: &str) -> u64 {
    let mut values = response.headers().get_all(name).into_iter();
    let value = values.next().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(values.next(), None, "{name} is not doubled");
    value.to_str().expect("ASCII").parse().expect("a number")
}

fn algorithms(limit: u32) -> [Quota; 4] {
    let quota = Quota::per_minute(limit);
    [
        quota,
        quota.fixed_window(),
        quota.sliding_window(),
        quota.sliding_log(),
    ]
}

#[test]
fn h53_remaining_counts_down_to_zero_and_stays() {
    for quota in algorithms(3) {
        let limiter = RateLimiter::builder(quota)
            .clock(Clock::manual())
            .build()
            .expect("a valid quota");
        let layer = RateLimitLayer::from(limiter.clone())
            .headers(RateHeaders::new().three_fields().x_seconds())
            .respond_with(sluice::respond);
        for (status, remaining) in [(200, 2), (200, 1), (200, 0), (429, 0), (429, 0)] {
            let response = call(&layer, get(&[]));
            assert_eq!(response.status(), status, "{quota:?}");
            for name in ["ratelimit-remaining", "x-ratelimit-remaining"] {
                assert_eq!(number(&response, name), remaining, "{quota:?}");
            }
            let peeked = match limiter.peek() {
                Ok(allowed) => allowed.remaining(),
                Err(refusal) => refusal.remaining(),
            };
            assert_eq!(u64::from(peeked), remaining, "the handle agrees: {quota:?}");
        }
    }
}

#[test]
fn h53_a_cost_that_does_not_fit_leaves_remaining_as_it_is() {
    for quota in algorithms(3) {
        let layer = RateLimitLayer::new(quota)
            .clock(Clock::manual())
            .cost(|request: &http::Request<_>| request.headers().len() as u32)
            .headers(RateHeaders::new().three_fields())
            .respond_with(sluice::respond);
        let twice: [(&str, &[u8]); 2] = [("a", b""), ("b", b"")];
        assert_eq!(number(&call(&layer, get(&twice)), "ratelimit-remaining"), 1);
        let refused = call(&layer, get(&twice));
        assert_eq!(refused.status(), 429);
        assert_eq!(
            number(&refused, "ratelimit-remaining"),
            1,
            "a refusal spends nothing: {quota:?}"
        );
    }
}

const NOW: Duration = Duration::from_millis(1_800_000_000_250);

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + NOW
}

fn an_hour_later() -> SystemTime {
    now() + Duration::from_secs(3_600)
}

#[test]
fn h67_seconds_left_and_the_epoch_agree_and_only_one_follows_the_wall_clock() {
    for quota in algorithms(2) {
        let clock = Clock::manual();
        let limiter = RateLimiter::builder(quota)
            .clock(clock.clone())
            .build()
            .expect("a valid quota");
        let ask = |wall_clock| {
            let headers = RateHeaders::new().draft_11("api").three_fields();
            let layer = RateLimitLayer::from(limiter.clone())
                .headers(headers.x_epoch(wall_clock))
                .respond_with(sluice::respond);
            call(&layer, get(&[]))
        };
        let mut seconds_left = Vec::new();
        for wall_clock in [now, an_hour_later, now] {
            let response = ask(wall_clock);
            let left = number(&response, "ratelimit-reset");
            assert!(left <= 60, "never above the window: {left} s, {quota:?}");
            let wall_now = wall_clock().duration_since(SystemTime::UNIX_EPOCH);
            let wall_now = wall_now.expect("after 1970").as_secs_f64();
            let epoch = number(&response, "x-ratelimit-reset") as f64 - wall_now;
            let apart = epoch - left as f64;
            assert!(apart.abs() < 1.0, "{apart} s apart, {quota:?}");
            seconds_left.push(left);
        }
        assert_eq!(
            seconds_left[1], seconds_left[2],
            "a wall clock that jumps moves the epoch alone: {quota:?}"
        );
    }
}

#[test]
fn each_key_and_each_waiting_call_is_told_where_it_stands_itself() {
    let clock = Clock::manual();
    let layer = RateLimitLayer::keyed(Quota::per_minute(2), |request: &http::Request<_>| {
        request.headers()["client"].as_bytes().to_vec()
    })
    .clock(clock.clone())
    .headers(RateHeaders::new().three_fields())
    .respond_with(sluice::respond);
    for (client, remaining) in [(b"a", 1), (b"a", 0), (b"b", 1)] {
        let response = call(&layer, get(&[("client", client)]));
        assert_eq!(number(&response, "ratelimit-remaining"), remaining);
    }

    let limiter = RateLimiter::builder(Quota::per_minute(1))
        .clock(clock.clone())
        .build()
        .expect("a valid quota");
    let waiting = RateLimitLayer::from(limiter.clone())
        .wait(Duration::from_secs(90))
        .headers(RateHeaders::new().three_fields())
        .respond_with(sluice::respond);
    limiter.check().expect("the one of this minute");
    let service = waiting.layer(tower::service_fn(crate::over::ok));
    let mut answer = std::pin::pin!(service.oneshot(get(&[])));
    assert!(answer.as_mut().now_or_never().is_none(), "it waits");
    let refused = call(&waiting, get(&[]));
    assert_eq!(refused.status(), 429, "a second would wait too long");
    assert_eq!(number(&refused, "retry-after"), 120);
    clock.advance(Duration::from_secs(60));
    let Ok(response) = answer.now_or_never().expect("its turn has come");
    assert_eq!(
        number(&response, "ratelimit-remaining"),
        0,
        "told at its turn"
    );
    assert_eq!(number(&response, "ratelimit-reset"), 60);
}
