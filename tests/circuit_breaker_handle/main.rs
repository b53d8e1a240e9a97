//! The circuit breaker as a plain handle, with no Tower around it.

#[path = "../support/mod.rs"]
mod support;

mod old_system;
