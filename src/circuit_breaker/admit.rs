use std::task::{Context, Poll, ready};

use tower_service::Service;

use super::{Admitted, CircuitBreaker, CircuitBreakerBuilder, CircuitOpen};

/// Which breaker a call is put to, and what `poll_ready` does meanwhile. Sealed; a service names
/// it in its own type: [`Single`] (the default), [`PendingWhileOpen`](super::PendingWhileOpen) or
/// [`Keyed`](super::Keyed).
///
/// What an instance keeps between `poll_ready` and `call` is its own: a clone starts without it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` finds no breaker for a request of type `{Request}`",
    note = "the key function of a keyed layer must take `&{Request}`; write its argument's type out, as in `|request: &Request<_>| …`"
)]
pub trait Admit<Request>: sealed::Sealed {
    /// Readies the inner service, or leaves it alone.
    #[doc(hidden)]
    fn poll_ready<S>(&mut self, inner: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>>
    where
        S: Service<Request>;

    /// Admits a call for which one look at the breaker is enough; `None` for any other, which has
    /// not been decided on. Apart from [`admit`](Self::admit), so that the permit of the healthy
    /// path is put together in the future that keeps it and is not moved there.
    #[doc(hidden)]
    #[inline]
    fn admit_at_once(&mut self, _request: &Request) -> Option<Admitted> {
        None
    }

    /// Refuses a call at an instance whose inner service was left alone; `None` for any other,
    /// which has not been decided on. Apart from [`admit`](Self::admit) for the same reason.
    #[doc(hidden)]
    #[inline]
    fn refuse_at_once(&mut self, _request: &Request) -> Option<CircuitOpen> {
        None
    }

    /// Decides on a call; `None` for one that no breaker guards.
    #[doc(hidden)]
    fn admit(&mut self, request: &Request) -> Result<Option<Admitted>, CircuitOpen>;
}

/// One breaker for every call, which refuses while open.
#[derive(Debug)]
pub struct Single {
    breaker: CircuitBreaker,
    /// Set when this instance's inner service answered ready, unset when that is spent: only
    /// then may a call go through.
    polled: bool,
}

impl Single {
    pub(super) fn new(breaker: CircuitBreaker) -> Self {
        Self {
            breaker,
            polled: false,
        }
    }

    pub(super) fn breaker(&self) -> &CircuitBreaker {
        &self.breaker
    }

    /// The same breaker built anew with what `change` adds; `None` where it is in use already.
    pub(super) fn rebuilt(
        self,
        change: impl FnOnce(CircuitBreakerBuilder) -> CircuitBreakerBuilder,
    ) -> Option<Self> {
        let builder = CircuitBreakerBuilder::again(&self.breaker)?;
        Some(Self::new(change(builder).build()))
    }

    pub(super) fn into_breaker(self) -> CircuitBreaker {
        self.breaker
    }
}

impl Clone for Single {
    // The copy's inner service is a copy too and was never polled.
    fn clone(&self) -> Self {
        Self::new(self.breaker.clone())
    }
}

impl<Request> Admit<Request> for Single {
    #[inline]
    fn poll_ready<S>(&mut self, inner: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>>
    where
        S: Service<Request>,
    {
        if self.breaker.would_refuse() {
            // A dead connection must not delay a refusal.
            return Poll::Ready(Ok(()));
        }
        self.polled = false;
        match ready!(inner.poll_ready(cx)) {
            Ok(()) => {
                self.polled = true;
                Poll::Ready(Ok(()))
            }
            Err(error) => {
                self.breaker.readiness_failed();
                Poll::Ready(Err(error))
            }
        }
    }

    #[inline]
    fn admit_at_once(&mut self, _request: &Request) -> Option<Admitted> {
        if !self.polled {
            return None;
        }
        let permit = self.breaker.admit_at_once()?;
        self.polled = false;
        Some(permit)
    }

    #[inline]
    fn refuse_at_once(&mut self, _request: &Request) -> Option<CircuitOpen> {
        (!self.polled).then(|| self.breaker.refuse_unpolled())
    }

    #[inline]
    fn admit(&mut self, _request: &Request) -> Result<Option<Admitted>, CircuitOpen> {
        if !self.polled {
            return Err(self.breaker.refuse_unpolled());
        }
        let permit = self.breaker.admit_noted()?;
        self.polled = false;
        Ok(Some(permit))
    }
}

pub(super) mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Single {}
}
