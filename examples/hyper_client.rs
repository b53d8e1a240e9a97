//! A hyper client with a circuit breaker for each host, on calls that last until the end of the
//! body: a host that breaks its answers off is left alone, while another goes on as ever.
//!
//! `cargo run --example hyper_client`

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use futures_util::stream::{self, StreamExt};
use http::Request;
use http::uri::Authority;
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_sluice::circuit_breaker::{
    CircuitBreakerLayer, CircuitBreakers, CircuitPolicy, CircuitState,
};
use tower_sluice::clock::Clock;
use tower_sluice::http::{StatusClassifier, authority};

type BoxError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (steady, _) = serve(Host::default()).await?;
    let (shaky, host) = serve(Host::default()).await?;

    // A clock that the example moves, so that nobody has to wait for the circuit to recover.
    let clock = Clock::manual();
    let policy = CircuitPolicy::builder()
        .consecutive(3)
        .open_for(Duration::from_secs(5))
        .open_jitter(0.0)
        .probes(1)
        .build()?;
    let hosts = CircuitBreakers::<Authority>::builder(policy)
        .name_of(|host| Authority::to_string(host).into())
        .clock(clock.clone())
        .build()?;

    // The three lines that a hyper client needs.
    let by_host = |request: &Request<Body>| Some((authority(request)?, None));
    let breaker = CircuitBreakerLayer::keyed_with(hosts.clone(), by_host)
        .classify(StatusClassifier::new())
        .until_body_end();

    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut client = ServiceBuilder::new().layer(breaker).service(client);
    let state_of = |host: SocketAddr| {
        let key = host.to_string().parse::<Authority>().expect("an authority");
        hosts.get(&key).map(|breaker| breaker.state())
    };

    println!("both hosts are well:");
    for host in [steady, shaky] {
        assert_eq!(fetch(&mut client, host).await?, "hello, world");
    }

    println!("one begins to break its answers off; their heads still say 200:");
    host.breaks_off.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let error = fetch(&mut client, shaky).await.expect_err("cut short");
        assert!(error.is::<hyper::Error>(), "hyper's own error");
    }
    assert_eq!(state_of(shaky), Some(CircuitState::Open));

    println!("its circuit is open, so it is left alone; the other is not concerned:");
    let asked = host.asked.load(Ordering::SeqCst);
    for _ in 0..5 {
        let error = fetch(&mut client, shaky).await.expect_err("refused");
        assert!(error.to_string().contains("is open"), "{error}");
    }
    assert_eq!(
        host.asked.load(Ordering::SeqCst),
        asked,
        "no call reached it"
    );
    assert_eq!(fetch(&mut client, steady).await?, "hello, world");
    assert_eq!(state_of(steady), Some(CircuitState::Closed));

    println!("it gets well, and five seconds later one call finds out:");
    host.breaks_off.store(false, Ordering::SeqCst);
    clock.advance(Duration::from_secs(5));
    assert_eq!(fetch(&mut client, shaky).await?, "hello, world");
    assert_eq!(state_of(shaky), Some(CircuitState::Closed));
    println!("closed again");
    Ok(())
}

/// Calls `host` and reads the whole answer.
async fn fetch<S, B>(client: &mut S, host: SocketAddr) -> Result<String, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>>,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>>,
{
    let request = Request::get(format!("http://{host}/")).body(Body::empty())?;
    let answer = async {
        let ready = client.ready().await.map_err(Into::into)?;
        let response = ready.call(request).await.map_err(Into::into)?;
        let whole = response.into_body().collect().await.map_err(Into::into)?;
        Ok(String::from_utf8(whole.to_bytes().to_vec())?)
    };
    let answer = answer.await;
    match &answer {
        Ok(text) => println!("  {host}: {text}"),
        Err(error) => println!("  {host}: {error}"),
    }
    answer
}

#[derive(Default)]
struct Host {
    breaks_off: AtomicBool,
    asked: AtomicU32,
}

/// Serves a host on a free port; its answers come in two parts, or break off after the first.
async fn serve(host: Host) -> Result<(SocketAddr, Arc<Host>), BoxError> {
    let host = Arc::new(host);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = Router::new()
        .route("/", get(answer))
        .with_state(host.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok((address, host))
}

async fn answer(State(host): State<Arc<Host>>) -> Result<Response, Infallible> {
    host.asked.fetch_add(1, Ordering::SeqCst);
    let rest = if host.breaks_off.load(Ordering::SeqCst) {
        Err(std::io::Error::other("the host breaks off"))
    } else {
        Ok(Bytes::from_static(b"world"))
    };
    let first = stream::iter([Ok(Bytes::from_static(b"hello, "))]);
    let rest = stream::once(async {
        // hyper sends what it has when it has to wait, so the head is out before the break.
        tokio::task::yield_now().await;
        rest
    });
    Ok(Response::new(Body::from_stream(first.chain(rest))))
}
