//! A limit for each key.

mod admin;
mod builder;
mod choice;
mod decide;
mod desks;
mod future;
mod hasher;
#[cfg(all(test, sluice_loom))]
mod interleavings;
mod key;
mod keys;
mod lanes;
mod layer;
mod limiter;
mod one_word;
mod reserve;
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
pub use future::KeyedWait;
pub use hasher::{Fingerprint, KeyHasher};
pub use key::{Hashed, Key};
pub use limiter::KeyedRateLimiter;
pub use reserve::KeyedReservation;
pub use stats::KeyedStats;
pub use stored::StoredKey;
