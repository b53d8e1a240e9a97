//! Rate limiting.

mod algorithm;
mod allowed;
mod builder;
pub mod error;
mod ledger;
mod limiter;
mod live;
mod quota;

pub use algorithm::Algorithm;
pub use allowed::{Allowed, Standing};
pub use builder::RateLimiterBuilder;
pub use error::RateLimited;
pub use limiter::RateLimiter;
pub use quota::Quota;
