//! Rate limiting.

mod algorithm;
mod allowed;
mod annotate;
mod builder;
mod decide;
mod engine;
pub mod error;
pub mod event;
pub mod future;
#[cfg(all(test, sluice_loom))]
mod interleavings;
mod keyed;
mod layer;
mod ledger;
mod limiter;
mod live;
mod manner;
mod queue;
mod quota;
mod refunds;
mod report;
mod reserve;
mod retime;
mod service;
mod snapshot;
mod wait;
mod watch;

pub use algorithm::Algorithm;
pub use allowed::{Allowed, Standing};
pub use annotate::Annotate;
pub use builder::RateLimiterBuilder;
pub use decide::{Costed, Decide, Queue, Skipping};
pub use error::{RateLimited, RateLimitedReason};
pub use keyed::{
    Fingerprint, Hashed, IntoKeyChoice, Key, KeyChoice, KeyHasher, Keyed, KeyedRateLimiter,
    KeyedRateLimiterBuilder, KeyedRef, KeyedStats, KeyedWait, KeyedWith, StoredKey,
};
pub use layer::{RateLimitLayer, Refusing, Waiting};
pub use limiter::RateLimiter;
pub use quota::Quota;
pub use reserve::Reservation;
pub use retime::Retime;
pub use service::RateLimit;
pub use snapshot::Snapshot;
pub use wait::Acquire;
