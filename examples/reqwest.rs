//! A reqwest client that keeps within a rate by waiting, and leaves a failing host alone.
//!
//! Both go around the client as service layers. `ClientBuilder::connector_layer` is not the place:
//! what it wraps is asked for connections, which many calls share, and learns nothing of what they
//! are answered. The example shows that too.
//!
//! `cargo run --example reqwest`

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::StatusCode;
use reqwest::{Body, Client, Method, Request, Response, Url};
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitBreakerLayer, CircuitBreakers, CircuitPolicy, CircuitState,
};
use tower_sluice::clock::Clock;
use tower_sluice::http::StatusClassifier;
use tower_sluice::rate_limit::{Quota, RateLimitLayer};

type BoxError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (steady, _) = serve().await?;
    let (shaky, host) = serve().await?;

    // A clock that the example moves; waiting calls wake by it.
    let clock = Clock::manual();
    let policy = CircuitPolicy::builder().consecutive(2).build()?;

    // Fits as a connector layer too, but there it sees connections only.
    let connecting = CircuitBreaker::builder("connect", policy.clone())
        .counters()
        .build();
    let client = Client::builder()
        .no_proxy()
        .connector_layer(CircuitBreakerLayer::from(connecting.clone()).flatten_error())
        .build()?;

    let hosts = CircuitBreakers::<String>::builder(policy)
        .clock(clock.clone())
        .build()?;
    // Scheme, host and port: of a URL's `authority()` a user name and password are part.
    let by_host = |request: &Request| request.url().origin().ascii_serialization();
    let rate = RateLimitLayer::new(Quota::per_second(2))
        .clock(clock.clone())
        .wait(Duration::from_secs(60));

    // The breaker is inside: a call that waits for its turn is not yet a call to the host. Between
    // the two maps a response is an `http::Response`, which the classifier and the body's end
    // know how to read.
    let mut client = ServiceBuilder::new()
        .layer(rate)
        .map_response(|response: http::Response<_>| Response::from(response.map(Body::wrap)))
        .layer(
            CircuitBreakerLayer::keyed(hosts.clone(), by_host)
                .classify(StatusClassifier::new())
                .until_any_body_end(),
        )
        .map_response(http::Response::<Body>::from)
        .service(client);

    println!("six calls at once, of which two a second may go:");
    let mut calls = FuturesUnordered::new();
    for _ in 0..6 {
        calls.push(client.ready().await?.call(get_from(steady)));
    }
    for sent in 1..=6 {
        if sent > 2 {
            assert!(calls.next().now_or_never().is_none(), "the others wait");
            clock.advance(Duration::from_millis(500));
        }
        let response = calls.next().await.expect("one more")?;
        assert_eq!(response.status(), StatusCode::OK);
        println!(
            "  {:?}: {}",
            Duration::from(clock.now()),
            response.text().await?
        );
    }

    println!("a host that fails is left alone after two failures:");
    host.fails.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        clock.advance(Duration::from_secs(1));
        let response = client.ready().await?.call(get_from(shaky)).await?;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        println!("  {}", response.status());
    }
    clock.advance(Duration::from_secs(1));
    let error = client.ready().await?.call(get_from(shaky)).await;
    let error = error.expect_err("its circuit is open");
    println!("  {error}");
    assert_eq!(host.asked.load(Ordering::SeqCst), 2, "not asked again");
    let open = hosts.get(&format!("http://{shaky}")).expect("a breaker");
    assert_eq!(open.state(), CircuitState::Open);

    println!("while the connector has seen nothing but good connections");
    let totals = connecting.snapshot().totals.expect("counted");
    assert!(totals.successes > 0);
    assert_eq!(totals.failures, 0);
    Ok(())
}

fn get_from(host: SocketAddr) -> Request {
    let url = format!("http://me:secret@{host}/");
    Request::new(Method::GET, Url::parse(&url).expect("a URL"))
}

#[derive(Default)]
struct Host {
    fails: AtomicBool,
    asked: AtomicU32,
}

/// Serves a host on a free port.
async fn serve() -> Result<(SocketAddr, Arc<Host>), BoxError> {
    let host = Arc::new(Host::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = Router::new()
        .route("/", get(answer))
        .with_state(host.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok((address, host))
}

async fn answer(State(host): State<Arc<Host>>) -> (StatusCode, &'static str) {
    host.asked.fetch_add(1, Ordering::SeqCst);
    if host.fails.load(Ordering::SeqCst) {
        (StatusCode::SERVICE_UNAVAILABLE, "not now")
    } else {
        (StatusCode::OK, "hello")
    }
}
