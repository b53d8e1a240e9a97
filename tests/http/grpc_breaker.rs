//! A breaker on both ends of gRPC.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tonic::Code;
use tower::Layer;
use tower_sluice::circuit_breaker::{
    CallEnd, CircuitBreaker, CircuitBreakerLayer, CircuitEventKind, CircuitPolicy, CircuitState,
    Outcome,
};
use tower_sluice::clock::Clock;
use tower_sluice::grpc::{self, CodeClassifier};
use tower_sluice::rate_limit::{Quota, RateLimitLayer};

use crate::raw_grpc::{KINDS, Kind, call, channel, serve};

type Ends = Arc<Mutex<Vec<CallEnd>>>;

fn breaker() -> (CircuitBreaker, Ends) {
    let ends = Ends::default();
    let heard = ends.clone();
    let policy = CircuitPolicy::builder().consecutive(3).build();
    let breaker = CircuitBreaker::builder("host", policy.expect("a valid policy"))
        .on_event(move |event| {
            if let CircuitEventKind::Completed { end, .. } = event.kind {
                heard.lock().push(end);
            }
        })
        .build();
    (breaker, ends)
}

#[tokio::test]
async fn h32_a_status_in_the_headers_and_one_in_the_trailers_both_count() {
    let channel = channel(serve(tower::layer::util::Identity::new()).await);
    for (messages, code, end) in [
        (0, Code::Unavailable, CallEnd::Failure),
        (3, Code::Unavailable, CallEnd::Failure),
        (0, Code::NotFound, CallEnd::Success),
        (3, Code::NotFound, CallEnd::Success),
        (3, Code::Ok, CallEnd::Success),
        (0, Code::ResourceExhausted, CallEnd::Ignored),
    ] {
        let (breaker, ends) = breaker();
        let service = CircuitBreakerLayer::from(breaker)
            .classify(CodeClassifier::new())
            .until_body_end()
            .layer(channel.clone());
        let answer = call(service, Kind::ServerStream, (messages, code)).await;
        match answer {
            Ok(count) => assert_eq!((count, code), (messages, Code::Ok)),
            Err(status) => assert_eq!(status.code(), code, "after {messages} messages"),
        }
        assert_eq!(*ends.lock(), [end], "{code:?} after {messages} messages");
    }
}

#[tokio::test]
async fn h65_an_open_breaker_refuses_every_kind_of_call_as_unavailable() {
    for kind in KINDS {
        let (breaker, _) = breaker();
        breaker.force_open();
        let layer = CircuitBreakerLayer::from(breaker)
            .respond_with(grpc::Responder::new().default_retry_after(Duration::from_secs(2)));
        let channel = channel(serve(layer).await);
        let status = call(channel, kind, (1, Code::Ok)).await;
        let status = status.expect_err("refused");
        assert_eq!(status.code(), Code::Unavailable, "{kind:?}");
        let pushback = status.metadata().get("grpc-retry-pushback-ms");
        assert_eq!(pushback.expect("a delay"), "2000", "{kind:?}");
    }
}

#[tokio::test]
async fn a_refusal_on_the_channel_reaches_the_caller_with_its_code() {
    let (breaker, _) = breaker();
    breaker.force_open();
    let channel = channel(serve(tower::layer::util::Identity::new()).await);
    let service = CircuitBreakerLayer::from(breaker)
        .respond_with(grpc::respond)
        .layer(channel);
    for kind in KINDS {
        let status = call(service.clone(), kind, (1, Code::Ok)).await;
        let status = status.expect_err("refused");
        assert_eq!(status.code(), Code::Unavailable, "{kind:?}");
        assert_eq!(status.message(), "circuit host is open", "{kind:?}");
    }
}

#[tokio::test]
async fn h63_a_servers_limit_is_no_failure_of_the_host_unless_told_so() {
    let limit = RateLimitLayer::new(Quota::per_minute(1))
        .clock(Clock::manual())
        .respond_with(grpc::respond);
    let channel = channel(serve(limit).await);
    call(channel.clone(), Kind::Unary, (1, Code::Ok))
        .await
        .expect("the one that passes");

    let default = CodeClassifier::new();
    let strict = CodeClassifier::new().outcome(grpc::Code::ResourceExhausted, Outcome::Failure);
    for (classifier, end, state) in [
        (default, CallEnd::Ignored, CircuitState::Closed),
        (strict, CallEnd::Failure, CircuitState::Open),
    ] {
        let (breaker, ends) = breaker();
        let service = CircuitBreakerLayer::from(breaker.clone())
            .classify(classifier)
            .until_body_end()
            .layer(channel.clone());
        for _ in 0..3 {
            let status = call(service.clone(), Kind::Unary, (1, Code::Ok)).await;
            let status = status.expect_err("refused by the server");
            assert_eq!(status.code(), Code::ResourceExhausted);
        }
        assert_eq!(*ends.lock(), [end; 3]);
        assert_eq!(breaker.state(), state);
    }
}
