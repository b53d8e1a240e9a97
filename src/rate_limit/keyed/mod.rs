//! A limit for each key.

mod builder;
mod choice;
mod decide;
mod hasher;
#[cfg(all(test, sluice_loom))]
mod interleavings;
mod key;
mod limiter;
mod rules;
mod shards;
mod shared;
mod stats;
mod store;
mod stored;
mod sweep;
mod table;
mod wait;

pub use builder::KeyedRateLimiterBuilder;
pub use choice::{IntoKeyChoice, KeyChoice};
pub use decide::{Keyed, KeyedRef, KeyedWith};
pub use hasher::{Fingerprint, KeyHasher};
pub use key::{Hashed, Key};
pub use limiter::KeyedRateLimiter;
pub use stats::KeyedStats;
pub use stored::StoredKey;
pub use wait::KeyedWait;
