//! Breakers by key, bounded in number.

mod breakers;
mod builder;
mod create;
mod error;
mod iter;
mod place;
mod shard;
mod share;
mod table;

pub use breakers::CircuitBreakers;
pub use builder::CircuitBreakersBuilder;
pub use error::RegistryError;
pub use iter::Iter;
pub(super) use share::{OpenPart, OpenShare};
