//! Looking into errors, whether typed or boxed.

use std::error::Error;

use crate::circuit_breaker::CircuitOpen;
use crate::rate_limit::RateLimited;

/// An error whose [`source`](Error::source) chain can be walked: every [`Error`], and `BoxError`,
/// which is none itself.
///
/// `Via` tells the two apart, and the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "the classifier cannot look into the error `{Self}`",
    note = "it takes every `std::error::Error`, and `tower::BoxError`; for others classify with a closure"
)]
pub trait ErrorChain<Via> {
    /// The error at the head of the chain.
    fn head(&self) -> &(dyn Error + 'static);
}

/// A typed error. Inferred, see [`ErrorChain`].
#[derive(Clone, Copy, Debug)]
pub enum Typed {}

/// A boxed error. Inferred, see [`ErrorChain`].
#[derive(Clone, Copy, Debug)]
pub enum Boxed {}

impl<E: Error + 'static> ErrorChain<Typed> for E {
    fn head(&self) -> &(dyn Error + 'static) {
        self
    }
}

impl ErrorChain<Boxed> for Box<dyn Error + Send + Sync> {
    fn head(&self) -> &(dyn Error + 'static) {
        &**self
    }
}

/// The errors from `head` down to the last source.
pub(crate) fn links<'a>(
    head: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(head), |&error| error.source())
}

/// Whether a refusal of this crate is at the bottom of it.
pub(crate) fn is_refusal(head: &(dyn Error + 'static)) -> bool {
    links(head).any(|error| error.is::<RateLimited>() || error.is::<CircuitOpen>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quota;
    use crate::circuit_breaker::{CircuitBreaker, CircuitPolicy};
    use crate::rate_limit::RateLimiter;

    fn limited() -> RateLimited {
        let limiter = RateLimiter::new(Quota::per_hour(1));
        limiter.check().expect("the first is admitted");
        limiter.check().expect_err("the second is not")
    }

    fn open() -> CircuitOpen {
        let breaker = CircuitBreaker::new("test", CircuitPolicy::default());
        breaker.force_open();
        breaker.try_acquire().expect_err("forced open")
    }

    #[test]
    fn a_refusal_is_found_however_deep_it_lies() {
        type OurError = crate::Error<RateLimited, std::io::Error>;
        let nested: crate::Error<CircuitOpen, OurError> =
            crate::Error::Inner(crate::Error::Refused(limited()));
        assert!(is_refusal(ErrorChain::<Typed>::head(&nested)));

        let boxed: Box<dyn Error + Send + Sync> = open().into();
        assert!(is_refusal(ErrorChain::<Boxed>::head(&boxed)));

        let other: OurError = crate::Error::Inner(std::io::Error::other("down"));
        assert!(!is_refusal(other.head()));
    }
}
