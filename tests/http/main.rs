//! Refusals, keys, headers and verdicts in HTTP and gRPC, over real servers and clients.

mod body_end;
mod client_keys;
mod external;
mod grpc_refusals;
mod over;
mod preflight;
mod rate_headers;
mod raw_grpc;
mod refusal_cost;
mod waits;

#[path = "../support/mod.rs"]
mod support;
