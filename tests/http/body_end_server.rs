//! Where a call ends on a server, which never reads the body of an answer that has none.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::{Method, Request};
use tower::Layer;
use tower_sluice::circuit_breaker::{CallEnd, CircuitBreakerLayer};
use tower_sluice::http::{StatusClassifier, respond};

use crate::body_end_hyper::{breaker, client, scripted};
use crate::over::serve;

#[tokio::test]
async fn an_answer_without_a_body_ends_with_its_head_wherever_the_layer_lies() {
    let (breaker, ends) = breaker();
    let layer = CircuitBreakerLayer::from(breaker)
        .classify(StatusClassifier::new())
        .until_body_end()
        .respond_with(respond);
    let bare = layer.layer(tower::service_fn(async |request: Request<Body>| {
        Ok::<_, Infallible>(scripted(request).await)
    }));
    let places = [
        Router::new().fallback(any(scripted)).layer(layer.clone()),
        Router::new().fallback(any(scripted).layer(layer)),
        Router::new().fallback_service(bare),
    ];
    for (place, router) in places.into_iter().enumerate() {
        let address = serve(router).await;
        for (method, path) in [
            (Method::HEAD, "/length"),
            (Method::HEAD, "/chunked"),
            (Method::HEAD, "/empty"),
            (Method::HEAD, "/endless"),
            (Method::GET, "/no-content"),
            (Method::GET, "/not-modified"),
        ] {
            for http2 in [false, true] {
                let request = Request::builder().method(&method);
                let request = request.uri(format!("http://{address}{path}"));
                let request = request.body(Body::empty()).expect("a request");
                // The client's own reading is not at stake: hyper does send a 304's body over h2.
                drop(client(http2).request(request).await.expect("an answer"));
                assert_eq!(
                    std::mem::take(&mut *ends.lock()),
                    [CallEnd::Success],
                    "{method} {path}, http2 {http2}, place {place}: nobody reads such a body"
                );
            }
        }
    }
}

#[tokio::test]
async fn requests_of_any_type_end_with_their_bodies_and_hide_that_they_were_heads() {
    let (breaker, ends) = breaker();
    let layer = CircuitBreakerLayer::from(breaker)
        .classify(StatusClassifier::new())
        .until_any_body_end();
    let service = layer.layer(tower::service_fn(async |path: &'static str| {
        let request = Request::head(path).body(Body::empty());
        Ok::<_, Infallible>(scripted(request.expect("a request")).await)
    }));
    for (path, end) in [
        ("/length", CallEnd::Cancelled),
        ("/no-content", CallEnd::Success),
        ("/not-modified", CallEnd::Success),
    ] {
        let answer = tower::ServiceExt::oneshot(service.clone(), path).await;
        drop(answer.expect("it is closed"));
        assert_eq!(std::mem::take(&mut *ends.lock()), [end], "{path}, unread");
    }
}
