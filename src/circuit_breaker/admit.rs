use std::task::{Context, Poll, ready};

use tower_service::Service;

use super::standing::Standing;
use super::{Admitted, CircuitBreaker, CircuitBreakerBuilder, CircuitOpen, NoSkip, Skip, SkipIf};

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

    /// Whether the call passes unguarded. It spends the readiness of this instance.
    #[doc(hidden)]
    #[inline]
    fn skips(&mut self, _request: &Request) -> bool {
        false
    }

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

/// One breaker for every call, but those that `S` [skips](Skip), which refuses while open.
#[derive(Debug)]
pub struct Single<S = NoSkip> {
    breaker: CircuitBreaker,
    skip: S,
    /// How the breaker stood when this instance's inner service answered ready, if
    /// [plainly](Standing::is_plain), or [`OTHER`](Standing::OTHER). [`NONE`](Standing::NONE)
    /// where it did not answer, or that is spent: then no call may go through.
    ready: Standing,
}

impl Single {
    pub(super) fn new(breaker: CircuitBreaker) -> Self {
        Self::skipping(breaker, NoSkip)
    }
}

impl<S> Single<S> {
    fn skipping(breaker: CircuitBreaker, skip: S) -> Self {
        Self {
            breaker,
            skip,
            ready: Standing::NONE,
        }
    }

    pub(super) fn skip<F>(self, skip: F) -> Single<SkipIf<S, F>> {
        let others = self.skip;
        Single::skipping(self.breaker, SkipIf { others, skip })
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
        Some(Self::skipping(change(builder).build(), self.skip))
    }

    pub(super) fn into_breaker(self) -> CircuitBreaker {
        self.breaker
    }
}

impl<S: Clone> Clone for Single<S> {
    // The copy's inner service is a copy too and was never polled.
    fn clone(&self) -> Self {
        Self::skipping(self.breaker.clone(), self.skip.clone())
    }
}

impl<Request, K: Skip<Request>> Admit<Request> for Single<K> {
    #[inline]
    fn poll_ready<S>(&mut self, inner: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>>
    where
        S: Service<Request>,
    {
        let mut standing = self.breaker.standing();
        if !standing.is_plain() {
            // Whose call it will be is not known yet, and one that is skipped needs the service.
            if !K::EVER && self.breaker.would_refuse(standing) {
                // A dead connection must not delay a refusal.
                return Poll::Ready(Ok(()));
            }
            standing = Standing::OTHER;
        }
        self.ready = Standing::NONE;
        match ready!(inner.poll_ready(cx)) {
            Ok(()) => {
                self.ready = standing;
                Poll::Ready(Ok(()))
            }
            Err(error) => {
                self.breaker.readiness_failed();
                Poll::Ready(Err(error))
            }
        }
    }

    #[inline]
    fn skips(&mut self, request: &Request) -> bool {
        let skips = self.skip.skips(request);
        if skips {
            self.ready = Standing::NONE;
        }
        skips
    }

    #[inline]
    fn admit_at_once(&mut self, _request: &Request) -> Option<Admitted> {
        // One comparison: that it stood plainly was seen when the inner service answered.
        if self.breaker.standing() != self.ready {
            return None;
        }
        let permit = self.breaker.admit_plainly(self.ready);
        self.ready = Standing::NONE;
        Some(permit)
    }

    #[inline]
    fn refuse_at_once(&mut self, _request: &Request) -> Option<CircuitOpen> {
        if self.ready != Standing::NONE {
            return None;
        }
        self.breaker.refuse_at_once()
    }

    #[inline]
    fn admit(&mut self, _request: &Request) -> Result<Option<Admitted>, CircuitOpen> {
        if self.ready == Standing::NONE {
            return Err(self.breaker.refuse_unpolled());
        }
        let permit = self.breaker.admit_noted()?;
        self.ready = Standing::NONE;
        Ok(Some(permit))
    }
}

pub(super) mod sealed {
    pub trait Sealed {}
    impl<S> Sealed for super::Single<S> {}
}
