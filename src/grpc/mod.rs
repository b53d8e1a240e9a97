//! Refusals and verdicts for gRPC over `http` types: at home in tonic, without depending on it.

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
