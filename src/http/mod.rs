//! Refusals, keys and verdicts for `http` types: at home in axum, hyper and reqwest.

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
mod upstream_wait;

pub use auto::{AutoResponder, respond_auto};
pub use classify_end::ClassifyEnd;
pub use client_ip::{ClientIp, Trust};
pub use finders::{authority, header, method, path};
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
pub use tracked_body::{TrackedBody, UntilBodyEnd};
