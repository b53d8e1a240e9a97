//! Each form compiles as written, with inferred types, and works.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{Request, StatusCode};
use tonic::Status;
use tonic::transport::Endpoint;
use tonic::transport::server::TcpIncoming;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{
    KeyChoice, KeyedRateLimiter, Quota, RateLimitLayer, RateLimited, RateLimitedReason, RateLimiter,
};

fn too_many(refusal: &RateLimited) -> Response {
    (StatusCode::TOO_MANY_REQUESTS, refusal.to_string()).into_response()
}

fn once() -> Quota {
    Quota::per_minute(1)
}

async fn statuses(app: Router, paths: &[&str]) -> Vec<u16> {
    let mut seen = Vec::new();
    for path in paths {
        let request = Request::get(*path).body(Body::empty()).unwrap();
        seen.push(
            app.clone()
                .oneshot(request)
                .await
                .unwrap()
                .status()
                .as_u16(),
        );
    }
    seen
}

#[tokio::test]
async fn a_router_takes_the_layer_with_no_error_handler() {
    let app = Router::new()
        .route("/", get(async || "hello"))
        .layer(RateLimitLayer::new(once()).respond_with(too_many));
    assert_eq!(statuses(app, &["/", "/"]).await, [200, 429]);
}

#[tokio::test]
async fn a_router_takes_the_layer_by_key_from_a_closure() {
    let app = Router::new()
        .route("/a", get(async || "a"))
        .route("/b", get(async || "b"))
        .route_layer(
            RateLimitLayer::keyed(once(), |request: &Request<_>| {
                request.uri().path().to_owned()
            })
            .respond_with(|_: &RateLimited| StatusCode::TOO_MANY_REQUESTS.into_response()),
        );
    assert_eq!(statuses(app, &["/a", "/b", "/a"]).await, [200, 200, 429]);
}

#[tokio::test]
async fn a_router_takes_the_layer_by_borrowed_key() {
    let app = Router::new()
        .route("/a", get(async || "a"))
        .route("/b", get(async || "b"))
        .layer(
            RateLimitLayer::keyed_ref(once(), |request: &Request<_>| request.uri().path())
                .respond_with(too_many),
        );
    assert_eq!(statuses(app, &["/a", "/b", "/a"]).await, [200, 200, 429]);
}

#[tokio::test]
async fn a_method_router_takes_the_layer_with_everything_chosen_by_closures() {
    let limit = RateLimitLayer::keyed_with(Quota::per_minute(10), |request: &Request<_>| {
        let tier = request.uri().query()?;
        Some((
            tier.to_owned(),
            (tier == "small").then(|| Quota::per_minute(2)),
        ))
    })
    .cost(|request: &Request<_>| {
        if request.uri().path() == "/dear" {
            2
        } else {
            1
        }
    })
    .skip(|request: &Request<_>| request.headers().contains_key("x-internal"))
    .wait(Duration::ZERO)
    .on_event(|_| {})
    .named("tiers")
    .respond_with(|refusal: &RateLimited| {
        (StatusCode::TOO_MANY_REQUESTS, refusal.to_string()).into_response()
    });
    let app = Router::new()
        .route("/dear", get(async || "dear").layer(limit.clone()))
        .route("/cheap", get(async || "cheap").layer(limit));
    assert_eq!(
        statuses(
            app,
            &["/dear?small", "/cheap?small", "/cheap?large", "/cheap"]
        )
        .await,
        [200, 429, 200, 200],
        "two routes share one limit; no key is not limited"
    );
}

#[tokio::test]
async fn a_key_function_may_refuse() {
    let app = Router::new().route("/", get(async || "hello")).layer(
        RateLimitLayer::keyed_with(once(), |request: &Request<_>| {
            match request.headers().get("x-api-key") {
                Some(key) => KeyChoice::Limit(key.as_bytes().to_vec()),
                None => KeyChoice::Refuse,
            }
        })
        .respond_with(|refusal: &RateLimited| {
            assert_eq!(refusal.reason(), RateLimitedReason::NoKey);
            assert_eq!(refusal.retry_after(), None, "no wait gives it a key");
            StatusCode::UNAUTHORIZED.into_response()
        }),
    );
    assert_eq!(statuses(app, &["/"]).await, [401]);
}

