//! Over real sockets, on loopback.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tower::{Layer, Service, ServiceExt};
use tower_sluice::circuit_breaker::{
    CircuitBreakerLayer, CircuitBreakerService, CircuitOpen, CircuitPolicy, CircuitState, Outcome,
};
use tower_sluice::{Error, http as ours};

use crate::harness::{OPEN, brittle, circuit};

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Well,
    Hangs,
    Resets,
}

/// A server that does as its mood says; it counts what reaches it.
struct Moody {
    mood: Mutex<Mood>,
    requests: AtomicUsize,
    connections: AtomicUsize,
    hanging: Notify,
}

impl Moody {
    async fn start() -> (SocketAddr, Arc<Self>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Arc::new(Self {
            mood: Mutex::new(Mood::Well),
            requests: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            hanging: Notify::new(),
        });
        tokio::spawn(server.clone().accept(listener));
        (address, server)
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            self.connections.fetch_add(1, Ordering::SeqCst);
            if *self.mood.lock() == Mood::Resets {
                stream.set_zero_linger().unwrap();
                continue;
            }
            let server = self.clone();
            let service = hyper::service::service_fn(move |_: Request<Incoming>| {
                let server = server.clone();
                async move { Ok::<_, Infallible>(server.answer().await) }
            });
            let io = TokioIo::new(stream);
            tokio::spawn(http1::Builder::new().serve_connection(io, service));
        }
    }

    async fn answer(&self) -> Response<Full<Bytes>> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        if *self.mood.lock() == Mood::Hangs {
            self.hanging.notify_one();
            std::future::pending::<()>().await;
        }
        Response::new(Full::from("well"))
    }

    fn reached(&self) -> (usize, usize) {
        let requests = self.requests.load(Ordering::SeqCst);
        (requests, self.connections.load(Ordering::SeqCst))
    }
}

type Guarded = CircuitBreakerService<Client<HttpConnector, Empty<Bytes>>>;

async fn fetch(
    service: &mut Guarded,
    address: SocketAddr,
) -> Result<Bytes, Error<CircuitOpen, ClientError>> {
    let request = Request::get(format!("http://{address}/"))
        .body(Empty::new())
        .unwrap();
    let response = service.ready().await?.call(request).await?;
    Ok(response
        .into_body()
        .collect()
        .await
        .expect("the body is whole")
        .to_bytes())
}

#[tokio::test]
async fn a_hyper_client_whose_server_hangs_resets_connections_and_comes_back() {
    let (address, server) = Moody::start().await;
    let policy = brittle()
        .consecutive(3)
        .slow_threshold(Duration::from_secs(1));
    let (time, breaker) = circuit(policy);
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut service = CircuitBreakerLayer::from(breaker.clone()).layer(client);
    let state = || breaker.snapshot().state;

    for _ in 0..5 {
        assert_eq!(fetch(&mut service, address).await.unwrap(), "well");
    }

    *server.mood.lock() = Mood::Hangs;
    for _ in 0..3 {
        assert_eq!(state(), CircuitState::Closed);
        let mut hanging = Box::pin(fetch(&mut service, address));
        tokio::select! {
            answer = &mut hanging => panic!("it hangs, yet gave {answer:?}"),
            () = server.hanging.notified() => time.advance(Duration::from_secs(2)),
        }
        drop(hanging);
    }
    assert_eq!(
        state(),
        CircuitState::Open,
        "three calls given up past the slow threshold"
    );

    let reached = server.reached();
    for _ in 0..10 {
        let refused = fetch(&mut service, address).await;
        assert!(matches!(refused, Err(Error::Refused(_))));
    }
    assert_eq!(
        server.reached(),
        reached,
        "neither a request nor a connection got through"
    );

    *server.mood.lock() = Mood::Resets;
    time.advance(OPEN);
    let probe = fetch(&mut service, address).await;
    assert!(
        matches!(probe, Err(Error::Inner(_))),
        "the probe meets a reset: {probe:?}"
    );
    assert_eq!(state(), CircuitState::Open, "and reopens");

    *server.mood.lock() = Mood::Well;
    time.advance(OPEN);
    assert_eq!(
        fetch(&mut service, address).await.unwrap(),
        "well",
        "the next probe"
    );
    assert_eq!(state(), CircuitState::Closed);
    assert_eq!(fetch(&mut service, address).await.unwrap(), "well");
}

/// The status of one request over a connection of its own.
async fn status(address: SocketAddr, path: &str) -> StatusCode {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    StatusCode::from_bytes(&answer[9..12]).expect("a status line")
}

#[tokio::test]
async fn many_connections_of_one_axum_server_share_the_circuit() {
    let handled = Arc::new(AtomicUsize::new(0));
    let count = handled.clone();
    let handler = move || {
        count.fetch_add(1, Ordering::SeqCst);
        std::future::ready(StatusCode::INTERNAL_SERVER_ERROR)
    };
    let policy = CircuitPolicy::builder().consecutive(3).build().unwrap();
    let layer = CircuitBreakerLayer::new("backend", policy)
        .classify(|result: Result<&Response<_>, &_>| match result {
            Ok(response) if response.status().is_server_error() => Outcome::Failure,
            Ok(_) | Err(_) => Outcome::Success,
        })
        .respond_with(ours::respond);
    let app = Router::new()
        .route("/a", get(handler.clone()))
        .route("/b", get(handler))
        .layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    for path in ["/a", "/b", "/a"] {
        assert_eq!(
            status(address, path).await,
            StatusCode::INTERNAL_SERVER_ERROR
        );
    }
    for path in ["/a", "/b", "/a", "/b"] {
        assert_eq!(status(address, path).await, StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(
        handled.load(Ordering::SeqCst),
        3,
        "refused calls reach no handler"
    );
    server.abort();
}
