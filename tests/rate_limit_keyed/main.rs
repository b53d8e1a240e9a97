//! `KeyedRateLimiter` from the outside: its cap, its memory, its threads, its quotas, its queue.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod cap;
mod memory;
mod quotas;
mod reserve;
mod several;
mod shadow;
mod threads;
mod waiting;
mod waiting_plans;
