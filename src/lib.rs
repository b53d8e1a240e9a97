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
mod when_full;

pub use circuit_breaker::{CircuitBreaker, CircuitOpen, CircuitPolicy};
pub use config_error::ConfigError;
pub use name::Name;
pub use rate_limit::{KeyedRateLimiter, Quota, RateLimitLayer, RateLimited, RateLimiter};
pub use reject::Error;
pub use when_full::WhenFull;
