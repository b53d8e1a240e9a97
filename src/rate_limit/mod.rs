//! Rate limiting.

pub mod error;
mod quota;

pub use error::RateLimited;
pub use quota::Quota;
