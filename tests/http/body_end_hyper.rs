//! Where a call ends over real HTTP/1.1 and HTTP/2: what hyper's bodies say of themselves.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::Response;
use axum::routing::any;
use http::{Method, Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use tower::{Layer, ServiceExt};
use tower_sluice::circuit_breaker::{
    CallEnd, CircuitBreaker, CircuitBreakerLayer, CircuitEventKind, CircuitPolicy,
};
use tower_sluice::http::StatusClassifier;

use crate::over::serve;

pub type Ends = Arc<Mutex<Vec<CallEnd>>>;

pub fn breaker() -> (CircuitBreaker, Ends) {
    let ends = Ends::default();
    let heard = ends.clone();
    let breaker = CircuitBreaker::builder("host", CircuitPolicy::default())
        .on_event(move |event| match event.kind {
            CircuitEventKind::Completed { end, .. } => heard.lock().push(end),
            CircuitEventKind::Discarded { .. } => panic!("nothing trips here"),
            _ => {}
        })
        .build();
    (breaker, ends)
}

/// The response that each path names.
pub async fn scripted(request: Request<Body>) -> Response {
    let frames = |count: usize| {
        let frames = (0..count).map(|_| Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x"))));
        Body::new(StreamBody::new(futures_util::stream::iter(frames)))
    };
    match request.uri().path() {
        "/length" => Response::new(Body::from("hello")),
        "/empty" => Response::new(Body::empty()),
        "/no-content" => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        "/not-modified" => {
            let mut response = Response::new(Body::from("a body that no server sends"));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        "/chunked" => Response::new(frames(3)),
        "/endless" => {
            let once = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(b"x")))]);
            let endless = futures_util::stream::pending::<Result<_, Infallible>>();
            let frames = futures_util::StreamExt::chain(once, endless);
            Response::new(Body::new(StreamBody::new(frames)))
        }
        path => panic!("no script for {path}"),
    }
}

pub fn client(http2: bool) -> Client<HttpConnector, Body> {
    Client::builder(TokioExecutor::new())
        .http2_only(http2)
        .build_http()
}

/// How far the caller reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Read {
    /// Not at all: the response is dropped as it came.
    Nothing,
    /// Frames, as long as some are told to come: the last poll, which yields nothing, is left out.
    UntilSaid,
    /// To the very end.
    All,
    /// One frame.
    One,
}

/// Asks once, reads as told, drops the rest, and tells how the call ended.
async fn end_of(
    address: SocketAddr,
    http2: bool,
    method: Method,
    path: &str,
    read: Read,
) -> Vec<CallEnd> {
    let (breaker, ends) = breaker();
    let service = CircuitBreakerLayer::from(breaker)
        .classify(StatusClassifier::new())
        .until_body_end()
        .layer(client(http2));
    let request = Request::builder()
        .method(method)
        .uri(format!("http://{address}{path}"))
        .body(Body::empty());
    let response = service.oneshot(request.expect("a request")).await;
    let mut body = response.expect("an answer").into_body();
    match read {
        Read::Nothing => {}
        Read::One => drop(body.frame().await),
        Read::All => {
            while let Some(frame) = body.frame().await {
                frame.expect("no error");
            }
        }
        Read::UntilSaid => {
            while ends.lock().is_empty() {
                body.frame().await.expect("more to come").expect("no error");
            }
        }
    }
    drop(body);
    ends.lock().clone()
}

#[tokio::test]
async fn a_call_ends_with_its_body_over_both_protocols() {
    let address = serve(axum::Router::new().fallback(any(scripted))).await;
    for http2 in [false, true] {
        let ask = async |method, path, read| {
            let ends = end_of(address, http2, method, path, read).await;
            assert_eq!(
                ends.len(),
                1,
                "{path}, {read:?}: recorded once, http2 {http2}"
            );
            ends[0]
        };
        // Nothing is to come, so nobody need read it.
        for (method, path) in [
            (Method::HEAD, "/length"),
            (Method::HEAD, "/chunked"),
            (Method::GET, "/no-content"),
            (Method::GET, "/empty"),
        ] {
            let end = ask(method.clone(), path, Read::Nothing).await;
            assert_eq!(end, CallEnd::Success, "{method} {path}, http2 {http2}");
        }
        for path in ["/length", "/chunked"] {
            let end = ask(Method::GET, path, Read::All).await;
            assert_eq!(end, CallEnd::Success, "{path}, http2 {http2}");
            let end = ask(Method::GET, path, Read::Nothing).await;
            assert_eq!(end, CallEnd::Cancelled, "{path} unread, http2 {http2}");
        }
        // Readers that go by the length never poll again after its last byte.
        let end = ask(Method::GET, "/length", Read::UntilSaid).await;
        assert_eq!(end, CallEnd::Success, "all of the length, http2 {http2}");
        let end = ask(Method::GET, "/endless", Read::One).await;
        assert_eq!(end, CallEnd::Cancelled, "given up, http2 {http2}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_one_failure() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    drop(listener);
    let (breaker, ends) = breaker();
    let service = CircuitBreakerLayer::from(breaker)
        .classify(StatusClassifier::new())
        .until_body_end()
        .layer(client(false));
    let request = Request::get(format!("http://{address}/")).body(Body::empty());
    let answer = service.oneshot(request.expect("a request")).await;
    let error = answer.expect_err("nobody listens").into_inner();
    assert!(error.expect("the client's own error").is_connect());
    assert_eq!(*ends.lock(), [CallEnd::Failure]);
}

#[tokio::test]
async fn reqwest_and_tonic_fail_to_connect_as_failures_too() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    drop(listener);

    let (breaker_, ends) = breaker();
    let client = reqwest::Client::builder().no_proxy().build();
    let service = tower::ServiceBuilder::new()
        .layer(CircuitBreakerLayer::from(breaker_).classify(StatusClassifier::new()))
        .map_response(http::Response::<reqwest::Body>::from)
        .service(client.expect("a client"));
    let url = format!("http://{address}/").parse().expect("a URL");
    let request = reqwest::Request::new(reqwest::Method::GET, url);
    let error = service.oneshot(request).await.expect_err("nobody listens");
    assert!(error.into_inner().expect("the client's own").is_connect());
    assert_eq!(*ends.lock(), [CallEnd::Failure], "reqwest");

    let (breaker, ends) = breaker();
    let service = CircuitBreakerLayer::from(breaker)
        .classify(tower_sluice::grpc::CodeClassifier::new())
        .until_body_end()
        .layer(crate::raw_grpc::channel(address));
    let call = crate::raw_grpc::call(service, crate::raw_grpc::Kind::Unary, (1, tonic::Code::Ok));
    let status = call.await.expect_err("nobody listens");
    assert_eq!(status.code(), tonic::Code::Unavailable);
    assert_eq!(*ends.lock(), [CallEnd::Failure], "tonic");
}
