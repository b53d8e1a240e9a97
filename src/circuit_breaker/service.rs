use std::fmt;
use std::marker::PhantomData;
use std::task::{Context, Poll};

use tower_service::Service;

use super::future::ResponseFuture;
use super::guard::OnPanic;
use super::in_flight::InFlight;
use super::{Admit, Admitted, AtHead, CircuitOpen, Classify, EndsAt, ErrorsAsFailures, Single};
use crate::reject::{AsError, Reject};

/// Puts each call to a circuit breaker before the inner service.
///
/// Made by [`CircuitBreakerLayer`](super::CircuitBreakerLayer), where the behaviour is described.
/// Clones share the breaker. What `poll_ready` prepared belongs to the instance it was called on:
/// a clone starts without it.
pub struct CircuitBreakerService<S, A = Single, C = ErrorsAsFailures, M = AsError, E = AtHead> {
    inner: S,
    admit: A,
    classifier: C,
    reject: M,
    end: PhantomData<fn() -> E>,
}

impl<S, A, C, M, E> CircuitBreakerService<S, A, C, M, E> {
    pub(super) fn new(inner: S, admit: A, classifier: C, reject: M) -> Self {
        Self {
            inner,
            admit,
            classifier,
            reject,
            end: PhantomData,
        }
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service, to be changed. Calls made on it directly are not seen by the breaker.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Gives the inner service back.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// Calls the inner service for an admitted call.
    #[inline]
    fn begin<Request, Answer>(
        &mut self,
        permit: Admitted,
        request: Request,
    ) -> ResponseFuture<S::Future, Answer, Request, C, M, E>
    where
        S: Service<Request>,
        C: Classify<S::Response, S::Error> + Clone,
        E: EndsAt<Request, S::Response, C, C::State>,
    {
        let end = E::of(&request);
        let mut call = InFlight::new(permit);
        let guard = OnPanic::new(&mut call);
        let classifier = self.classifier.clone();
        let inner = self.inner.call(request);
        guard.disarm();
        ResponseFuture::admitted(inner, call, classifier, end)
    }
}

impl<S, A, C, M, E, Request> Service<Request> for CircuitBreakerService<S, A, C, M, E>
where
    S: Service<Request>,
    A: Admit<Request>,
    C: Classify<S::Response, S::Error> + Clone,
    M: Reject<Request, CircuitOpen, S::Response, S::Error>,
    E: EndsAt<Request, S::Response, C, C::State>,
{
    type Response = E::Response;
    type Error = M::Error;
    type Future = ResponseFuture<S::Future, Result<S::Response, M::Error>, Request, C, M, E>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        self.admit.poll_ready(&mut self.inner, cx).map_err(M::inner)
    }

    #[inline]
    fn call(&mut self, request: Request) -> Self::Future {
        if self.admit.skips(&request) {
            return ResponseFuture::unguarded(self.inner.call(request));
        }
        if let Some(permit) = self.admit.admit_at_once(&request) {
            return self.begin(permit, request);
        }
        if let Some(refusal) = self.admit.refuse_at_once(&request) {
            return ResponseFuture::refused(self.reject.refuse(&request, refusal));
        }
        match self.admit.admit(&request) {
            Ok(Some(permit)) => self.begin(permit, request),
            Ok(None) => ResponseFuture::unguarded(self.inner.call(request)),
            Err(refusal) => ResponseFuture::refused(self.reject.refuse(&request, refusal)),
        }
    }
}

impl<S, A, C, M, E> Clone for CircuitBreakerService<S, A, C, M, E>
where
    S: Clone,
    A: Clone,
    C: Clone,
    M: Clone,
{
    fn clone(&self) -> Self {
        Self::new(
            self.inner.clone(),
            self.admit.clone(),
            self.classifier.clone(),
            self.reject.clone(),
        )
    }
}

impl<S: fmt::Debug, A: fmt::Debug, C, M, E> fmt::Debug for CircuitBreakerService<S, A, C, M, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreakerService")
            .field("inner", &self.inner)
            .field("admit", &self.admit)
            .finish_non_exhaustive()
    }
}
