//! An inner service that holds its callers to the Tower contract.

use std::collections::VecDeque;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tower_service::Service;

/// Panics in `call` unless this very instance answered ready since its last call; a clone starts
/// unready, like one of `ConcurrencyLimit`. Counts polls, calls and drops over all its clones.
///
/// `S` is the service that answers; readiness follows the script, then is ready.
pub struct Strict<S> {
    inner: S,
    ready: bool,
    counts: Arc<Counts>,
}

#[derive(Default)]
pub struct Counts {
    pub polls: AtomicUsize,
    pub calls: AtomicUsize,
    pub drops: AtomicUsize,
    script: Mutex<VecDeque<Readiness>>,
    waker: Mutex<Option<Waker>>,
}

/// What one `poll_ready` answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Readiness {
    Ready,
    Pending,
    Error,
}

/// The error of a scripted `poll_ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotWell;

impl std::fmt::Display for NotWell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not well")
    }
}

impl std::error::Error for NotWell {}

impl Counts {
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub fn polls(&self) -> usize {
        self.polls.load(Ordering::SeqCst)
    }

    pub fn drops(&self) -> usize {
        self.drops.load(Ordering::SeqCst)
    }

    /// Appends answers for the next calls of `poll_ready`, and wakes whoever was left pending.
    pub fn script(&self, answers: impl IntoIterator<Item = Readiness>) {
        self.script.lock().extend(answers);
        self.wake();
    }

    pub fn wake(&self) {
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<S> Strict<S> {
    pub fn new(inner: S) -> (Self, Arc<Counts>) {
        let counts = Arc::new(Counts::default());
        let strict = Self {
            inner,
            ready: false,
            counts: counts.clone(),
        };
        (strict, counts)
    }
}

impl<S: Clone> Clone for Strict<S> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            ready: false,
            counts: self.counts.clone(),
        }
    }
}

impl<S> Drop for Strict<S> {
    fn drop(&mut self) {
        self.counts.drops.fetch_add(1, Ordering::SeqCst);
    }
}

impl<S, Request> Service<Request> for Strict<S>
where
    S: Service<Request>,
    S::Error: From<NotWell>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.counts.polls.fetch_add(1, Ordering::SeqCst);
        let answer = self.counts.script.lock().pop_front();
        match answer.unwrap_or(Readiness::Ready) {
            Readiness::Ready => {
                self.ready = true;
                Poll::Ready(Ok(()))
            }
            Readiness::Pending => {
                *self.counts.waker.lock() = Some(cx.waker().clone());
                Poll::Pending
            }
            Readiness::Error => Poll::Ready(Err(NotWell.into())),
        }
    }

    fn call(&mut self, request: Request) -> S::Future {
        assert!(self.ready, "called an instance that was not polled ready");
        self.ready = false;
        self.counts.calls.fetch_add(1, Ordering::SeqCst);
        self.inner.call(request)
    }
}

/// Answers each request with itself, at once.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

impl<Request> Service<Request> for Echo {
    type Response = Request;
    type Error = NotWell;
    type Future = Ready<Result<Request, NotWell>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), NotWell>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        ready(Ok(request))
    }
}
