use std::fmt;

/// Which calls pass unguarded: none ([`NoSkip`], the default), or those that the functions given
/// to `skip` pick out ([`SkipIf`]). Sealed; a service names it in its own type, so that one that
/// skips nothing pays nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot look at a request of type `{Request}`",
    note = "the function of `.skip(f)` must take `&{Request}`; write its argument's type out, as in `|request: &Request<_>| …`"
)]
pub trait Skip<Request>: sealed::Sealed {
    /// Whether any call is ever skipped.
    #[doc(hidden)]
    const EVER: bool;

    /// Whether the call passes unguarded.
    #[doc(hidden)]
    fn skips(&self, request: &Request) -> bool;
}

/// Every call is guarded.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSkip;

/// The calls that `F` picks out pass unguarded, and those that `S` does.
#[derive(Clone, Copy)]
pub struct SkipIf<S, F> {
    pub(super) others: S,
    pub(super) skip: F,
}

impl<Request> Skip<Request> for NoSkip {
    const EVER: bool = false;

    #[inline]
    fn skips(&self, _request: &Request) -> bool {
        false
    }
}

impl<Request, S, F> Skip<Request> for SkipIf<S, F>
where
    S: Skip<Request>,
    F: Fn(&Request) -> bool,
{
    const EVER: bool = true;

    #[inline]
    fn skips(&self, request: &Request) -> bool {
        self.others.skips(request) || (self.skip)(request)
    }
}

impl<S: fmt::Debug, F> fmt::Debug for SkipIf<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SkipIf").field(&self.others).finish()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::NoSkip {}
    impl<S: Sealed, F> Sealed for super::SkipIf<S, F> {}
}
