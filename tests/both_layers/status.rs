use std::time::Duration;

use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::ServiceBuilder;
use tower_sluice::clock::Clock;
use tower_sluice::{
    CircuitBreaker, CircuitBreakerLayer, CircuitPolicy, Quota, RateLimitLayer, RateLimiter,
};

/// In the default form the client's own error handling finds the code: the refusal's `source()`
/// is a `Status`, also through both layers' error enums.
#[tokio::test]
async fn a_refusal_in_the_default_form_reaches_a_tonic_client_as_its_status() {
    let time = Clock::manual();
    let limiter = RateLimiter::builder(Quota::per_hour(1))
        .name("calls")
        .clock(&time)
        .build();
    let limiter = limiter.expect("valid");
    let breaker = CircuitBreaker::builder("host", CircuitPolicy::default())
        .clock(&time)
        .build();
    breaker.force_open();
    let channel = ServiceBuilder::new()
        .layer(RateLimitLayer::from(limiter))
        .layer(CircuitBreakerLayer::from(breaker))
        .service(Endpoint::from_static("http://127.0.0.1:9").connect_lazy());
    let mut client = HealthClient::new(channel);

    let open = client
        .check(HealthCheckRequest::default())
        .await
        .expect_err("forced open");
    assert_eq!(open.code(), Code::Unavailable);
    assert_eq!(open.message(), "circuit host is open");

    time.advance(Duration::from_secs(600));
    let limited = client
        .check(HealthCheckRequest::default())
        .await
        .expect_err("one an hour");
    assert_eq!(limited.code(), Code::ResourceExhausted);
    assert!(
        limited.message().contains("calls"),
        "named: {}",
        limited.message()
    );
}
