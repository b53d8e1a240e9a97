//! Limiters by name.

use tower::{Layer, ServiceExt, service_fn};
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{Quota, RateLimitLayer, RateLimited, RateLimiter, RateLimiters};

use crate::support::strict::{Echo, NotWell};

#[tokio::test]
async fn h49_a_layer_made_for_each_request_counts_by_the_limiter_of_its_name() {
    let limiters = RateLimiters::with_clock(Clock::manual());
    let quota = Quota::per_minute(5);
    let per_request = service_fn(|n: u32| {
        let limiter = limiters.get_or_create("search", quota).unwrap();
        RateLimitLayer::from(limiter).layer(Echo).oneshot(n)
    });
    let mut admitted = 0;
    for n in 0..20 {
        match per_request.oneshot(n).await {
            Ok(_) => admitted += 1,
            Err(error) => assert_eq!(error.refused().and_then(RateLimited::name), Some("search")),
        }
    }
    assert_eq!(admitted, 5, "of 20, as if the limiter had been kept");

    let fresh = service_fn(|n: u32| RateLimitLayer::new(quota).layer(Echo).oneshot(n));
    for n in 0..20 {
        let answer: Result<u32, tower_sluice::Error<RateLimited, NotWell>> = fresh.oneshot(n).await;
        answer.expect("a limiter made anew for each request has no history");
    }
}

#[test]
fn h49_a_name_with_another_quota_is_a_typed_error_and_changes_nothing() {
    let limiters = RateLimiters::new();
    let limiter = limiters
        .get_or_create("search", Quota::per_minute(5))
        .unwrap();
    for quota in [
        Quota::per_minute(6),
        Quota::per_minute(5).burst(1),
        Quota::per_minute(5).fixed_window(),
    ] {
        let error = limiters.get_or_create("search", quota).unwrap_err();
        assert_eq!(error.field(), "quota");
    }
    assert_eq!(limiters.len(), 1);
    limiter.set_quota(Quota::per_minute(50)).unwrap();
    limiters
        .get_or_create("search", Quota::per_minute(5))
        .expect("who asks by the old quota need not know of an operator's change");
}

#[test]
fn limiters_are_added_found_and_removed_by_name() {
    let limiters = RateLimiters::new();
    let both = RateLimiter::builder(Quota::per_second(10))
        .quota(Quota::per_hour(1_000))
        .name("both")
        .build()
        .unwrap();
    limiters.insert(both.clone()).unwrap();
    assert_eq!(limiters.insert(both).unwrap_err().field(), "name");
    let nameless = RateLimiter::new(Quota::per_second(1));
    assert_eq!(limiters.insert(nameless).unwrap_err().field(), "name");
    let error = limiters
        .get_or_create("both", Quota::per_second(10))
        .unwrap_err();
    assert_eq!(error.field(), "quota", "it has one more");
    assert!(limiters.contains("both") && limiters.get("other").is_none());
    assert_eq!(limiters.iter().count(), 1);
    let kept = limiters.remove("both").unwrap();
    assert!(limiters.is_empty() && kept.check().is_ok(), "handles go on");
}

#[test]
fn a_registry_does_not_grow_without_bound() {
    let limiters = RateLimiters::new();
    for n in 0..10_000 {
        limiters
            .get_or_create(format!("client {n}"), Quota::per_second(1))
            .unwrap();
    }
    let error = limiters
        .get_or_create("one more", Quota::per_second(1))
        .unwrap_err();
    assert_eq!(error.field(), "name");
}
