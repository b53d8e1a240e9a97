//! At home in gRPC: what refused callers are answered and how a call went; for tonic, but without
//! depending on it.
//!
//! # Refusing
//!
//! [`respond`] answers in gRPC's own way: `RESOURCE_EXHAUSTED` for a limit and `UNAVAILABLE` for an
//! open circuit ([the list of codes](https://github.com/grpc/grpc/blob/master/doc/statuscodes.md)),
//! with the delay as `grpc-retry-pushback-ms`
//! ([gRFC A6](https://github.com/grpc/proposal/blob/master/A6-client-retries.md)) and as
//! `google.rpc.RetryInfo`. [`Responder`] changes the codes and speaks gRPC-Web where the request
//! does; [`http::respond_auto`](crate::http::respond_auto) serves a router that has both gRPC and
//! other HTTP.
//!
//! ```
//! use tower_sluice::grpc;
//! use tower_sluice::rate_limit::{Quota, RateLimitLayer};
//!
//! let limit = RateLimitLayer::new(Quota::per_second(100)).respond_with(grpc::respond);
//! let (_reporter, health) = tonic_health::server::health_reporter();
//! let server = tonic::transport::Server::builder()
//!     .layer(limit)
//!     .add_service(health)
//!     .serve("127.0.0.1:50051".parse().unwrap());
//! # let _ = server;
//! ```
//!
//! # How a call went
//!
//! [`CodeClassifier`] judges by the status, which mostly stands in the trailers: with
//! `.until_body_end()` it sees it there. A refusal on a channel reaches the caller as the right
//! `tonic::Status`.
//!
//! ```
//! use tower::ServiceBuilder;
//! use tower_sluice::circuit_breaker::{CircuitBreakerLayer, CircuitPolicy};
//! use tower_sluice::grpc::{self, CodeClassifier};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let channel = tonic::transport::Channel::from_static("http://127.0.0.1:50051").connect_lazy();
//! let breaker = CircuitBreakerLayer::new("health", CircuitPolicy::default())
//!     .classify(CodeClassifier::new())
//!     .until_body_end()
//!     .respond_with(grpc::respond);
//! let channel = ServiceBuilder::new().layer(breaker).service(channel);
//! let client = tonic_health::pb::health_client::HealthClient::new(channel);
//! # let _ = client;
//! # }
//! ```

mod code;
mod code_classifier;
mod dialect;
#[cfg(not(feature = "tonic"))]
#[path = "error_code_none.rs"]
mod error_code;
#[cfg(feature = "tonic")]
#[path = "error_code_tonic.rs"]
mod error_code;
mod message;
mod respond;
mod responder;
mod retry_info;
mod status;

pub use code::Code;
pub use code_classifier::CodeClassifier;
pub(crate) use dialect::Dialect;
pub use respond::respond;
pub use responder::Responder;
