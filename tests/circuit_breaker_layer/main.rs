//! The circuit breaker as a layer.
#![allow(unreachable_pub)] // the harness, as in the other test binaries

mod back_pressure;
mod balancer;
mod callbacks;
mod composition;
mod contract;
#[cfg(feature = "http")]
mod forms;
mod harness;
mod limiter;
mod old_system;
mod readiness;
mod recovery;
mod registry;
mod registry_keys;
mod settings;
mod skip;
mod slow;
#[cfg(feature = "http")]
mod sockets;
#[path = "../support/mod.rs"]
mod support;
mod waiting_storm;
mod waiting_turns;
