use std::fmt;
use std::time::Duration;

use super::choice::{IntoKeyChoice, KeyChoice};
use super::future::KeyedWait;
use super::key::Key;
use super::limiter::KeyedRateLimiter;
use crate::clock::{Clock, Nanos};
use crate::rate_limit::decide::{Decide, Queue, sealed};
use crate::rate_limit::retime::Retime;
use crate::rate_limit::{Allowed, RateLimited};

type Decided = Result<Allowed, RateLimited>;

/// Limits by a key that `F` makes of the request:
/// [`RateLimitLayer::keyed`](crate::rate_limit::RateLimitLayer::keyed).
pub struct Keyed<K: Key + ?Sized, F> {
    limiter: KeyedRateLimiter<K>,
    key: F,
}

/// Limits by a key that `F` borrows from the request:
/// [`RateLimitLayer::keyed_ref`](crate::rate_limit::RateLimitLayer::keyed_ref).
pub struct KeyedRef<K: Key + ?Sized, F> {
    limiter: KeyedRateLimiter<K>,
    key: F,
}

/// Limits by what `F` chooses for the request:
/// [`RateLimitLayer::keyed_with`](crate::rate_limit::RateLimitLayer::keyed_with).
pub struct KeyedWith<K: Key + ?Sized, F> {
    limiter: KeyedRateLimiter<K>,
    key: F,
}

impl<Request, K, F> Decide<Request> for Keyed<K, F>
where
    K: Key,
    F: Fn(&Request) -> K,
{
    fn clock(&self) -> &Clock {
        self.limiter.clock()
    }

    #[inline]
    fn decide(&self, request: &Request, now: Nanos, cost: u32) -> Option<Decided> {
        let key = (self.key)(request);
        Some(self.limiter.check_at(&key, None, now, cost))
    }
}

impl<Request, K, F> Queue<Request> for Keyed<K, F>
where
    K: Key,
    F: Fn(&Request) -> K,
{
    type Wait = KeyedWait<K::Stored>;

    fn queue(
        &self,
        request: &Request,
        now: Nanos,
        cost: u32,
        most: Duration,
    ) -> Option<Result<Self::Wait, RateLimited>> {
        let key = (self.key)(request);
        Some(Ok(self.limiter.wait_at(&key, None, now, cost, most)))
    }
}

impl<Request, K, F> Decide<Request> for KeyedRef<K, F>
where
    K: Key + ?Sized,
    F: Fn(&Request) -> &K,
{
    fn clock(&self) -> &Clock {
        self.limiter.clock()
    }

    #[inline]
    fn decide(&self, request: &Request, now: Nanos, cost: u32) -> Option<Decided> {
        let key = (self.key)(request);
        Some(self.limiter.check_at(key, None, now, cost))
    }
}

impl<Request, K, F> Queue<Request> for KeyedRef<K, F>
where
    K: Key + ?Sized,
    F: Fn(&Request) -> &K,
{
    type Wait = KeyedWait<K::Stored>;

    fn queue(
        &self,
        request: &Request,
        now: Nanos,
        cost: u32,
        most: Duration,
    ) -> Option<Result<Self::Wait, RateLimited>> {
        let key = (self.key)(request);
        Some(Ok(self.limiter.wait_at(key, None, now, cost, most)))
    }
}

impl<Request, K, C, F> Decide<Request> for KeyedWith<K, F>
where
    K: Key,
    C: IntoKeyChoice<Key = K>,
    F: Fn(&Request) -> C,
{
    fn clock(&self) -> &Clock {
        self.limiter.clock()
    }

    #[inline]
    fn decide(&self, request: &Request, now: Nanos, cost: u32) -> Option<Decided> {
        let (key, own) = match (self.key)(request).into_key_choice() {
            KeyChoice::Limit(key) => (key, None),
            KeyChoice::LimitBy(key, own) => (key, Some(own)),
            KeyChoice::NotLimited => return None,
            KeyChoice::Refuse => return Some(self.limiter.without_key(now)),
        };
        Some(self.limiter.check_at(&key, own.as_ref(), now, cost))
    }
}

impl<Request, K, C, F> Queue<Request> for KeyedWith<K, F>
where
    K: Key,
    C: IntoKeyChoice<Key = K>,
    F: Fn(&Request) -> C,
{
    type Wait = KeyedWait<K::Stored>;

    fn queue(
        &self,
        request: &Request,
        now: Nanos,
        cost: u32,
        most: Duration,
    ) -> Option<Result<Self::Wait, RateLimited>> {
        let (key, own) = match (self.key)(request).into_key_choice() {
            KeyChoice::Limit(key) => (key, None),
            KeyChoice::LimitBy(key, own) => (key, Some(own)),
            KeyChoice::NotLimited => return None,
            KeyChoice::Refuse => {
                return Some(self.limiter.wait_without_key(now));
            }
        };
        let limiter = &self.limiter;
        Some(Ok(limiter.wait_at(&key, own.as_ref(), now, cost, most)))
    }
}

macro_rules! deciders {
    ($($decider:ident),*) => {$(
        impl<K: Key + ?Sized, F> $decider<K, F> {
            pub(in crate::rate_limit) fn new(limiter: KeyedRateLimiter<K>, key: F) -> Self {
                Self { limiter, key }
            }
        }

        impl<K: Key + ?Sized, F> sealed::Sealed for $decider<K, F> {}

        impl<K: Key + ?Sized, F> Retime for $decider<K, F> {
            fn clock_mut(&mut self) -> Option<&mut Clock> {
                self.limiter.clock_mut()
            }
        }

        impl<K: Key + ?Sized, F: Clone> Clone for $decider<K, F> {
            fn clone(&self) -> Self {
                Self {
                    limiter: self.limiter.clone(),
                    key: self.key.clone(),
                }
            }
        }

        impl<K: Key + ?Sized, F> fmt::Debug for $decider<K, F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($decider)).field(&self.limiter).finish()
            }
        }
    )*};
}

deciders!(Keyed, KeyedRef, KeyedWith);
