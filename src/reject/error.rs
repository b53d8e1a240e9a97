use std::fmt;

/// What a layer's service fails with by default: our refusal, or the inner service's own error.
///
/// It reads as the error it holds, and [`source`](std::error::Error::source) gives that error, so
/// that one found in a `BoxError` chain can still be told apart by downcasting.
///
/// It is a [`std::error::Error`] where `E` is. `BoxError` is not, so over `Timeout` or `Buffer`
/// use `.flatten_error()`.
///
/// ```
/// use tower_sluice::Error;
///
/// let error: Error<&str, std::num::ParseIntError> = Error::Inner("x".parse::<u8>().unwrap_err());
/// assert!(error.refused().is_none());
/// assert!(error.into_inner().is_some());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<R, E> {
    /// The call was refused by the layer and never reached the inner service.
    Refused(R),
    /// The inner service failed, in `poll_ready` or in the call.
    Inner(E),
}

impl<R, E> Error<R, E> {
    /// The refusal, if it is one.
    pub fn refused(&self) -> Option<&R> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Inner(_) => None,
        }
    }

    /// The inner service's error, if it is one.
    pub fn into_inner(self) -> Option<E> {
        match self {
            Self::Refused(_) => None,
            Self::Inner(error) => Some(error),
        }
    }
}

impl<R: fmt::Display, E: fmt::Display> fmt::Display for Error<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Inner(error) => error.fmt(f),
        }
    }
}

impl<R, E> std::error::Error for Error<R, E>
where
    R: std::error::Error + 'static,
    E: std::error::Error + 'static,
{
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Inner(error) => Some(error),
        }
    }
}
