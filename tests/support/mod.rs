//! What every test binary may use; each uses some of it.
#![allow(dead_code, unreachable_pub, missing_debug_implementations)]

pub mod alloc;
pub mod strict;
