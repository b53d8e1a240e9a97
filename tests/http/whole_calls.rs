//! What whole stacks record of calls.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream::{self, StreamExt};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_sluice::circuit_breaker::{
    CallEnd, CircuitBreaker, CircuitBreakerLayer, CircuitEventKind, CircuitPolicy, CircuitState,
    Outcome,
};
use tower_sluice::clock::Clock;
use tower_sluice::http::{self as sluice, StatusClassifier};
use tower_sluice::rate_limit::{Quota, RateLimitLayer};

type Ends = Arc<Mutex<Vec<(CallEnd, Duration)>>>;

fn breaker(policy: CircuitPolicy) -> (CircuitBreaker, Ends) {
    let ends = Ends::default();
    let heard = ends.clone();
    let breaker = CircuitBreaker::builder("host", policy)
        .on_event(move |event| {
            if let CircuitEventKind::Completed { end, elapsed, .. } = event.kind {
                heard.lock().push((end, elapsed));
            }
        })
        .build();
    (breaker, ends)
}

fn strict() -> CircuitPolicy {
    let policy = CircuitPolicy::builder().consecutive(1).build();
    policy.expect("a valid policy")
}

const FAST: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_millis(500);

/// Answers its head at once, and its body after 100 ms, or never.
async fn streaming(request: Request<&str>) -> Result<Response, Infallible> {
    let frame = match *request.body() {
        "fast" => stream::once(async {
            tokio::time::sleep(FAST).await;
            Ok::<_, Infallible>(Bytes::from_static(b"done"))
        })
        .boxed(),
        _ => stream::pending().boxed(),
    };
    Ok(Response::new(Body::from_stream(frame)))
}

#[tokio::test(start_paused = true)]
async fn h69_calls_cut_off_in_their_bodies_are_recorded_with_their_true_time() {
    let (breaker, ends) = breaker(CircuitPolicy::default());
    let service = CircuitBreakerLayer::from(breaker)
        .classify(StatusClassifier::new())
        .until_body_end()
        .layer(tower::service_fn(streaming));
    for kind in ["fast", "stuck", "fast", "stuck", "stuck"] {
        let call = async {
            let response = service.clone().oneshot(Request::new(kind)).await;
            let body = response.expect("a head at once").into_body();
            body.collect().await.expect("no error").to_bytes()
        };
        let answer = tokio::time::timeout(TIMEOUT, call).await;
        assert_eq!(answer.is_ok(), kind == "fast");
    }
    let (fast, stuck) = ((CallEnd::Success, FAST), (CallEnd::Cancelled, TIMEOUT));
    assert_eq!(
        *ends.lock(),
        [fast, stuck, fast, stuck, stuck],
        "one record for each call, the slowest ones too"
    );
}

#[tokio::test]
async fn refusals_further_in_are_no_failures_of_the_host_further_out() {
    let ask = async |ends: &Ends, status: StatusCode, service: Router| {
        let answer = service.oneshot(Request::new(Body::empty())).await;
        let Ok(response) = answer;
        assert_eq!(response.status(), status);
        ends.lock().pop().map(|(end, _)| end)
    };
    let (outer, ends) = breaker(strict());
    let outside = CircuitBreakerLayer::from(outer.clone())
        .classify(StatusClassifier::new().outcome(400..=599, Outcome::Failure))
        .respond_with(sluice::respond);

    let (inner, _) = breaker(strict());
    inner.force_open();
    let open = ServiceBuilder::new()
        .layer(outside.clone())
        .layer(CircuitBreakerLayer::from(inner).respond_with(sluice::respond));
    let open = hello().layer(open);
    let end = ask(&ends, StatusCode::SERVICE_UNAVAILABLE, open).await;
    assert_eq!(end, Some(CallEnd::Ignored));

    let limit = RateLimitLayer::new(Quota::per_minute(1))
        .clock(Clock::manual())
        .respond_with(sluice::Responder::new().problem_details());
    let limited = hello().layer(ServiceBuilder::new().layer(outside.clone()).layer(limit));
    let end = ask(&ends, StatusCode::OK, limited.clone()).await;
    assert_eq!(end, Some(CallEnd::Success));
    let end = ask(&ends, StatusCode::TOO_MANY_REQUESTS, limited).await;
    assert_eq!(end, Some(CallEnd::Ignored));
    assert_eq!(outer.state(), CircuitState::Closed);
}

