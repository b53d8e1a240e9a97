//! `KeyedRateLimiter` from the outside: its cap, its memory, its threads, its queue.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod cap;
mod memory;
mod quotas;
mod threads;
mod waiting;