#[tokio::test]
async fn the_default_form_gives_the_refusal_with_its_data() {
    let time = Clock::manual();
    let mut service = RateLimitLayer::new(once())
        .clock(&time)
        .named("billing")
        .layer(service_fn(async |n: u32| Ok::<_, Infallible>(n)));
    assert_eq!(service.ready().await.unwrap().call(1).await.unwrap(), 1);
    let error = service.ready().await.unwrap().call(1).await.unwrap_err();
    let refusal = error.refused().expect("a refusal, not an inner error");
    assert_eq!(refusal.name(), Some("billing"));
    assert_eq!(refusal.retry_after(), Some(Duration::from_secs(60)));
}

#[tokio::test]
async fn a_refusal_is_found_by_downcast_under_a_buffer() {
    let mut service = ServiceBuilder::new()
        .buffer(8)
        .layer(RateLimitLayer::new(once()).flatten_error())
        .timeout(Duration::from_secs(1))
        .service(service_fn(async |n: u32| Ok::<_, BoxError>(n)));
    assert_eq!(service.ready().await.unwrap().call(1).await.unwrap(), 1);
    let error = service.ready().await.unwrap().call(1).await.unwrap_err();
    assert!(error.downcast_ref::<RateLimited>().is_some());
}

#[derive(Debug)]
enum OwnError {
    Limited(Option<Duration>),
}

impl From<RateLimited> for OwnError {
    fn from(refusal: RateLimited) -> Self {
        Self::Limited(refusal.retry_after())
    }
}

#[tokio::test]
async fn an_own_error_enum_takes_the_refusal() {
    let service = RateLimitLayer::new(once())
        .flatten_error()
        .layer(service_fn(async |n: u32| Ok::<_, OwnError>(n)));
    service.clone().oneshot(1).await.unwrap();
    let OwnError::Limited(wait) = service.oneshot(1).await.unwrap_err();
    assert!(wait.is_some());
}

fn is_grpc_service<S: tonic::client::GrpcService<tonic::body::Body>>(_: &S) {}

#[tokio::test]
async fn a_tonic_channel_under_the_layer_is_still_a_grpc_service() {
    let channel = Endpoint::from_static("http://127.0.0.1:1").connect_lazy();
    is_grpc_service(&RateLimitLayer::new(once()).layer(channel.clone()));
    let by_method = RateLimitLayer::keyed_ref(once(), |request: &Request<_>| request.uri().path());
    is_grpc_service(&by_method.layer(channel.clone()));
    let waiting = RateLimitLayer::new(once()).wait(Duration::from_secs(1));
    is_grpc_service(&waiting.layer(channel.clone()));
    let answering = RateLimitLayer::new(once())
        .respond_with(|_: &RateLimited| http::Response::new(tonic::body::Body::empty()));
    is_grpc_service(&answering.layer(channel));
}

#[tokio::test]
async fn a_tonic_server_takes_the_layer() {
    let (_, health) = tonic_health::server::health_reporter();
    let limit = RateLimitLayer::keyed(once(), |request: &Request<_>| {
        request.uri().path().to_owned()
    })
    .respond_with(|_: &RateLimited| {
        Status::resource_exhausted("slower").into_http::<tonic::body::Body>()
    });
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("http://{}", incoming.local_addr().unwrap());
    let server = tonic::transport::Server::builder()
        .layer(limit)
        .add_service(health)
        .serve_with_incoming(incoming);
    let server = tokio::spawn(server);
    let channel = Endpoint::try_from(address)
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut client = HealthClient::new(channel);
    let check = HealthCheckRequest::default();
    client.check(check.clone()).await.unwrap();
    let refused = client.check(check).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    server.abort();
}

#[tokio::test]
async fn layers_made_of_one_handle_share_its_limit() {
    let limiter = RateLimiter::new(Quota::per_minute(2));
    let one = RateLimitLayer::from(limiter.clone());
    let two = RateLimitLayer::new(limiter.clone());
    let inner = service_fn(async |n: u32| Ok::<_, Infallible>(n));
    one.layer(inner).oneshot(1).await.unwrap();
    two.layer(inner).oneshot(1).await.unwrap();
    assert!(limiter.check().is_err(), "the handle counts them all");

    let clients = KeyedRateLimiter::<String>::new(once());
    let layer = RateLimitLayer::keyed(clients.clone(), |name: &String| name.clone());
    let inner = service_fn(async |name: String| Ok::<_, Infallible>(name));
    layer.layer(inner).oneshot("a".to_owned()).await.unwrap();
    assert!(clients.check("a").is_err());
    assert!(clients.check("b").is_ok());
}
