use std::fmt;

use super::{Error, Respond};

/// One of the three ways to say no. Sealed; a service names it in its own type.
#[diagnostic::on_unimplemented(
    message = "the way of refusing `{Self}` does not fit a service with response `{Response}` and error `{E}`",
    label = "a refusal cannot leave this service",
    note = "`.flatten_error()` needs the inner service's error to be `From<{R}>`: `tower::BoxError` is, `Infallible` is not",
    note = "`.respond_with(f)` needs `f: Fn(&{R}) -> {Response}`; it leaves the error type alone, as axum asks",
    note = "without either, the service's error is `tower_sluice::Error<{R}, {E}>`"
)]
pub trait Reject<Request, R, Response, E>: sealed::Sealed {
    /// The error of the service in this mode.
    type Error;

    /// Answers a refused call.
    #[doc(hidden)]
    fn refuse(&self, request: &Request, refusal: R) -> Result<Response, Self::Error>;

    /// Passes on an error of the inner service.
    #[doc(hidden)]
    fn inner(error: E) -> Self::Error;
}

/// Refuses with [`Error::Refused`]: the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsError;

/// Refuses with the inner service's own error type, made from the refusal: `.flatten_error()`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlattenError;

/// Refuses with a response made by `F`: `.respond_with(f)`.
#[derive(Clone, Copy)]
pub struct RespondWith<F>(pub(crate) F);

impl<F> fmt::Debug for RespondWith<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RespondWith({})", std::any::type_name::<F>())
    }
}

impl<Request, R, Response, E> Reject<Request, R, Response, E> for AsError {
    type Error = Error<R, E>;

    #[inline]
    fn refuse(&self, _request: &Request, refusal: R) -> Result<Response, Self::Error> {
        Err(Error::Refused(refusal))
    }

    #[inline]
    fn inner(error: E) -> Self::Error {
        Error::Inner(error)
    }
}

// Not recommended, so that what is missing is told in the words of `Reject`.
#[diagnostic::do_not_recommend]
impl<Request, R, Response, E: From<R>> Reject<Request, R, Response, E> for FlattenError {
    type Error = E;

    #[inline]
    fn refuse(&self, _request: &Request, refusal: R) -> Result<Response, E> {
        Err(E::from(refusal))
    }

    #[inline]
    fn inner(error: E) -> E {
        error
    }
}

impl<Request, R, Response, E, F> Reject<Request, R, Response, E> for RespondWith<F>
where
    F: Respond<Request, R, Response>,
{
    type Error = E;

    #[inline]
    fn refuse(&self, request: &Request, refusal: R) -> Result<Response, E> {
        Ok(self.0.respond(request, &refusal))
    }

    #[inline]
    fn inner(error: E) -> E {
        error
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::AsError {}
    impl Sealed for super::FlattenError {}
    impl<F> Sealed for super::RespondWith<F> {}
}
