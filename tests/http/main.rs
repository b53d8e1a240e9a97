//! Refusals, keys, headers and verdicts in HTTP and gRPC, over real servers and clients.

mod client_keys;
mod over;
mod preflight;
mod rate_headers;
mod refusal_cost;
mod waits;

#[path = "../support/mod.rs"]
mod support;
