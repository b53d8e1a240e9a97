//! When a circuit trips, how it recovers: a validated value.

mod build;
mod builder;
mod open_time;
mod rate;
#[cfg(all(test, not(sluice_loom)))]
mod tests;
mod value;

pub use builder::CircuitPolicyBuilder;
pub(crate) use open_time::{OpenTime, OpenTimeFn};
pub use value::{Cancel, CircuitPolicy};
pub(crate) use value::{Counts, WindowKind};
