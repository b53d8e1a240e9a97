use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::task::{Context, Poll};

use tower_service::Service;

use super::admit::{Admit, sealed};
use super::{
    Admitted, CircuitBreaker, CircuitBreakers, CircuitBreakersBuilder, CircuitOpen, CircuitPolicy,
    NoSkip, Skip, SkipIf,
};

/// One breaker per key, found by `F` in each request that `S` does not [skip](Skip): [`KeyFn`],
/// [`KeyRefFn`] or [`KeyWithFn`].
///
/// The key is not known before the call, so the inner service is always polled, and an error of
/// its `poll_ready` is charged to no key.
pub struct Keyed<K, F, S = NoSkip> {
    breakers: CircuitBreakers<K>,
    key: F,
    skip: S,
}

/// A function from a request to its key.
#[derive(Clone, Copy)]
pub struct KeyFn<F>(pub(super) F);

/// A function from a request to a key borrowed from it.
#[derive(Clone, Copy)]
pub struct KeyRefFn<F>(pub(super) F);

/// A function from a request to its key, if it has one, and to a policy for it, if it needs its
/// own.
#[derive(Clone, Copy)]
pub struct KeyWithFn<F>(pub(super) F);

/// Finds the breaker of a request.
pub trait FindBreaker<Request, K>: Clone {
    /// `None` where no breaker guards the request; an error where it could not be given one.
    #[doc(hidden)]
    fn find(
        &self,
        breakers: &CircuitBreakers<K>,
        request: &Request,
    ) -> Result<Option<CircuitBreaker>, CircuitOpen>;
}

impl<Request, K, F> FindBreaker<Request, K> for KeyFn<F>
where
    K: Hash + Eq + Clone,
    F: Fn(&Request) -> K + Clone,
{
    #[inline]
    fn find(
        &self,
        breakers: &CircuitBreakers<K>,
        request: &Request,
    ) -> Result<Option<CircuitBreaker>, CircuitOpen> {
        breakers.get_or_refuse(&self.0(request), None).map(Some)
    }
}

impl<Request, Q, K, F> FindBreaker<Request, K> for KeyRefFn<F>
where
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    K: Borrow<Q> + Hash + Eq + Clone,
    F: Fn(&Request) -> &Q + Clone,
{
    #[inline]
    fn find(
        &self,
        breakers: &CircuitBreakers<K>,
        request: &Request,
    ) -> Result<Option<CircuitBreaker>, CircuitOpen> {
        breakers.get_or_refuse(self.0(request), None).map(Some)
    }
}

impl<Request, K, F> FindBreaker<Request, K> for KeyWithFn<F>
where
    K: Hash + Eq + Clone,
    F: Fn(&Request) -> Option<(K, Option<CircuitPolicy>)> + Clone,
{
    #[inline]
    fn find(
        &self,
        breakers: &CircuitBreakers<K>,
        request: &Request,
    ) -> Result<Option<CircuitBreaker>, CircuitOpen> {
        match self.0(request) {
            Some((key, policy)) => breakers.get_or_refuse(&key, policy).map(Some),
            None => Ok(None),
        }
    }
}

impl<K, F> Keyed<K, F> {
    pub(super) fn new(breakers: CircuitBreakers<K>, key: F) -> Self {
        let skip = NoSkip;
        Self {
            breakers,
            key,
            skip,
        }
    }
}

impl<K, F, S> Keyed<K, F, S> {
    pub(super) fn skip<P>(self, skip: P) -> Keyed<K, F, SkipIf<S, P>> {
        let others = self.skip;
        Keyed {
            breakers: self.breakers,
            key: self.key,
            skip: SkipIf { others, skip },
        }
    }

    pub(super) fn breakers(&self) -> &CircuitBreakers<K> {
        &self.breakers
    }

    /// As [`Single::rebuilt`](super::Single).
    pub(super) fn rebuilt(
        self,
        change: impl FnOnce(CircuitBreakersBuilder<K>) -> CircuitBreakersBuilder<K>,
    ) -> Option<Self> {
        let Self {
            breakers,
            key,
            skip,
        } = self;
        let breakers = breakers.rebuilt(change)?;
        Some(Self {
            breakers,
            key,
            skip,
        })
    }
}

impl<Request, K, F, P> Admit<Request> for Keyed<K, F, P>
where
    F: FindBreaker<Request, K>,
    P: Skip<Request>,
{
    #[inline]
    fn poll_ready<S>(&mut self, inner: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>>
    where
        S: Service<Request>,
    {
        inner.poll_ready(cx)
    }

    #[inline]
    fn skips(&mut self, request: &Request) -> bool {
        self.skip.skips(request)
    }

    #[inline]
    fn admit(&mut self, request: &Request) -> Result<Option<Admitted>, CircuitOpen> {
        match self.key.find(&self.breakers, request)? {
            Some(breaker) => breaker.into_admitted().map(Some),
            None => Ok(None),
        }
    }
}

impl<K, F, S> sealed::Sealed for Keyed<K, F, S> {}

impl<K, F: Clone, S: Clone> Clone for Keyed<K, F, S> {
    fn clone(&self) -> Self {
        Self {
            breakers: self.breakers.clone(),
            key: self.key.clone(),
            skip: self.skip.clone(),
        }
    }
}

impl<K, F, S> fmt::Debug for Keyed<K, F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("breakers", &self.breakers)
            .finish_non_exhaustive()
    }
}

macro_rules! named_only {
    ($($name:ident),*) => {$(
        impl<F> fmt::Debug for $name<F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), std::any::type_name::<F>())
            }
        }
    )*};
}
named_only!(KeyFn, KeyRefFn, KeyWithFn);
