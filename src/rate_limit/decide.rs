use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::{Acquire, Allowed, RateLimited, RateLimiter};
use crate::clock::{Clock, Nanos};

/// What decides for a request: one limiter for all, or a keyed one and the function that finds
/// the key. Sealed; a service names it in its own type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot decide for a request of type `{Request}`",
    label = "the rate limit does not take this request",
    note = "key, cost and skip functions must take `&{Request}`: write `|request: &Request<_>| …` where the body's type is to be inferred"
)]
pub trait Decide<Request>: sealed::Sealed {
    /// What time is read from.
    #[doc(hidden)]
    fn clock(&self) -> &Clock;

    /// Whether the call passes unlimited and uncounted, whatever else is set.
    #[doc(hidden)]
    #[inline]
    fn skips(&self, _request: &Request) -> bool {
        false
    }

    /// What the call costs.
    #[doc(hidden)]
    #[inline]
    fn cost(&self, _request: &Request) -> u32 {
        1
    }

    /// Decides at once; `None` is not limited.
    #[doc(hidden)]
    fn decide(&self, request: &Request, now: Nanos, cost: u32) -> Option<Decided>;
}

/// A decider that lets a request wait for its turn. Sealed.
pub trait Queue<Request>: Decide<Request> {
    /// The wait for a turn.
    #[doc(hidden)]
    type Wait: Future<Output = Result<Allowed, RateLimited>>;

    /// Queues for a turn; `None` is not limited.
    #[doc(hidden)]
    fn queue(
        &self,
        request: &Request,
        now: Nanos,
        cost: u32,
        most: Duration,
    ) -> Option<Result<Self::Wait, RateLimited>>;
}

type Decided = Result<Allowed, RateLimited>;

impl<Request> Decide<Request> for RateLimiter {
    fn clock(&self) -> &Clock {
        self.clock()
    }

    #[inline]
    fn decide(&self, _request: &Request, now: Nanos, cost: u32) -> Option<Decided> {
        Some(self.check_at(now, cost))
    }
}

impl<Request> Queue<Request> for RateLimiter {
    type Wait = Acquire;

    fn queue(
        &self,
        _request: &Request,
        now: Nanos,
        cost: u32,
        most: Duration,
    ) -> Option<Result<Acquire, RateLimited>> {
        Some(Ok(self.wait_at(now, cost, most)))
    }
}

/// Decides as `D` does, at the cost that `F` finds.
#[derive(Clone, Copy)]
pub struct Costed<D, F> {
    pub(super) inner: D,
    pub(super) cost: F,
}

impl<Request, D, F> Decide<Request> for Costed<D, F>
where
    D: Decide<Request>,
    F: Fn(&Request) -> u32,
{
    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    #[inline]
    fn skips(&self, request: &Request) -> bool {
        self.inner.skips(request)
    }

    #[inline]
    fn cost(&self, request: &Request) -> u32 {
        (self.cost)(request)
    }

    #[inline]
    fn decide(&self, request: &Request, now: Nanos, cost: u32) -> Option<Decided> {
        self.inner.decide(request, now, cost)
    }
}

impl<Request, D, F> Queue<Request> for Costed<D, F>
where
    D: Queue<Request>,
    F: Fn(&Request) -> u32,
{
    type Wait = D::Wait;

    fn queue(
        &self,
        request: &Request,
        now: Nanos,
        cost: u32,
        most: Duration,
    ) -> Option<Result<D::Wait, RateLimited>> {
        self.inner.queue(request, now, cost, most)
    }
}

/// Decides as `D` does, except for the requests that `F` picks out.
#[derive(Clone, Copy)]
pub struct Skipping<D, F> {
    pub(super) inner: D,
    pub(super) skip: F,
}

impl<Request, D, F> Decide<Request> for Skipping<D, F>
where
    D: Decide<Request>,
    F: Fn(&Request) -> bool,
{
    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    #[inline]
    fn skips(&self, request: &Request) -> bool {
        self.inner.skips(request) || (self.skip)(request)
    }

    #[inline]
    fn cost(&self, request: &Request) -> u32 {
        self.inner.cost(request)
    }

    #[inline]
    fn decide(&self, request: &Request, now: Nanos, cost: u32) -> Option<Decided> {
        self.inner.decide(request, now, cost)
    }
}

impl<Request, D, F> Queue<Request> for Skipping<D, F>
where
    D: Queue<Request>,
    F: Fn(&Request) -> bool,
{
    type Wait = D::Wait;

    fn queue(
        &self,
        request: &Request,
        now: Nanos,
        cost: u32,
        most: Duration,
    ) -> Option<Result<D::Wait, RateLimited>> {
        self.inner.queue(request, now, cost, most)
    }
}

macro_rules! opaque_debug {
    ($($decider:ident),*) => {$(
        impl<D: fmt::Debug, F> fmt::Debug for $decider<D, F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($decider)).field(&self.inner).finish()
            }
        }
    )*};
}

opaque_debug!(Costed, Skipping);

pub(super) mod sealed {
    pub trait Sealed {}
    impl Sealed for super::RateLimiter {}
    impl<D: Sealed, F> Sealed for super::Costed<D, F> {}
    impl<D: Sealed, F> Sealed for super::Skipping<D, F> {}
}
