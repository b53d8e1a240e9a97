//! The first of the two systems this crate descends from: a map of services, a limit each, the
//! counts cleared each minute.

use std::time::Duration;

use tower::{Layer, ServiceExt};
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{KeyedRateLimiter, Quota, RateLimitLayer, RateLimitedReason};

use crate::support::strict::Echo;

#[tokio::test]
async fn old_system_a_each_service_has_its_limit_a_minute_and_passes_again_in_the_next() {
    let time = Clock::manual();
    let services = KeyedRateLimiter::<&str>::builder(Quota::per_minute(1).fixed_window())
        .clock(&time)
        .name("rpc")
        .build()
        .unwrap();
    let layer = RateLimitLayer::keyed_with(services, |service: &&'static str| {
        let limit = if *service == "orders" { 5 } else { 3 };
        Some((*service, Some(Quota::per_minute(limit).fixed_window())))
    });
    for minute in 0..3 {
        for (name, limit) in [("orders", 5), ("users", 3)] {
            for call in 0..8 {
                let answer = layer.layer(Echo).oneshot(name).await;
                if call < limit {
                    assert_eq!(answer.unwrap(), name, "minute {minute}, call {call}");
                    continue;
                }
                let error = answer.unwrap_err();
                let refusal = error.refused().expect("a typed refusal");
                assert_eq!(refusal.reason(), RateLimitedReason::Spent);
                assert_eq!(refusal.quota().limit(), limit);
                assert_eq!(refusal.retry_after(), Some(Duration::from_secs(60)));
            }
        }
        time.advance(Duration::from_secs(60));
    }
}
