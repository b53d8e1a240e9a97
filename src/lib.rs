//! Two [Tower](https://docs.rs/tower) layers for any service: a **rate limit** and a **circuit
//! breaker**. Their state lives in the layer and is shared by every service made from it and by
//! every clone of those; decisions are exact under threads; a refusal is typed and says how long
//! to wait.
//!
//! | you want | take |
//! |---|---|
//! | at most so many calls in a time | [`RateLimitLayer::new`] |
//! | the same for each client, tenant or path | [`RateLimitLayer::keyed`] |
//! | to stop calling what is failing or slow | [`CircuitBreakerLayer::new`] |
//! | the same for each host | [`CircuitBreakerLayer::keyed`] |
//! | either without Tower | the handles [`RateLimiter`], [`KeyedRateLimiter`], [`CircuitBreaker`], [`CircuitBreakers`] |
//!
//! # How a refusal leaves
//!
//! Both layers say no in one of three ways, chosen on the layer (module [`reject`]): by default the
//! service's error is [`Error<R, E>`](Error); with `.flatten_error()` it stays `E`, made from the
//! refusal; with `.respond_with(f)` it stays `E` and the caller gets a response. So an axum router
//! needs neither `HandleErrorLayer` nor `Buffer`:
//!
#![cfg_attr(feature = "http", doc = "```")]
#![cfg_attr(not(feature = "http"), doc = "```ignore")]
//! use axum::{Router, routing::get};
//! use tower_sluice::{Quota, RateLimitLayer, http};
//!
//! let app: Router = Router::new()
//!     .route("/", get(async || "hello"))
//!     .layer(RateLimitLayer::new(Quota::per_second(100)).respond_with(http::respond));
//! # drop(app);
//! ```
//!
//! # Which layer goes outside which
//!
//! From the outside in, with tower's own layers; each line says what goes wrong otherwise.
//!
//! 1. **Load shed, buffer, concurrency limit** go outside both layers. A refused call leaves the
//!    readiness it was given with its own instance for the next call; a concurrency limit *inside*
//!    would keep a slot for it.
//! 2. **Rate limit** outside the retry: a caller's call counts once, however often it is tried.
//!    Inside it, each attempt counts, which is right where a provider counts attempts too.
//! 3. **Retry** outside the breaker: each attempt is judged, and an open circuit ends the attempts
//!    (do not retry a [`CircuitOpen`]: it says how long to wait).
//!    With the breaker outside, a call that succeeds at the third attempt is one success.
//! 4. **Circuit breaker** outside the timeout: a call that times out is then a failure with a
//!    time. With the timeout outside, it is a dropped call, which counts by the cancel rule
//!    ([`Cancel`](circuit_breaker::Cancel)).
//! 5. **Timeout**, closest to the service.
//!
//! A limiter that waits ([`RateLimitLayer::wait`]) goes outside the breaker, so that the time
//! waited is not counted against the service. `examples/service_builder.rs` runs the whole stack.
//!
//! # Time
//!
//! Handles read a [`clock::Clock`]: tokio's time by default, which tests pause and which needs no
//! runtime; `Clock::manual()` to move by hand; `Clock::tsc()` for half the price. There is no
//! background task: refill, recovery and eviction follow from the time at the next call.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `http` | yes | the modules `http` and `grpc`: responders, client addresses, classifiers |
//! | `axum` | no | keys from `ConnectInfo` and `MatchedPath` |
//! | `tonic` | no | refusals whose `source()` chain ends in a `tonic::Status`, and which become one by `.flatten_error()`; keys from tonic's connection info |
//! | `quanta` | no | `Clock::tsc()` |
//!
//! # Panics
//!
//! Only the short constructors panic, on values out of range, at the caller's line; each has a
//! `try_` form that returns a [`ConfigError`] instead. No panic in a key function, classifier,
//! listener or inner service poisons a lock, loses a permit or lifts a limit.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod circuit_breaker;
pub mod clock;
mod config_error;
#[cfg(feature = "http")]
pub mod grpc;
#[cfg(feature = "http")]
pub mod http;
mod name;
pub mod rate_limit;
pub mod reject;
mod sync;
mod when_full;

pub use circuit_breaker::{
    CircuitBreaker, CircuitBreakerLayer, CircuitBreakers, CircuitOpen, CircuitPolicy,
};
pub use config_error::ConfigError;
pub use name::Name;
pub use rate_limit::{KeyedRateLimiter, Quota, RateLimitLayer, RateLimited, RateLimiter};
pub use reject::Error;
pub use when_full::WhenFull;

/// The README's examples, compiled and run with the doc tests.
#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../README.md")]
struct Readme;
