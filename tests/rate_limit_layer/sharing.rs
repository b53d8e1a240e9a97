//! What services of one layer share, over sockets and without; what a call costs.

use std::convert::Infallible;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{
    KeyedRateLimiter, Quota, RateLimit, RateLimitLayer, RateLimited, RateLimiter,
};

use crate::support::alloc::allocations;
use crate::support::strict::Echo;

fn too_many(_: &RateLimited) -> Response {
    StatusCode::TOO_MANY_REQUESTS.into_response()
}

async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// The statuses of ten requests on a connection of their own.
async fn ten_requests(address: SocketAddr) -> Vec<u16> {
    let stream = TcpStream::connect(address).await.unwrap();
    let io = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let mut statuses = Vec::new();
    for _ in 0..10 {
        let request = Request::get("/")
            .header("host", "localhost")
            .body(Empty::<bytes::Bytes>::new())
            .unwrap();
        sender.ready().await.unwrap();
        statuses.push(
            sender
                .send_request(request)
                .await
                .unwrap()
                .status()
                .as_u16(),
        );
    }
    statuses
}

async fn over_twenty_connections(app: Router) -> (usize, usize) {
    let address = serve(app).await;
    let mut connections = tokio::task::JoinSet::new();
    for _ in 0..20 {
        connections.spawn(ten_requests(address));
    }
    let statuses: Vec<u16> = connections.join_all().await.concat();
    let count = |status| statuses.iter().filter(|seen| **seen == status).count();
    (count(200), count(429))
}

#[tokio::test]
async fn h02_limit_holds_over_connections() {
    let time = Clock::manual();
    let layer = RateLimitLayer::new(Quota::per_second(5))
        .clock(&time)
        .respond_with(too_many);
    let app = Router::new().route("/", get(async || "hello")).layer(layer);
    assert_eq!(over_twenty_connections(app).await, (5, 195));
}

#[tokio::test]
async fn h02_keyed_limit_holds_over_connections() {
    let time = Clock::manual();
    let layer = RateLimitLayer::keyed_ref(Quota::per_second(5), |request: &Request<_>| {
        request.uri().path()
    })
    .clock(&time)
    .respond_with(too_many);
    let app = Router::new().route("/", get(async || "hello")).layer(layer);
    assert_eq!(over_twenty_connections(app).await, (5, 195));
}

#[tokio::test]
async fn h02_waiting_limit_holds_over_connections() {
    let time = Clock::manual();
    let layer = RateLimitLayer::keyed_ref(Quota::per_second(5), |request: &Request<_>| {
        request.uri().path()
    })
    .clock(&time)
    .wait(Duration::ZERO)
    .respond_with(too_many);
    let app = Router::new().route("/", get(async || "hello")).layer(layer);
    assert_eq!(over_twenty_connections(app).await, (5, 195));
}

#[tokio::test]
async fn h02_limit_holds_over_clones_without_a_network() {
    let time = Clock::manual();
    let layer = RateLimitLayer::new(Quota::per_second(5)).clock(&time);
    let mut admitted = 0;
    for connection in 0..20 {
        let service = layer.layer(Echo);
        for call in 0..10 {
            admitted += usize::from(service.clone().oneshot(connection * call).await.is_ok());
        }
    }
    assert_eq!(admitted, 5, "of 200, whoever asks");
}

#[test]
fn an_admitted_call_and_a_refused_one_allocate_nothing() {
    let mut service = RateLimitLayer::new(Quota::per_hour(1)).layer(Echo);
    let (mut admitted, mut refused) = (None, None);
    let counted = allocations(|| admitted = Some(service.call(1_u32)));
    assert_eq!(counted, (0, 0), "admitting");
    let counted = allocations(|| refused = Some(service.call(1)));
    assert_eq!(counted, (0, 0), "refusing");
    let mut both = (admitted, refused);
    let counted = allocations(|| both = (None, None));
    assert_eq!(counted, (0, 0), "dropping");
}

#[test]
fn a_known_key_costs_no_allocation_in_the_layer() {
    let layer = RateLimitLayer::keyed_ref(Quota::per_hour(2), |name: &&str| *name);
    let mut service = layer.layer(Echo);
    drop(service.call("orders"));
    let counted = allocations(|| service.call("orders"));
    assert_eq!(counted, (0, 0), "admitting");
    let counted = allocations(|| service.call("orders"));
    assert_eq!(counted, (0, 0), "refusing");
}

fn is_send_sync<T: Send + Sync + Clone + Unpin + Debug>(_: &T) {}

#[test]
fn layers_and_services_are_shared_between_threads_whatever_the_request_is() {
    // A request that is neither `Send` nor `Sync`.
    type Request = std::rc::Rc<u32>;
    let key = |request: &Request| **request;
    is_send_sync(&RateLimitLayer::new(Quota::per_second(1)));
    is_send_sync(&RateLimitLayer::keyed(Quota::per_second(1), key).layer(Echo));
    is_send_sync(
        &RateLimitLayer::new(Quota::per_second(1))
            .cost(key)
            .layer(Echo),
    );
    is_send_sync(&RateLimiter::new(Quota::per_second(1)));
    is_send_sync(&KeyedRateLimiter::<std::rc::Rc<str>>::new(
        Quota::per_second(1),
    ));
}

#[tokio::test]
async fn a_service_need_be_neither_clone_nor_send_and_its_future_neither() {
    let local = std::rc::Rc::new(5);
    let inner = service_fn(|request: std::rc::Rc<u32>| {
        let local = local.clone();
        async move { Ok::<_, Infallible>(*request + *local) }
    });
    struct NotClone<S>(S);
    impl<S: Service<R>, R> Service<R> for NotClone<S> {
        type Response = S::Response;
        type Error = S::Error;
        type Future = S::Future;
        fn poll_ready(
            &mut self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), S::Error>> {
            self.0.poll_ready(cx)
        }
        fn call(&mut self, request: R) -> S::Future {
            self.0.call(request)
        }
    }
    let mut service: RateLimit<_> = RateLimitLayer::new(Quota::per_hour(1)).layer(NotClone(inner));
    let response = service
        .ready()
        .await
        .unwrap()
        .call(std::rc::Rc::new(2))
        .await;
    assert_eq!(response.unwrap(), 7);
}

#[test]
#[should_panic(expected = "`clock` is set too late")]
fn the_clock_of_a_shared_limiter_is_not_changed_under_its_other_handles() {
    let limiter = RateLimiter::new(Quota::per_second(1));
    let _layer = RateLimitLayer::from(limiter.clone()).clock(Clock::manual());
}
