//! Refusals, keys and verdicts for `http` types: at home in axum, hyper and reqwest.

mod auto;
pub mod client_ip;
mod refused;
mod respond;
pub mod respond_body;
mod responder;
pub(crate) mod retry_after;
#[cfg(test)]
pub(crate) mod tests;

pub use auto::{AutoResponder, respond_auto};
pub use client_ip::{ClientIp, Trust};
pub use ipnet::IpNet;
pub use refused::Refused;
pub use respond::{respond, respond_empty};
pub use responder::Responder;
