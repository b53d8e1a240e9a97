//! Circuit breaking.

mod classify;
pub mod error;

pub use classify::{Classify, ErrorsAsFailures, Head, Outcome};
pub use error::CircuitOpen;
