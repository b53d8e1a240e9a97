//! Stacks and servers that the tests of this folder put a layer into.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::body::Body;
use axum::response::Response;
use futures_util::FutureExt;
use http::Request;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tower::{Layer, Service, ServiceExt};

/// Answers 200 to everything.
pub async fn ok<B>(_: Request<B>) -> Result<Response, Infallible> {
    Ok(Response::new(Body::empty()))
}

/// A request to `/` with these headers.
pub fn get(headers: &[(&str, &[u8])]) -> Request<Body> {
    let mut request = Request::get("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).expect("a request")
}

/// Calls a service that `layer` makes anew, as axum does for each connection; the answer must be
/// there at once.
pub fn call<L>(layer: &L, request: Request<Body>) -> Response
where
    L: Layer<tower::util::BoxCloneService<Request<Body>, Response, Infallible>>,
    L::Service: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    let inner = tower::service_fn(ok::<Body>);
    let service = layer.layer(tower::util::BoxCloneService::new(inner));
    let answer = service.oneshot(request).now_or_never();
    let Ok(response) = answer.expect("an answer at once");
    response
}

/// Serves `app` on a port of the loopback device.
pub async fn serve(app: axum::Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    tokio::spawn(async move {
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, app).await
    });
    address
}

/// A client of hyper's own, HTTP/1.1, that keeps its connections.
pub fn client() -> hyper_util::client::legacy::Client<HttpConnector, Body> {
    hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http()
}
