//! Refusals and verdicts for gRPC over `http` types: at home in tonic, without depending on it.

mod code;
mod message;
mod respond;
mod retry_info;

pub use code::Code;
pub use respond::respond;
