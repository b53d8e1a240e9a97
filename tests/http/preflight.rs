//! CORS in front of a limit.

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use http::{HeaderValue, Method, Request, header};
use tower::ServiceExt;
use tower_http::cors::CorsLayer;
use tower_sluice::clock::Clock;
use tower_sluice::http as sluice;
use tower_sluice::rate_limit::{Quota, RateLimitLayer};

const ORIGIN: HeaderValue = HeaderValue::from_static("https://example.com");

fn request(method: Method, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder().method(method).uri("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).expect("a request")
}

#[tokio::test]
async fn h33_preflights_are_skipped_and_a_429_has_cors_headers() {
    let limit = RateLimitLayer::new(Quota::per_minute(2))
        .clock(Clock::manual())
        .skip(sluice::is_preflight)
        .respond_with(sluice::respond);
    let cors = CorsLayer::new()
        .allow_origin(ORIGIN)
        .expose_headers([header::RETRY_AFTER]);
    // Inside the limit something answers preflights too, so that they are seen to get there.
    let answer = get(async || "hello").options(async || "preflight");
    let app = Router::new().route("/", answer).layer(limit.clone());

    let preflight = [
        ("origin", "https://example.com"),
        ("access-control-request-method", "GET"),
    ];
    let origin = &preflight[..1];
    let ask = |app: &Router, request| {
        let app = app.clone();
        async move {
            let Ok(response) = app.oneshot(request).await;
            response
        }
    };
    for _ in 0..2 {
        let answer: Response = ask(&app, request(Method::OPTIONS, &preflight)).await;
        assert_eq!(answer.status(), 200, "a preflight is never charged");
        let answer = ask(&app, request(Method::GET, origin)).await;
        assert_eq!(answer.status(), 200, "so both calls pass");
    }
    let refused = ask(&app.clone().layer(cors), request(Method::GET, origin)).await;
    assert_eq!(refused.status(), 429);
    let headers = refused.headers();
    assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], ORIGIN);
    assert_eq!(
        headers[header::ACCESS_CONTROL_EXPOSE_HEADERS],
        "retry-after"
    );
    assert_eq!(headers[header::RETRY_AFTER], "30");

    let answer = ask(&app, request(Method::OPTIONS, &[])).await;
    assert_eq!(
        answer.status(),
        429,
        "a plain OPTIONS is a call like others"
    );
}
