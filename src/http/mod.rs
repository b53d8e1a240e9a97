//! Refusals, keys and verdicts for `http` types: at home in axum, hyper and reqwest.

mod refused;
mod respond;
pub(crate) mod retry_after;
#[cfg(test)]
pub(crate) mod tests;

pub use refused::Refused;
pub use respond::{respond, respond_empty};
