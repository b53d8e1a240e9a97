//! The least work that each path's meaning needs: its clock reads and its atomic operations, in
//! the same Tower shape, and nothing else. No floor checks its configuration, names anything,
//! survives a panic or tells a refused caller more than "no".

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tower_service::Service;

/// GCRA in one word on `Instant`.
pub struct Limit {
    start: Instant,
    tat: AtomicU64,
    interval: u64,
    tolerance: u64,
}

impl Limit {
    pub fn new(interval: Duration, burst: u64) -> Self {
        let interval = interval.as_nanos() as u64;
        Self {
            start: Instant::now(),
            tat: AtomicU64::new(0),
            interval,
            tolerance: interval * burst,
        }
    }

    #[inline]
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    #[inline]
    pub fn check(&self) -> Result<(), u64> {
        self.check_word(&self.tat)
    }

    /// Spends everything for longer than any run.
    pub fn spent() -> Self {
        let limit = Self::new(Duration::from_secs(1), 1);
        limit.tat.store(u64::MAX / 2, Relaxed);
        limit
    }

    #[inline]
    fn check_word(&self, word: &AtomicU64) -> Result<(), u64> {
        let now = self.now();
        let mut tat = word.load(Relaxed);
        loop {
            let next = tat.max(now) + self.interval;
            if next > now + self.tolerance {
                return Err(next - now - self.tolerance);
            }
            match word.compare_exchange_weak(tat, next, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(changed) => tat = changed,
            }
        }
    }
}

/// A fixed open-addressing table of keys and their words; it cannot grow, shrink or refuse.
pub struct KeyedLimit {
    limit: Limit,
    mask: u64,
    slots: Box<[(AtomicU64, AtomicU64)]>,
}

impl KeyedLimit {
    pub fn new(limit: Limit, capacity: usize) -> Self {
        let slots = (capacity * 4 / 3).next_power_of_two();
        Self {
            limit,
            mask: slots as u64 - 1,
            slots: (0..slots).map(|_| Default::default()).collect(),
        }
    }

    #[inline]
    pub fn check(&self, key: u64) -> Result<(), u64> {
        let stored = key + 1;
        let mut at = foldhash::quality::FixedState::default().hash_one_u64(key) & self.mask;
        loop {
            let slot = &self.slots[at as usize];
            match slot.0.load(Relaxed) {
                found if found == stored => return self.limit.check_word(&slot.1),
                0 => {
                    if slot.0.compare_exchange(0, stored, Relaxed, Relaxed).is_ok() {
                        return self.limit.check_word(&slot.1);
                    }
                }
                _ => at = (at + 1) & self.mask,
            }
        }
    }
}

trait HashOne {
    fn hash_one_u64(&self, key: u64) -> u64;
}

impl HashOne for foldhash::quality::FixedState {
    #[inline]
    fn hash_one_u64(&self, key: u64) -> u64 {
        std::hash::BuildHasher::hash_one(self, key)
    }
}

/// The inner service of every table: answers at once.
#[derive(Clone, Copy)]
pub struct Bare;

impl Service<u64> for Bare {
    type Response = u64;
    type Error = std::convert::Infallible;
    type Future = std::future::Ready<Result<u64, Self::Error>>;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: u64) -> Self::Future {
        std::future::ready(Ok(request))
    }
}

/// An inner service of which every other call fails.
#[derive(Clone, Default)]
pub struct EveryOther(bool);

/// Its failure.
#[derive(Clone, Copy, Debug)]
pub struct Failed;

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("failed")
    }
}

impl std::error::Error for Failed {}

impl Service<u64> for EveryOther {
    type Response = u64;
    type Error = Failed;
    type Future = std::future::Ready<Result<u64, Failed>>;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: u64) -> Self::Future {
        self.0 = !self.0;
        std::future::ready(if self.0 { Ok(request) } else { Err(Failed) })
    }
}

/// A limit as a layer: the decision in `call`, the inner future moved and not boxed.
#[derive(Clone)]
pub struct LimitService<S> {
    pub inner: S,
    pub limit: Arc<Limit>,
}

