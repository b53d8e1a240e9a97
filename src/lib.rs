//! Two Tower layers, a rate limit and a circuit breaker, whose state is shared by every clone.

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
#[allow(dead_code)]
mod sync;

pub use config_error::ConfigError;
pub use name::Name;
pub use reject::Error;
