//! A limit over an HTTP service: admitted calls, and refusals with `Retry-After`.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::GlobalKeyExtractor;
use tower_layer::Layer;
use tower_service::Service;
use tower_sluice::http::respond;
use tower_sluice::{Quota, RateLimitLayer};

use crate::drive::call_once;
use crate::floors::Limit;
use crate::limits::{INTERVAL, PLENTY, plenty_floor};
use crate::measure::Contender;

#[derive(Clone, Copy)]
struct Hello;

impl Service<Request<Body>> for Hello {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Body>) -> Self::Future {
        std::future::ready(Ok(Response::new(Body::empty())))
    }
}

/// The least: the decision in one word, and a refusal written by hand.
struct ByHand {
    inner: Hello,
    limit: Arc<Limit>,
}

impl Service<Request<Body>> for ByHand {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match self.limit.check() {
            Ok(()) => self.inner.call(request),
            Err(wait) => std::future::ready(Ok(refusal(wait))),
        }
    }
}

fn refusal(wait: u64) -> Response<Body> {
    let mut response = Response::new(Body::from(String::from("Too Many Requests")));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    let seconds = wait.div_ceil(1_000_000_000).max(1);
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from(seconds));
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}

fn contenders(floor: Limit, quota: Quota, period: Duration, burst: u32) -> Vec<Contender> {
    let mut by_hand = ByHand {
        inner: Hello,
        limit: Arc::new(floor),
    };
    let mut bare = Hello;
    let mut ours = RateLimitLayer::new(quota)
        .respond_with(respond)
        .layer(Hello);
    let mut builder = GovernorConfigBuilder::default();
    let mut builder = builder
        .period(period)
        .burst_size(burst)
        .key_extractor(GlobalKeyExtractor);
    let config = builder.finish().expect("a valid quota");
    let mut governor = GovernorLayer::new(config).layer(Hello);
    vec![
        Contender::new("by hand", move || {
            call_once(&mut by_hand, Request::new(Body::empty()))
        }),
        Contender::new("bare service", move || {
            call_once(&mut bare, Request::new(Body::empty()))
        }),
        Contender::new("tower-sluice", move || {
            call_once(&mut ours, Request::new(Body::empty()))
        }),
        Contender::new("tower_governor", move || {
            call_once(&mut governor, Request::new(Body::empty()))
        }),
    ]
}

pub fn allow() -> Vec<Contender> {
    let quota = Quota::with_period(1, INTERVAL).burst(PLENTY);
    contenders(plenty_floor(), quota, INTERVAL, PLENTY)
}

pub fn refuse() -> Vec<Contender> {
    let hour = Duration::from_secs(3_600);
    contenders(Limit::spent(), Quota::per_hour(1), hour, 1)
}
