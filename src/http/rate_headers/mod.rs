//! What callers are told of their quota, on admitted and refused answers alike.

mod dialect;
mod standing;

pub use dialect::RateHeaders;
pub(super) use standing::{Standing, whole};
