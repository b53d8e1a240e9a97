//! Breakers by key, bounded in number.

mod breakers;
mod builder;
mod error;
mod iter;
mod place;
mod shard;
mod table;

pub use breakers::CircuitBreakers;
pub use builder::CircuitBreakersBuilder;
pub use error::RegistryError;
pub use iter::Iter;
