//! The forms that must compile as written, their types inferred.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{Request, Response, StatusCode};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::timeout::TimeoutLayer;
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use tower_sluice::circuit_breaker::{
    CircuitBreakerLayer, CircuitBreakers, CircuitOpen, CircuitPolicy, Outcome,
};
use tower_sluice::{Error, grpc, http as ours};

fn policy() -> CircuitPolicy {
    CircuitPolicy::default()
}

fn host<B>(request: &Request<B>) -> String {
    request.uri().host().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn axum_takes_the_layer_on_a_router_a_route_and_a_method() {
    let app: Router = Router::new()
        .route(
            "/",
            get(|| async { "made" })
                .layer(CircuitBreakerLayer::new("method", policy()).respond_with(ours::respond)),
        )
        .route_layer(CircuitBreakerLayer::new("route", policy()).respond_with(ours::respond))
        .layer(
            CircuitBreakerLayer::new("router", policy())
                .classify(|result: Result<&Response<_>, &_>| match result {
                    Ok(response) if response.status().is_server_error() => Outcome::Failure,
                    Ok(_) => Outcome::Success,
                    Err(_) => Outcome::Failure,
                })
                .respond_with(ours::respond),
        )
        .layer(
            CircuitBreakerLayer::keyed(policy(), |request: &Request<_>| host(request))
                .respond_with(ours::respond),
        );
    let request = Request::new(Body::empty());
    let response = app
        .oneshot(request)
        .await
        .expect("axum services never fail");
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn keys_may_be_borrowed_optional_or_come_with_a_policy_and_a_handle() {
    let hosts = CircuitBreakers::<String>::new(policy());
    let by_path =
        CircuitBreakerLayer::keyed_ref(policy(), |request: &Request<_>| request.uri().path());
    let by_host = CircuitBreakerLayer::keyed(&hosts, |request: &Request<_>| host(request));
    let some = CircuitBreakerLayer::keyed_with(hosts.clone(), |request: &Request<_>| {
        let strict = CircuitPolicy::builder().consecutive(1).build();
        request
            .uri()
            .host()
            .map(|host| (host.to_owned(), strict.ok()))
    });
    let app = Router::new()
        .route("/a", get(|| async { "made" }))
        .layer(by_path.respond_with(ours::respond))
        .layer(by_host.respond_with(ours::respond))
        .layer(some.respond_with(ours::respond));
    let request = Request::get("http://there/a").body(Body::empty()).unwrap();
    assert_eq!(app.oneshot(request).await.unwrap().status(), StatusCode::OK);
    assert!(
        hosts.contains("there"),
        "the handle is the layers' registry"
    );
}

#[tokio::test]
async fn buffer_over_the_layer_over_a_timeout_gives_the_refusal_by_downcast() {
    let layer = CircuitBreakerLayer::new("billing", policy()).flatten_error();
    layer.breaker().force_open();
    let stack = ServiceBuilder::new()
        .buffer(8)
        .layer(layer)
        .layer(TimeoutLayer::new(Duration::from_secs(1)))
        .service_fn(|request: u32| async move { Ok::<_, BoxError>(request) });
    let error = stack.oneshot(1).await.unwrap_err();
    let refusal = error
        .downcast_ref::<CircuitOpen>()
        .expect("the refusal is at the top");
    assert_eq!(refusal.name(), "billing");
}

#[tokio::test]
async fn the_default_form_gives_the_refusal_with_its_data() {
    let layer = CircuitBreakerLayer::new("billing", policy());
    layer.breaker().force_open();
    let service = ServiceBuilder::new()
        .layer(layer)
        .service_fn(|request: u32| async move { Ok::<_, std::io::Error>(request) });
    match service.oneshot(1).await {
        Err(Error::Refused(refusal)) => assert_eq!(refusal.retry_after(), None, "by hand"),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn tonic_takes_the_layer_on_a_server_and_over_a_channel() {
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", socket.local_addr().unwrap());
    let incoming = tonic::transport::server::TcpIncoming::from(socket);
    let (_, health) = tonic_health::server::health_reporter();
    let guarded = CircuitBreakerLayer::new("server", policy()).respond_with(grpc::respond);
    let breaker = guarded.breaker().clone();
    let server = tonic::transport::Server::builder()
        .layer(guarded)
        .add_service(health)
        .serve_with_incoming(incoming);
    let server = tokio::spawn(server);

    let channel = tonic::transport::Endpoint::from_shared(address)
        .unwrap()
        .connect_lazy();
    let stack = ServiceBuilder::new()
        .layer(CircuitBreakerLayer::new("plain", policy()))
        .layer(CircuitBreakerLayer::new("answered", policy()).respond_with(grpc::respond))
        .service(channel);
    fn grpc_service<S: tonic::client::GrpcService<tonic::body::Body>>(_: &S) {}
    grpc_service(&stack);
    let mut client = HealthClient::new(stack);
    client
        .check(HealthCheckRequest::default())
        .await
        .expect("the circuits are closed");
    breaker.force_open();
    let status = client
        .check(HealthCheckRequest::default())
        .await
        .unwrap_err();
    assert_eq!(
        status.code(),
        tonic::Code::Unavailable,
        "refused by the server's circuit"
    );
    server.abort();
}

#[tokio::test]
async fn an_own_error_type_and_an_infallible_service_keep_their_types() {
    #[derive(Debug)]
    enum Mine {
        Open(CircuitOpen),
    }
    impl From<CircuitOpen> for Mine {
        fn from(refusal: CircuitOpen) -> Self {
            Self::Open(refusal)
        }
    }
    let layer = CircuitBreakerLayer::new("billing", policy());
    layer.breaker().force_open();
    let flat = ServiceBuilder::new()
        .layer(layer.clone().flatten_error())
        .service_fn(|(): ()| async { Ok::<_, Mine>(()) });
    let Err(Mine::Open(refusal)) = flat.oneshot(()).await else {
        panic!("expected a refusal");
    };
    assert_eq!(refusal.name(), "billing");
    let answered = ServiceBuilder::new()
        .layer(layer.respond_with(|refusal: &CircuitOpen| refusal.to_string()))
        .service(service_fn(|(): ()| async {
            Ok::<_, Infallible>(String::new())
        }));
    let Ok(text) = answered.oneshot(()).await;
    assert_eq!(text, "circuit billing is open");
}
