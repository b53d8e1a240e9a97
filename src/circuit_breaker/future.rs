//! Response futures.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::end::Answered;
use super::guard::OnPanic;
use super::in_flight::InFlight;
use super::{CircuitOpen, Classify, EndsAt, Head, Outcome};
use crate::reject::Reject;

pin_project! {
    /// The response of a [`CircuitBreakerService`](super::CircuitBreakerService): the inner
    /// service's, or a refusal, which is there at once. `A` is that refusal, as the service
    /// answers it.
    ///
    /// Dropping it before its end records the call as cancelled, by the breaker's cancel rule,
    /// with the time it took so far. A panic of the inner future records a failure and goes on to
    /// the caller.
    ///
    /// # Panics
    ///
    /// When polled again after it completed.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, A, Request, C, M, E> {
        #[pin]
        state: State<F, A, C, E>,
        mode: PhantomData<fn(Request) -> M>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, A, C, E> {
        Admitted { #[pin] inner: F, call: InFlight, classifier: C, end: E },
        Unguarded { #[pin] inner: F },
        Refused { answer: Option<A> },
    }
}

/// The message of a future that is polled after it completed.
const POLLED_AGAIN: &str = "`ResponseFuture` polled after completion";

impl<F, A, Request, C, M, E> ResponseFuture<F, A, Request, C, M, E> {
    #[inline]
    pub(super) fn admitted(inner: F, call: InFlight, classifier: C, end: E) -> Self {
        Self::new(State::Admitted {
            inner,
            call,
            classifier,
            end,
        })
    }

    pub(super) fn unguarded(inner: F) -> Self {
        Self::new(State::Unguarded { inner })
    }

    #[inline]
    pub(super) fn refused(answer: A) -> Self {
        let answer = Some(answer);
        Self::new(State::Refused { answer })
    }

    #[inline]
    fn new(state: State<F, A, C, E>) -> Self {
        Self {
            state,
            mode: PhantomData,
        }
    }
}

impl<F, Response, Error, Request, C, M, E> Future
    for ResponseFuture<F, Result<Response, M::Error>, Request, C, M, E>
where
    F: Future<Output = Result<Response, Error>>,
    C: Classify<Response, Error>,
    M: Reject<Request, CircuitOpen, Response, Error>,
    E: EndsAt<Request, Response, C, C::State>,
{
    type Output = Result<E::Response, M::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match self.project().state.project() {
            StateProj::Admitted {
                inner,
                call,
                classifier,
                end,
            } => {
                let guard = OnPanic::new(call);
                let Poll::Ready(result) = inner.poll(cx) else {
                    guard.disarm();
                    return Poll::Pending;
                };
                guard.disarm();
                settle(call, classifier, *end, result).map_err(M::inner)
            }
            StateProj::Unguarded { inner } => {
                ready!(inner.poll(cx)).map(E::unguarded).map_err(M::inner)
            }
            StateProj::Refused { answer } => answer.take().expect(POLLED_AGAIN).map(E::unguarded),
        })
    }
}

/// Judges what the inner service gave, and records it or hands the call on to its end.
#[inline]
fn settle<E, C, Request, Response, Error>(
    in_flight: &mut InFlight,
    classifier: &C,
    end: E,
    result: Result<Response, Error>,
) -> Result<E::Response, Error>
where
    C: Classify<Response, Error>,
    E: EndsAt<Request, Response, C, C::State>,
{
    let guard = OnPanic::new(in_flight);
    let judged = result.as_ref();
    let head = match classifier.head(judged) {
        // There is no body for an error's state to be carried to.
        Head::Carry(_) if judged.is_err() => Head::Done(Outcome::Failure),
        head => head,
    };
    let retry_floor = match head {
        Head::Done(Outcome::Failure) => classifier.retry_floor(judged),
        _ => None,
    };
    guard.disarm();
    let call = Answered {
        call: in_flight,
        classifier,
        head,
        retry_floor,
    };
    match result {
        Ok(response) => Ok(end.answered(call, response)),
        Err(error) => {
            call.end();
            Err(error)
        }
    }
}

impl<F, A, Request, C, M, E> fmt::Debug for ResponseFuture<F, A, Request, C, M, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state: &dyn fmt::Debug = match &self.state {
            State::Admitted { call, .. } => call,
            State::Unguarded { .. } => &"unguarded",
            State::Refused { .. } => &"refused",
        };
        f.debug_tuple("ResponseFuture").field(state).finish()
    }
}
