//! Refusals and verdicts for gRPC over `http` types: at home in tonic, without depending on it.

mod code;
mod dialect;
mod message;
mod respond;
mod responder;
mod retry_info;

pub use code::Code;
pub(crate) use dialect::Dialect;
pub use respond::respond;
pub use responder::Responder;
