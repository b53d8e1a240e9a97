//! What callers are told of their quota, on admitted and refused answers alike.

mod dialect;
mod numbers;

pub use dialect::RateHeaders;
