//! Refusing is the hot path under attack: what it allocates is counted here.

use http::{Response, StatusCode, header};
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{Quota, RateLimitLayer, RateLimited, RateLimiter};
use tower_sluice::{grpc, http as sluice};

use crate::support::alloc::allocations;

fn refusal() -> RateLimited {
    let limiter = RateLimiter::builder(Quota::per_minute(1))
        .clock(Clock::manual())
        .build()
        .expect("a valid quota");
    limiter.check().expect("the first call passes");
    limiter.check().expect_err("the second does not")
}

/// What one writes without a crate for it, with the same body.
fn by_hand<B>(refusal: &RateLimited, body: B) -> Response<B> {
    let wait = refusal.retry_after().expect("a known wait");
    Response::builder()
        .status(StatusCode::TOO_MANY_REQUESTS)
        .header(header::RETRY_AFTER, wait.as_secs().to_string())
        .body(body)
        .expect("a valid response")
}

#[test]
fn a_refusal_allocates_less_than_one_by_hand() {
    let refusal = refusal();
    let (count, _) = allocations(|| sluice::respond_empty::<_, ()>(&refusal));
    assert_eq!(count, 2, "the headers and their index");
    let (by_hand_count, _) = allocations(|| by_hand(&refusal, ()));
    assert!(count < by_hand_count, "by hand: {by_hand_count}");

    let (count, _) = allocations(|| sluice::respond::<_, String>(&refusal));
    assert_eq!(count, 3, "one more for the text");
    let text = || String::from("Too Many Requests");
    let (by_hand_count, _) = allocations(|| by_hand(&refusal, text()));
    assert!(count < by_hand_count, "by hand: {by_hand_count}");

    let (count, _) = allocations(|| sluice::respond::<_, axum::body::Body>(&refusal));
    assert!(
        count <= 4,
        "axum boxes its bodies, and that is all: {count}"
    );
}

#[test]
fn a_grpc_refusal_allocates_a_bounded_number_of_times() {
    let refusal = refusal();
    let (count, _) = allocations(|| grpc::respond::<_, ()>(&refusal));
    assert!(count <= 14, "{count}");
}

/// What a request that passes costs in allocations, beyond what the bare service costs.
fn extra_allocations<L>(layer: &L, request: impl Fn() -> http::Request<()>) -> u64
where
    L: tower::Layer<Bare>,
    L::Service: tower::Service<http::Request<()>, Error = std::convert::Infallible>,
{
    use futures_util::FutureExt;
    use tower::Service;

    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut service = layer.layer(Bare);
    let mut passes = |request| {
        let ready = service.poll_ready(&mut cx);
        assert!(ready.is_ready());
        service
            .call(request)
            .now_or_never()
            .expect("at once")
            .is_ok()
    };
    // The first call of a key may make its entry.
    assert!(passes(request()));
    let request = request();
    let (count, _) = allocations(|| assert!(passes(request)));
    count
}

#[derive(Clone, Copy)]
struct Bare;

impl tower::Service<http::Request<()>> for Bare {
    type Response = Response<String>;
    type Error = std::convert::Infallible;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(
        &mut self,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: http::Request<()>) -> Self::Future {
        std::future::ready(Ok(Response::new(String::new())))
    }
}

#[test]
fn known_keys_cost_no_allocation() {
    let quota = Quota::per_second(100);
    let request = || {
        http::Request::get("http://example.com/path")
            .header("x-api-key", header::HeaderValue::from_static("secret"))
            .header("x-forwarded-for", "6.6.6.6, [2001:db8::1]:443")
            .header("forwarded", "for=6.6.6.6, for=\"[2001:db8::1]:443\"")
            .extension(std::net::IpAddr::from([10, 0, 0, 1]))
            .body(())
            .expect("a request")
    };
    let trust = sluice::Trust::hops(1);
    let by_path = RateLimitLayer::keyed_ref(quota, sluice::path).respond_with(sluice::respond);
    assert_eq!(extra_allocations(&by_path, request), 0, "path");
    let by_method = RateLimitLayer::keyed_ref(quota, sluice::method).respond_with(sluice::respond);
    assert_eq!(extra_allocations(&by_method, request), 0, "method");
    let name = header::HeaderName::from_static("x-api-key");
    let by_header = RateLimitLayer::keyed_with(quota, sluice::or_refuse(sluice::header(name)))
        .respond_with(sluice::respond);
    assert_eq!(extra_allocations(&by_header, request), 0, "header");
    for client in [
        sluice::ClientIp::peer(),
        sluice::ClientIp::x_forwarded_for(trust.clone()),
        sluice::ClientIp::forwarded(trust),
    ] {
        let by_client =
            RateLimitLayer::keyed_with(quota, client.or_refuse()).respond_with(sluice::respond);
        assert_eq!(extra_allocations(&by_client, request), 0, "address");
    }
}
