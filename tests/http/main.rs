//! Refusals, keys, headers and verdicts in HTTP and gRPC, over real servers and clients.

mod refusal_cost;

#[path = "../support/mod.rs"]
mod support;
