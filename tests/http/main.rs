//! Refusals, keys, headers and verdicts in HTTP and gRPC, over real servers and clients.

#![cfg(feature = "http")]
#![allow(unreachable_pub)] // a test binary is nobody's dependency

mod auto_traits;
mod body_end;
mod body_end_hyper;
mod body_end_server;
mod client_keys;
mod external;
#[cfg(all(feature = "axum", feature = "tonic"))]
mod frameworks;
mod grpc_breaker;
mod grpc_refusals;
mod over;
mod preflight;
mod rate_headers;
mod raw_grpc;
mod refusal_cost;
mod script;
mod waits;
mod whole_calls;

#[path = "../support/mod.rs"]
mod support;
