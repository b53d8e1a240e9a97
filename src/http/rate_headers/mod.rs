//! What callers are told of their quota, on admitted and refused answers alike.

mod annotate;
mod dialect;
mod numbers;

pub use annotate::RateNote;
pub use dialect::RateHeaders;
