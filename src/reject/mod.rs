//! The three ways to say no, the same for both layers.
//!
//! | way | the service's `Error` | for |
//! |---|---|---|
//! | default ([`AsError`]) | [`Error<R, E>`]: `Refused(R)` or `Inner(E)` | typed stacks: hyper, reqwest, a tonic channel |
//! | `.flatten_error()` ([`FlattenError`]) | `E`, where `E: From<R>` | `BoxError` stacks (Timeout, Buffer), own error enums, `tonic::Status` (feature `tonic`) |
//! | `.respond_with(f)` ([`RespondWith`]) | `E`, unchanged | axum routers and tonic servers: `f` makes the response |
//!
//! `R` is [`RateLimited`](crate::rate_limit::RateLimited) or
//! [`CircuitOpen`](crate::circuit_breaker::CircuitOpen): both are [`Refusal`]s.

mod cause;
mod error;
mod mode;
mod refusal;
mod respond;

pub(crate) use cause::Cause;
pub use error::Error;
pub use mode::{AsError, FlattenError, Reject, RespondWith};
pub(crate) use refusal::sealed as refusal_sealed;
pub use refusal::{Refusal, RefusalKind};
pub use respond::Respond;
