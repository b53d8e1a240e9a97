//! At home in HTTP: what refused callers are answered, whose call it is, how a call went and when
//! it ended; for axum, hyper, reqwest, and everything else that speaks `http` types.
//!
//! The layers themselves know nothing of HTTP. What follows are responders, key functions and
//! classifiers that are given to them; [`grpc`](crate::grpc) has those of gRPC.
//!
//! # Refusing
//!
//! [`respond`] answers 429 for a limit ([RFC 6585](https://www.rfc-editor.org/rfc/rfc6585#section-4))
//! and 503 for an open circuit ([RFC 9110](https://www.rfc-editor.org/rfc/rfc9110#section-15.6.4)),
//! with `Retry-After` in whole seconds, rounded up and never 0. [`respond_empty`] does so without
//! a body; [`Responder`] leaves status, headers, jitter and body to choice, among them problem
//! details ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)); [`respond_auto`] serves a router
//! that has gRPC as well.
//!
//! ```
//! use axum::{Router, routing::get};
//! use tower::ServiceExt;
//! use tower_sluice::http as sluice;
//! use tower_sluice::rate_limit::{Quota, RateLimitLayer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let app: Router = Router::new().route("/", get(async || "hello")).layer(
//!     RateLimitLayer::new(Quota::per_minute(1))
//!         .headers(sluice::RateHeaders::new().draft_11("api"))
//!         .respond_with(sluice::respond),
//! );
//!
//! let ask = async || {
//!     let request = http::Request::new(axum::body::Body::empty());
//!     app.clone().oneshot(request).await.unwrap()
//! };
//! let admitted = ask().await;
//! assert_eq!(admitted.status(), 200);
//! assert_eq!(admitted.headers()["ratelimit-policy"], r#""api";q=1;w=60"#);
//! let refused = ask().await;
//! assert_eq!(refused.status(), 429);
//! assert_eq!(refused.headers()["retry-after"], "60");
//! # }
//! ```
//!
//! [`RateHeaders`] tells callers of their quota on admitted answers too.
//!
//! Several layers on one axum method router go into a `tower::ServiceBuilder`, whose first layer is
//! the outermost: of `get(…).layer(…).layer(…)` the compiler cannot infer the error in between.
//!
//! A refusal is [marked](Refused), so that a breaker of this crate further out never counts it as
//! a failure of the host.
//!
//! # Whose call it is
//!
//! [`ClientIp`] finds the client's address: the peer's, or what a stated number of proxies or
//! networks of proxies says of it in `X-Forwarded-For` or `Forwarded`
//! ([RFC 7239](https://www.rfc-editor.org/rfc/rfc7239)). [`header`], [`path`], [`method`],
//! [`host`], [`authority`] and, with feature `axum`, `matched_path` find other keys; a closure joins several
//! in a tuple. What becomes of a request without a key is said where the key is given to the
//! layer: [`or_refuse`], [`or_shared`] or [`or_unlimited`].
//!
//! ```
//! use http::Request;
//! use tower_sluice::http::{self as sluice, ClientIp, Trust};
//! use tower_sluice::rate_limit::{Quota, RateLimitLayer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Per client behind our own proxies, preflights not charged:
//! let client = ClientIp::x_forwarded_for(Trust::networks(["10.0.0.0/8".parse()?]));
//! let per_client = RateLimitLayer::keyed_with(Quota::per_second(10), client.or_refuse())
//!     .skip(sluice::is_preflight)
//!     .respond_with(sluice::respond);
//!
//! // Per API key, and one quota for all who show none:
//! let key = sluice::header(http::HeaderName::from_static("x-api-key"));
//! let per_key = RateLimitLayer::keyed(Quota::per_second(10), sluice::or_shared(key))
//!     .respond_with(sluice::respond);
//! # let _: axum::Router = axum::Router::new()
//! #     .route("/", axum::routing::get(async || "hello"))
//! #     .layer(per_client)
//! #     .layer(per_key);
//! # Ok(())
//! # }
//! ```
//!
//! # How a call went
//!
//! axum answers errors as responses, so a breaker that looks at errors alone never trips there.
//! [`StatusClassifier`] counts 5xx and errors as failures. With `.until_body_end()` a call ends
//! where its [body](TrackedBody) does: slow bodies are slow calls and broken ones failures.
//!
//! ```
//! use axum::body::Body;
//! use http::Request;
//! use hyper_util::{client::legacy::Client, rt::TokioExecutor};
//! use tower::ServiceBuilder;
//! use tower_sluice::circuit_breaker::{CircuitBreakerLayer, CircuitPolicy};
//! use tower_sluice::http::{self as sluice, StatusClassifier};
//!
//! let by_host = |request: &Request<Body>| Some((sluice::authority(request)?, None));
//! let breaker = CircuitBreakerLayer::keyed_with(CircuitPolicy::default(), by_host)
//!     .classify(StatusClassifier::new())
//!     .until_body_end();
//! let client = Client::builder(TokioExecutor::new()).build_http();
//! let client = ServiceBuilder::new().layer(breaker).service(client);
//! # fn service<S: tower::Service<Request<Body>>>(_: S) {}
//! # service(client);
//! ```
//!
//! reqwest's client is a service of its own types, so its responses are
//! [mapped](https://docs.rs/tower/latest/tower/struct.ServiceBuilder.html#method.map_response)
//! first; its connector layers see connections, not calls, and are not the place. The example
//! `reqwest` has it in full:
//!
//! ```
//! use tower::ServiceBuilder;
//! use tower_sluice::circuit_breaker::{CircuitBreakerLayer, CircuitPolicy};
//! use tower_sluice::http::StatusClassifier;
//!
//! // Scheme, host and port; `authority()` would hold a user name and password too.
//! let by_host = |request: &reqwest::Request| request.url().origin().ascii_serialization();
//! let client = ServiceBuilder::new()
//!     .layer(CircuitBreakerLayer::keyed(CircuitPolicy::default(), by_host)
//!         .classify(StatusClassifier::new())
//!         .until_any_body_end())
//!     .map_response(http::Response::<reqwest::Body>::from)
//!     .service(reqwest::Client::new());
//! # fn service<S: tower::Service<reqwest::Request>>(_: S) {}
//! # service(client);
//! ```

mod auto;
mod classify_end;
pub mod client_ip;
pub use crate::circuit_breaker::error_chain;
mod finders;
#[cfg(feature = "axum")]
mod matched_path;
mod missing_key;
mod preflight;
pub mod rate_headers;
mod refused;
mod respond;
pub mod respond_body;
mod responder;
pub(crate) mod retry_after;
mod status_classifier;
#[cfg(test)]
pub(crate) mod tests;
mod tracked_body;
mod tracked_call;
mod until_body_end;
mod upstream_wait;

pub use auto::{AutoResponder, respond_auto};
pub use classify_end::ClassifyEnd;
pub use client_ip::{ClientIp, Trust};
pub use finders::{authority, header, host, method, path};
pub use ipnet::IpNet;
#[cfg(feature = "axum")]
pub use matched_path::matched_path;
pub use missing_key::{or_refuse, or_shared, or_unlimited};
pub use preflight::is_preflight;
pub use rate_headers::RateHeaders;
pub use refused::Refused;
pub use respond::{respond, respond_empty};
pub use responder::Responder;
pub use status_classifier::StatusClassifier;
pub use tracked_body::TrackedBody;
pub use until_body_end::{UntilAnyBodyEnd, UntilBodyEnd};