pub enum MaybeFuture<F> {
    Called(F),
    Refused(u64),
}

pub enum MaybeError<E> {
    #[expect(dead_code, reason = "a refusal carries it, though nobody here looks")]
    Refused(u64),
    Inner(E),
}

impl<F, T, E> Future for MaybeFuture<F>
where
    F: Future<Output = Result<T, E>> + Unpin,
{
    type Output = Result<T, MaybeError<E>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Called(future) => Pin::new(future).poll(cx).map_err(MaybeError::Inner),
            Self::Refused(wait) => Poll::Ready(Err(MaybeError::Refused(*wait))),
        }
    }
}

impl<S> Service<u64> for LimitService<S>
where
    S: Service<u64>,
    S::Future: Unpin,
{
    type Response = S::Response;
    type Error = MaybeError<S::Error>;
    type Future = MaybeFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(MaybeError::Inner)
    }

    #[inline]
    fn call(&mut self, request: u64) -> Self::Future {
        match self.limit.check() {
            Ok(()) => MaybeFuture::Called(self.inner.call(request)),
            Err(wait) => MaybeFuture::Refused(wait),
        }
    }
}

/// A breaker of one state word and one packed counter.
pub struct Breaker {
    start: Instant,
    /// 0 while closed, else when it may be tried again.
    open_until: AtomicU64,
    counts: AtomicU64,
    slow: u64,
}

impl Breaker {
    pub fn closed() -> Self {
        Self {
            start: Instant::now(),
            open_until: AtomicU64::new(0),
            counts: AtomicU64::new(0),
            slow: 1_000_000_000,
        }
    }

    pub fn open() -> Self {
        let breaker = Self::closed();
        breaker.open_until.store(u64::MAX, Relaxed);
        breaker
    }

    #[inline]
    pub fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    #[inline]
    pub fn admit(&self) -> Result<(), u64> {
        match self.open_until.load(Relaxed) {
            0 => Ok(()),
            until => Err(until.saturating_sub(self.now())),
        }
    }

    #[inline]
    pub fn record(&self, failed: bool, started: u64) {
        let slow = self.now() - started >= self.slow;
        self.counts
            .fetch_add(1 | (u64::from(failed | slow) << 32), Relaxed);
    }
}

/// A breaker as a layer, with two clock reads (`TIMED`) or none.
#[derive(Clone)]
pub struct BreakerService<S, const TIMED: bool> {
    pub inner: S,
    pub breaker: Arc<Breaker>,
}

pub enum BreakerFuture<F, const TIMED: bool> {
    Called(F, Arc<Breaker>, u64),
    Refused(u64),
}

impl<F, T, E, const TIMED: bool> Future for BreakerFuture<F, TIMED>
where
    F: Future<Output = Result<T, E>> + Unpin,
{
    type Output = Result<T, MaybeError<E>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Called(future, breaker, started) => match Pin::new(future).poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(result) => {
                    if TIMED {
                        breaker.record(result.is_err(), *started);
                    } else if result.is_err() {
                        breaker.counts.fetch_add(1 << 32, Relaxed);
                    }
                    Poll::Ready(result.map_err(MaybeError::Inner))
                }
            },
            Self::Refused(wait) => Poll::Ready(Err(MaybeError::Refused(*wait))),
        }
    }
}

impl<S, const TIMED: bool> Service<u64> for BreakerService<S, TIMED>
where
    S: Service<u64>,
    S::Future: Unpin,
{
    type Response = S::Response;
    type Error = MaybeError<S::Error>;
    type Future = BreakerFuture<S::Future, TIMED>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(MaybeError::Inner)
    }

    #[inline]
    fn call(&mut self, request: u64) -> Self::Future {
        match self.breaker.admit() {
            Ok(()) => {
                let started = if TIMED { self.breaker.now() } else { 0 };
                BreakerFuture::Called(self.inner.call(request), self.breaker.clone(), started)
            }
            Err(wait) => BreakerFuture::Refused(wait),
        }
    }
}
