//! The circuit breaker as a plain handle, with no Tower around it.

#[path = "../support/mod.rs"]
mod support;

mod commands;
mod events;
mod half_open;
mod half_open_threads;
mod kit;
mod old_system;
mod open_time;
mod panics;
mod stale;
mod storm;
mod threads;
mod views;
mod windows;
