use std::time::Duration;

use tonic::transport::Endpoint;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;
use tower::{ServiceBuilder, ServiceExt};
use tower_sluice::circuit_breaker::{CircuitState, Outcome};
use tower_sluice::clock::Clock;
use tower_sluice::grpc::CodeClassifier;
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
    let wait = Duration::from_secs(3_600 - 600);
    let pushback = limited.metadata().get("grpc-retry-pushback-ms");
    assert_eq!(pushback.expect("a delay"), "3000000");
    let info = limited.get_details_retry_info().expect("retry info");
    assert_eq!(info.retry_delay, Some(wait), "as a server's refusal has it");
    assert!(open.metadata().is_empty(), "no wait is known, nor made up");
}

#[tokio::test]
async fn a_refusal_flattens_into_a_status_and_is_still_known_for_one() {
    let time = Clock::manual();
    let breaker = |name| {
        let policy = CircuitPolicy::builder().consecutive(1).build();
        CircuitBreaker::builder(name, policy.expect("valid")).clock(&time)
    };
    let (outer, inner) = (breaker("outer").build(), breaker("inner").build());
    inner.force_open();
    let limiter = RateLimiter::builder(Quota::per_hour(1))
        .clock(&time)
        .build();
    let strict = CodeClassifier::new()
        .outcome(Code::ResourceExhausted.into(), Outcome::Failure)
        .outcome(Code::Unavailable.into(), Outcome::Failure);
    let service = ServiceBuilder::new()
        .layer(
            CircuitBreakerLayer::from(outer.clone())
                .classify(strict)
                .flatten_error(),
        )
        .layer(RateLimitLayer::from(limiter.expect("valid")).flatten_error())
        .layer(CircuitBreakerLayer::from(inner).flatten_error())
        .service_fn(async |()| Ok::<_, Status>(http::Response::new(())));
    for code in [Code::Unavailable, Code::ResourceExhausted] {
        let status = service.clone().oneshot(()).await.expect_err("refused");
        assert_eq!(status.code(), code, "{status}");
        let told = status
            .get_details_retry_info()
            .and_then(|info| info.retry_delay);
        let wait = (code == Code::ResourceExhausted).then_some(Duration::from_secs(3_600));
        assert_eq!(told, wait);
    }
    assert_eq!(
        outer.state(),
        CircuitState::Closed,
        "no failure of the host"
    );
}
