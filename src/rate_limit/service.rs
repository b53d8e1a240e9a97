use std::fmt;
use std::task::{Context, Poll};

use tower_service::Service;

use super::decide::{Decide, Queue};
use super::future::{ResponseFuture, WaitFuture};
use super::layer::{RateLimitLayer, Refusing, Waiting};
use super::watch::Watch;
use super::{Annotate, RateLimited, RateLimiter};
use crate::reject::{AsError, Reject};

/// The service that [`RateLimitLayer`] makes; see there. A clone shares the limit.
#[derive(Clone)]
pub struct RateLimit<S, D = RateLimiter, M = AsError, W = Refusing, A = ()> {
    inner: S,
    layer: RateLimitLayer<D, M, W, A>,
}

impl<S, D, M, W, A> RateLimit<S, D, M, W, A> {
    /// Limits `inner` as services of `layer` are limited.
    pub fn new(inner: S, layer: RateLimitLayer<D, M, W, A>) -> Self {
        Self { inner, layer }
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service, without its limit.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, D, M, A, Request> Service<Request> for RateLimit<S, D, M, Refusing, A>
where
    S: Service<Request>,
    D: Decide<Request>,
    M: Reject<Request, RateLimited, S::Response, S::Error>,
    A: Annotate<S::Response>,
{
    type Response = S::Response;
    type Error = M::Error;
    type Future = ResponseFuture<S, Request, M, A>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        self.inner.poll_ready(cx).map_err(M::inner)
    }

    #[inline]
    fn call(&mut self, request: Request) -> Self::Future {
        let RateLimitLayer {
            decider, manner, ..
        } = &self.layer;
        if decider.skips(&request) {
            return ResponseFuture::called(self.inner.call(request), None, None);
        }
        let cost = decider.cost(&request);
        let now = decider.clock().now();
        let (note, watch) = match decider.decide(&request, now, cost) {
            Some(Ok(allowed)) => manner.admitted(allowed, decider.clock(), now),
            None => (None, None),
            Some(Err(refusal)) if manner.report.is_silent() => {
                return ResponseFuture::answered(manner.answer(&request, refusal));
            }
            Some(Err(refusal)) => {
                match manner.refuse_or_let_through(&request, refusal, decider.clock(), now) {
                    Ok(watch) => (None, watch),
                    Err(answer) => return ResponseFuture::answered(answer),
                }
            }
        };
        ResponseFuture::called(self.inner.call(request), note, watch)
    }
}

impl<S, D, M, A, Request> Service<Request> for RateLimit<S, D, M, Waiting, A>
where
    S: Service<Request> + Clone,
    D: Queue<Request>,
    M: Reject<Request, RateLimited, S::Response, S::Error> + Clone,
    A: Annotate<S::Response> + Clone,
{
    type Response = S::Response;
    type Error = M::Error;
    type Future = WaitFuture<S, Request, D::Wait, M, A>;

    /// Always ready: it is a clone of the inner service that is readied, when the turn has come.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let RateLimitLayer {
            decider,
            manner,
            flow,
        } = &self.layer;
        let inner = self.inner.clone();
        if decider.skips(&request) {
            return WaitFuture::readying(inner, request, None, None);
        }
        let cost = decider.cost(&request);
        let now = decider.clock().now();
        if manner.report.is_shadow() {
            let (note, watch) = match decider.decide(&request, now, cost) {
                Some(Ok(allowed)) => manner.admitted(allowed, decider.clock(), now),
                None => (None, None),
                Some(Err(refusal)) => (None, manner.let_through(refusal, decider.clock(), now)),
            };
            return WaitFuture::readying(inner, request, note, watch);
        }
        match decider.queue(&request, now, cost, flow.most) {
            Some(Ok(wait)) => {
                let watch = Watch::queued(&manner.report, decider.clock(), now);
                WaitFuture::queued(wait, inner, request, manner.clone(), watch)
            }
            None => WaitFuture::readying(inner, request, None, None),
            Some(Err(refusal)) => WaitFuture::answered(manner.refuse(&request, refusal)),
        }
    }
}

impl<S, D, M, W, A> fmt::Debug for RateLimit<S, D, M, W, A>
where
    S: fmt::Debug,
    RateLimitLayer<D, M, W, A>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("inner", &self.inner)
            .field("layer", &self.layer)
            .finish()
    }
}
