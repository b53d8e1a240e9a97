//! Refusals as gRPC clients see them.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::StatusExt;
use tower::ServiceBuilder;
use tower_sluice::circuit_breaker::{CircuitBreakerLayer, CircuitPolicy};
use tower_sluice::clock::Clock;
use tower_sluice::grpc;
use tower_sluice::rate_limit::{Quota, RateLimitLayer};
use tower_sluice::reject::RefusalKind;

use crate::raw_grpc::{KINDS, Kind, call, channel, serve};

/// One call a minute, with the clock frozen: the second would have to wait 60 s.
fn quota() -> (Quota, Duration) {
    (Quota::per_minute(1), Duration::from_secs(60))
}

fn assert_waits(status: &Status, wait: Duration) {
    let pushback = status.metadata().get("grpc-retry-pushback-ms");
    let pushback = pushback.expect("pushback").to_str().expect("ASCII");
    assert_eq!(pushback, wait.as_millis().to_string());
    let info = status.get_details_retry_info().expect("retry info");
    assert_eq!(info.retry_delay, Some(wait));
}

#[tokio::test]
async fn h65_a_limit_refuses_every_kind_of_call_as_resource_exhausted() {
    let (quota, wait) = quota();
    for kind in KINDS {
        let limit = RateLimitLayer::new(quota)
            .named("per client, 100 %")
            .clock(Clock::manual())
            .respond_with(grpc::respond);
        let channel = channel(serve(limit).await);
        let first = call(channel.clone(), kind, (1, Code::Ok)).await;
        assert_eq!(first.expect("admitted"), 1, "{kind:?}");
        let status = call(channel, kind, (1, Code::Ok)).await;
        let status = status.expect_err("refused");
        assert_eq!(status.code(), Code::ResourceExhausted, "{kind:?}");
        assert_eq!(
            status.message(),
            "rate limited by per client, 100 %, retry after 60s",
            "the percent sign survives"
        );
        assert_waits(&status, wait);
    }
}

#[tokio::test]
async fn h63_a_limit_may_be_told_as_unavailable_and_still_tells_the_delay() {
    let (quota, wait) = quota();
    let responder = grpc::Responder::new().code(RefusalKind::Limited, grpc::Code::Unavailable);
    let limit = RateLimitLayer::new(quota)
        .clock(Clock::manual())
        .respond_with(responder);
    let channel = channel(serve(limit).await);
    let first = call(channel.clone(), Kind::Unary, (1, Code::Ok)).await;
    first.expect("admitted");
    let status = call(channel, Kind::Unary, (1, Code::Ok)).await;
    let status = status.expect_err("refused");
    assert_eq!(status.code(), Code::Unavailable);
    assert_waits(&status, wait);
}

#[tokio::test]
async fn h65_on_the_wire_a_refusal_is_trailers_only_in_the_dialect_of_the_request() {
    let (quota, _) = quota();
    let limit = RateLimitLayer::new(quota)
        .clock(Clock::manual())
        .respond_with(grpc::Responder::new());
    let address = serve(limit).await;
    let client = crate::over::client();
    let ask = async |content_type: &str| {
        let request = http::Request::post(format!("http://{address}/raw.Raw/0/0"))
            .header("content-type", content_type)
            .body(axum::body::Body::empty())
            .expect("a request");
        client.request(request).await.expect("an answer")
    };
    ask("application/grpc").await;
    for (asked, answered) in [
        ("application/grpc", "application/grpc"),
        ("application/grpc-web+proto", "application/grpc-web+proto"),
        (
            "application/grpc-web-text",
            "application/grpc-web-text+proto",
        ),
    ] {
        let response = ask(asked).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], answered);
        assert_eq!(response.headers()["grpc-status"], "8");
        assert_eq!(response.headers()["grpc-retry-pushback-ms"], "60000");
        let body = http_body_util::BodyExt::collect(response.into_body()).await;
        let body = body.expect("a whole body");
        assert!(body.trailers().is_none(), "they stand in the headers");
        assert!(body.to_bytes().is_empty());
    }
}

#[tokio::test]
async fn a_limit_lies_outside_of_a_breaker_that_ends_with_the_body() {
    let (quota, wait) = quota();
    let breaker = || {
        CircuitBreakerLayer::new("host", CircuitPolicy::default())
            .classify(grpc::CodeClassifier::new())
            .until_body_end()
            .respond_with(grpc::respond)
    };
    let limit = || {
        RateLimitLayer::new(quota)
            .clock(Clock::manual())
            .respond_with(grpc::respond)
    };
    let served = serve(ServiceBuilder::new().layer(limit()).layer(breaker())).await;
    let dialled = ServiceBuilder::new().layer(limit()).layer(breaker());
    let open = serve(tower::layer::util::Identity::new()).await;
    let guarded = dialled.service(channel(open));
    for kind in [Kind::Unary, Kind::ServerStream] {
        let on_the_server = call(channel(served), kind, (1, Code::Ok)).await;
        let on_the_channel = call(guarded.clone(), kind, (1, Code::Ok)).await;
        for answer in [on_the_server, on_the_channel] {
            match kind {
                Kind::Unary => assert_eq!(answer.expect("the first of the minute"), 1),
                _ => {
                    let status = answer.expect_err("the second");
                    assert_eq!(status.code(), Code::ResourceExhausted);
                    assert_waits(&status, wait);
                }
            }
        }
    }
}
