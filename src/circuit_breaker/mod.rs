//! Circuit breaking.

pub mod error;

pub use error::CircuitOpen;
