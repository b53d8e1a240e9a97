use std::time::Duration;

/// What both refusals, `RateLimited` and `CircuitOpen`, can say of themselves; what a responder
/// or a retry policy asks.
///
/// Sealed: new questions may be added.
pub trait Refusal: std::error::Error + Send + Sync + 'static + sealed::Sealed {
    /// The name of the limiter or breaker that refused, if it was given one.
    fn name(&self) -> Option<&str>;

    /// How long from the moment of refusal until asking again can succeed, where that is known.
    fn retry_after(&self) -> Option<Duration>;

    /// Whose doing it is, which decides the status that goes on the wire.
    fn kind(&self) -> RefusalKind;
}

/// Whose doing a refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The caller asked too often: HTTP 429, gRPC `RESOURCE_EXHAUSTED`.
    Limited,
    /// The service cannot take the call now, whoever asks: HTTP 503, gRPC `UNAVAILABLE`.
    Unavailable,
}

pub(crate) mod sealed {
    pub trait Sealed {}
}