#[tokio::test]
async fn a_limit_lies_outside_of_a_breaker_that_ends_with_the_body() {
    let (breaker, ends) = breaker(strict());
    let service = ServiceBuilder::new()
        .layer(
            RateLimitLayer::new(Quota::per_minute(1))
                .clock(Clock::manual())
                .respond_with(sluice::respond),
        )
        .layer(
            CircuitBreakerLayer::from(breaker)
                .classify(StatusClassifier::new())
                .until_body_end()
                .respond_with(sluice::respond),
        )
        .service_fn(async |_: Request<Body>| {
            Ok::<_, Infallible>(Response::new(Body::from("hello")))
        });
    for (status, text) in [(200, "hello"), (429, "Too Many Requests")] {
        let answer = service.clone().oneshot(Request::new(Body::empty())).await;
        let Ok(response) = answer;
        assert_eq!(response.status(), status);
        let body = response.into_body().collect().await.expect("no error");
        assert_eq!(body.to_bytes(), text);
    }
    let ends: Vec<_> = ends.lock().iter().map(|(end, _)| *end).collect();
    assert_eq!(ends, [CallEnd::Success], "a refusal carries no call");
}

fn hello() -> Router {
    Router::new().route("/", axum::routing::get(async || "hello"))
}

#[tokio::test]
async fn h63_a_servers_429_is_no_failure_of_the_host_unless_told_so() {
    let limit = RateLimitLayer::new(Quota::per_minute(1))
        .clock(Clock::manual())
        .respond_with(sluice::respond);
    let address = crate::over::serve(hello().layer(limit)).await;
    let default = StatusClassifier::new();
    let strictly = StatusClassifier::new().outcome(429..=429, Outcome::Failure);
    for (classifier, ends_as, state) in [
        (default, CallEnd::Ignored, CircuitState::Closed),
        (strictly, CallEnd::Failure, CircuitState::Open),
    ] {
        let (breaker, ends) = breaker(strict());
        let service = CircuitBreakerLayer::from(breaker.clone())
            .classify(classifier)
            .until_body_end()
            .layer(crate::over::client());
        for _ in 0..2 {
            let request = Request::get(format!("http://{address}/")).body(Body::empty());
            let answer = service.clone().oneshot(request.expect("a request")).await;
            let Ok(response) = answer else { break };
            response.into_body().collect().await.expect("no error");
        }
        assert_eq!(ends.lock().pop().map(|(end, _)| end), Some(ends_as));
        assert_eq!(breaker.state(), state);
    }
}

#[tokio::test]
async fn a_refusal_from_across_the_network_is_an_upstreams_answer_and_bears_no_mark() {
    let (upstream, _) = breaker(strict());
    upstream.force_open();
    let responder = sluice::Responder::new().default_retry_after(Duration::from_secs(7));
    let open = CircuitBreakerLayer::from(upstream).respond_with(responder);
    let address = crate::over::serve(hello().layer(open)).await;

    // A proxy hands the answer on as it came; two of our layers lie around it.
    let (own, ends) = breaker(strict());
    let proxy = ServiceBuilder::new()
        .layer(RateLimitLayer::new(Quota::per_minute(9)).flatten_error())
        .layer(
            CircuitBreakerLayer::from(own.clone())
                .classify(StatusClassifier::new())
                .until_body_end()
                .flatten_error(),
        )
        .map_err(tower::BoxError::from)
        .service(crate::over::client());
    let request = Request::get(format!("http://{address}/")).body(Body::empty());
    let answer = proxy.oneshot(request.expect("a request")).await;
    let response = answer.expect("an answer");
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "7", "the same text");
    assert!(!sluice::Refused::marks(&response), "but not our own words");
    drop(response);
    assert_eq!(
        ends.lock().pop().map(|(end, _)| end),
        Some(CallEnd::Failure)
    );
    assert_eq!(own.state(), CircuitState::Open);
}

#[tokio::test]
async fn an_upstreams_retry_after_is_the_least_time_to_stay_open() {
    let unavailable = async || (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "40")]);
    let app = Router::new().route("/", axum::routing::get(unavailable));
    let address = crate::over::serve(app).await;
    let clock = Clock::manual();
    let breaker = CircuitBreaker::builder("host", strict())
        .clock(clock.clone())
        .build();
    let service = CircuitBreakerLayer::from(breaker.clone())
        .classify(StatusClassifier::new().retry_after_floor())
        .layer(crate::over::client());
    let request = Request::get(format!("http://{address}/")).body(Body::empty());
    let answer = service.oneshot(request.expect("a request")).await;
    assert_eq!(answer.expect("an answer").status(), 503);
    let refusal = breaker.try_acquire().expect_err("open");
    assert_eq!(refusal.retry_after(), Some(Duration::from_secs(40)));
}
