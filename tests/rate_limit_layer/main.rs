//! `RateLimitLayer` from the outside: in the stacks it is made for, and against the Tower contract.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod contract;
mod events;
#[cfg(feature = "http")]
mod forms;
mod old_system;
mod registry;
#[cfg(feature = "http")]
mod sharing;
