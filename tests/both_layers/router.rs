use std::net::SocketAddr;

use axum::Router;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use tokio::net::TcpListener;
use tower_sluice::circuit_breaker::CircuitState;
use tower_sluice::clock::Clock;
use tower_sluice::http::{StatusClassifier, respond};
use tower_sluice::{
    CircuitBreaker, CircuitBreakerLayer, CircuitPolicy, KeyedRateLimiter, Quota, RateLimitLayer,
};

async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback has a port");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move { axum::serve(listener, app).await.expect("the server runs") });
    address
}

/// Asks over a connection of its own.
async fn ask(address: SocketAddr, path: &str) -> (u16, Option<String>) {
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a plain client");
    let answer = client
        .get(format!("http://{address}{path}"))
        .send()
        .await
        .expect("it answers");
    let retry_after = answer.headers().get("retry-after");
    let retry_after = retry_after.map(|value| value.to_str().expect("digits").to_owned());
    (answer.status().as_u16(), retry_after)
}

/// The limit outside, the breaker inside: refusals of the limit never reach the breaker, and both
/// states hold over connections, each of which axum gives a service of its own.
#[tokio::test]
async fn both_layers_on_one_router_keep_apart_and_hold_over_connections() {
    let time = Clock::manual();
    let policy = CircuitPolicy::builder()
        .consecutive(3)
        .open_jitter(0.0)
        .build();
    let breaker = CircuitBreaker::builder("broken", policy.expect("valid"))
        .clock(&time)
        .build();
    let paths = KeyedRateLimiter::builder(Quota::per_minute(5))
        .clock(&time)
        .build();
    let app = Router::new()
        .route("/", get(async || StatusCode::INTERNAL_SERVER_ERROR))
        .layer(
            CircuitBreakerLayer::from(breaker.clone())
                .classify(StatusClassifier::default())
                .respond_with(respond),
        )
        .layer(
            RateLimitLayer::keyed(paths.expect("valid"), |request: &Request<_>| {
                request.uri().path().to_owned()
            })
            .respond_with(respond),
        );
    let address = serve(app).await;

    for _ in 0..3 {
        assert_eq!(ask(address, "/").await, (500, None));
    }
    assert_eq!(
        breaker.state(),
        CircuitState::Open,
        "three failures over three connections"
    );
    for _ in 0..2 {
        assert_eq!(ask(address, "/").await, (503, Some("5".to_owned())));
    }
    assert_eq!(
        ask(address, "/").await,
        (429, Some("12".to_owned())),
        "five a minute"
    );
    assert_eq!(
        ask(address, "/other").await.0,
        503,
        "another path, another limit, one circuit"
    );
}
