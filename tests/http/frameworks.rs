//! What axum and tonic note of a connection, and one layer over both.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use tonic::Code;
use tower_sluice::clock::Clock;
use tower_sluice::http::{self as sluice, ClientIp};
use tower_sluice::rate_limit::{KeyedRateLimiter, Quota, RateLimitLayer};

use crate::over::{client, serve};
use crate::raw_grpc;

fn limiter<K: tower_sluice::rate_limit::Key + ?Sized>(quota: Quota) -> KeyedRateLimiter<K> {
    let limiter = KeyedRateLimiter::builder(quota).clock(Clock::manual());
    limiter.build().expect("a valid quota")
}

async fn ask(address: SocketAddr, path: &str) -> StatusCode {
    let request = Request::get(format!("http://{address}{path}")).body(Body::empty());
    let answer = client().request(request.expect("a request")).await;
    let response = answer.expect("an answer");
    let status = response.status();
    response.into_body().collect().await.expect("no error");
    status
}

#[tokio::test]
async fn axum_notes_the_peer_of_each_connection() {
    let limiter = limiter(Quota::per_minute(2));
    let by_client = ClientIp::peer().or_refuse();
    let limit =
        RateLimitLayer::keyed_with(limiter.clone(), by_client).respond_with(sluice::respond);
    let who = get(async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string());
    let address = serve(Router::new().route("/", who).layer(limit)).await;
    for expected in [200, 200, 429] {
        assert_eq!(
            ask(address, "/").await,
            expected,
            "one client, new connections"
        );
    }
    assert!(
        limiter.peek(&address.ip()).is_err(),
        "the key is its address"
    );
}

#[tokio::test]
async fn axum_notes_the_route_that_matched() {
    let limiter = limiter::<str>(Quota::per_minute(1));
    let limit = RateLimitLayer::keyed_ref(limiter.clone(), sluice::matched_path)
        .respond_with(sluice::respond);
    let app = Router::new()
        .route("/users/{id}", get(async || "a user"))
        .route("/orders", get(async || "orders"))
        .layer(limit);
    let address = serve(app).await;
    for (path, expected) in [
        ("/users/1", 200),
        ("/users/2", 429),
        ("/orders", 200),
        ("/nowhere", 404),
        ("/made-up", 429),
    ] {
        assert_eq!(ask(address, path).await, expected, "{path}");
    }
    assert_eq!(
        limiter.len(),
        3,
        "two routes, and one key for what matched none"
    );
}

#[tokio::test]
async fn tonic_notes_the_peer_of_each_connection() {
    let limiter = limiter(Quota::per_minute(1));
    let by_client = ClientIp::peer().or_refuse();
    let limit = RateLimitLayer::keyed_with(limiter.clone(), by_client)
        .respond_with(tower_sluice::grpc::respond);
    let address = raw_grpc::serve(limit).await;
    for expected in [Code::Ok, Code::ResourceExhausted] {
        let channel = raw_grpc::channel(address);
        let answer = raw_grpc::call(channel, raw_grpc::Kind::Unary, (1, Code::Ok)).await;
        let code = answer.map_or_else(|status| status.code(), |_| Code::Ok);
        assert_eq!(code, expected, "one client, new connections");
    }
    assert!(
        limiter.peek(&address.ip()).is_err(),
        "the key is its address"
    );
}

#[tokio::test]
async fn one_layer_refuses_http_and_grpc_each_in_its_language() {
    let limit = RateLimitLayer::new(Quota::per_minute(1))
        .clock(Clock::manual())
        .respond_with(sluice::respond_auto);
    let grpc = tonic::service::Routes::new(raw_grpc::Scripted).into_axum_router();
    let app = Router::new().route("/", get(async || "hello")).merge(grpc);
    let address = serve(app.layer(limit)).await;

    assert_eq!(ask(address, "/").await, 200);
    assert_eq!(ask(address, "/").await, 429);
    for kind in raw_grpc::KINDS {
        let channel = raw_grpc::channel(address);
        let status = raw_grpc::call(channel, kind, (1, Code::Ok)).await;
        let status = status.expect_err("refused");
        assert_eq!(status.code(), Code::ResourceExhausted, "{kind:?}");
    }
}
