//! The response futures of [`RateLimit`](super::RateLimit).

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_service::Service;

use super::event::Ending;
use super::manner::Manner;
use super::rare::Rare;
use super::watch::Watch;
use super::{Allowed, Annotate, RateLimited};
use crate::reject::Reject;

pin_project! {
    /// The response of a service that refuses.
    ///
    /// Dropping it drops the inner service's future; what the call cost stays spent.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, Request, M, A>
    where
        S: Service<Request>,
        M: Reject<Request, RateLimited, S::Response, S::Error>,
        A: Annotate<S::Response>,
    {
        #[pin]
        stage: Stage<S::Future, A::Note, Result<S::Response, M::Error>>,
        watch: Rare<Watch>,
        request: PhantomData<fn(Request)>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<F, N, O> {
        Called { #[pin] response: F, note: Option<N> },
        Answered { answer: Option<O> },
    }
}

impl<S, Request, M, A> ResponseFuture<S, Request, M, A>
where
    S: Service<Request>,
    M: Reject<Request, RateLimited, S::Response, S::Error>,
    A: Annotate<S::Response>,
{
    #[inline]
    pub(super) fn called(
        response: S::Future,
        note: Option<A::Note>,
        watch: Option<Box<Watch>>,
    ) -> Self {
        Self {
            stage: Stage::Called { response, note },
            watch: watch.into(),
            request: PhantomData,
        }
    }

    #[inline]
    pub(super) fn answered(answer: Result<S::Response, M::Error>) -> Self {
        Self {
            stage: Stage::Answered {
                answer: Some(answer),
            },
            watch: Rare::NONE,
            request: PhantomData,
        }
    }
}

impl<S, Request, M, A> Future for ResponseFuture<S, Request, M, A>
where
    S: Service<Request>,
    S::Future: Future<Output = Result<S::Response, S::Error>>,
    M: Reject<Request, RateLimited, S::Response, S::Error>,
    A: Annotate<S::Response>,
{
    type Output = Result<S::Response, M::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.stage.project() {
            StageProj::Called { response, note } => {
                let ended = ready!(response.poll(cx));
                Poll::Ready(finish::<Request, M, A, _, _>(
                    ended,
                    note.take(),
                    this.watch.take(),
                ))
            }
            StageProj::Answered { answer } => Poll::Ready(
                answer
                    .take()
                    .expect("`ResponseFuture` polled after it was ready"),
            ),
        }
    }
}

/// What leaves the layer when the inner service is done.
#[inline]
fn finish<Request, M, A, Response, E>(
    ended: Result<Response, E>,
    note: Option<A::Note>,
    watch: Option<Box<Watch>>,
) -> Result<Response, M::Error>
where
    M: Reject<Request, RateLimited, Response, E>,
    A: Annotate<Response>,
{
    if let Some(watch) = watch {
        watch.ended(if ended.is_ok() {
            Ending::Response
        } else {
            Ending::Error
        });
    }
    match ended {
        Ok(mut response) => {
            if let Some(note) = note {
                A::write(note, &mut response);
            }
            Ok(response)
        }
        Err(error) => Err(M::inner(error)),
    }
}

pin_project! {
    /// The response of a service that lets calls wait: it waits for the call's turn, readies a
    /// clone of the inner service and calls it.
    ///
    /// Dropping it while it waits gives its place to the next and spends nothing; dropping it
    /// later drops the inner service's future, and what the call cost stays spent.
    #[must_use = "futures do nothing unless polled"]
    pub struct WaitFuture<S, Request, W, M, A>
    where
        S: Service<Request>,
        M: Reject<Request, RateLimited, S::Response, S::Error>,
        A: Annotate<S::Response>,
    {
        #[pin]
        stage: WaitStage<S::Future, W, Result<S::Response, M::Error>>,
        // The call to make, and how to refuse it; gone once it is made.
        inner: Option<S>,
        request: Option<Request>,
        manner: Option<Manner<M, A>>,
        note: Option<A::Note>,
        watch: Option<Box<Watch>>,
    }
}

pin_project! {
    #[project = WaitStageProj]
    enum WaitStage<F, W, O> {
        Queued { #[pin] wait: W },
        Readying,
        Called { #[pin] response: F },
        Answered { answer: Option<O> },
    }
}

impl<S, Request, W, M, A> WaitFuture<S, Request, W, M, A>
where
    S: Service<Request>,
    M: Reject<Request, RateLimited, S::Response, S::Error>,
    A: Annotate<S::Response>,
{
    pub(super) fn queued(
        wait: W,
        inner: S,
        request: Request,
        manner: Manner<M, A>,
        watch: Option<Box<Watch>>,
    ) -> Self {
        Self {
            stage: WaitStage::Queued { wait },
            inner: Some(inner),
            request: Some(request),
            manner: Some(manner),
            note: None,
            watch,
        }
    }

    pub(super) fn readying(
        inner: S,
        request: Request,
        note: Option<A::Note>,
        watch: Option<Box<Watch>>,
    ) -> Self {
        Self {
            stage: WaitStage::Readying,
            inner: Some(inner),
            request: Some(request),
            manner: None,
            note,
            watch,
        }
    }

    pub(super) fn answered(answer: Result<S::Response, M::Error>) -> Self {
        Self {
            stage: WaitStage::Answered {
                answer: Some(answer),
            },
            inner: None,
            request: None,
            manner: None,
            note: None,
            watch: None,
        }
    }
}

const POLLED_AFTER_READY: &str = "`WaitFuture` polled after it was ready";

impl<S, Request, W, M, A> Future for WaitFuture<S, Request, W, M, A>
where
    S: Service<Request>,
    W: Future<Output = Result<Allowed, RateLimited>>,
    M: Reject<Request, RateLimited, S::Response, S::Error>,
    A: Annotate<S::Response>,
{
    type Output = Result<S::Response, M::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.stage.as_mut().project() {
                WaitStageProj::Queued { wait } => {
                    let turn = ready!(wait.poll(cx));
                    let manner = this.manner.take().expect(POLLED_AFTER_READY);
                    // Before anything that may panic: the queue is left.
                    this.stage.set(WaitStage::Readying);
                    match turn {
                        Ok(allowed) => {
                            if let Some(watch) = this.watch {
                                watch.admitted(&allowed);
                            }
                            *this.note = Some(manner.annotate.admitted(&allowed));
                        }
                        Err(refusal) => {
                            let request = this.request.take().expect(POLLED_AFTER_READY);
                            *this.inner = None;
                            return Poll::Ready(manner.refuse_queued(
                                &request,
                                refusal,
                                this.watch.take(),
                            ));
                        }
                    }
                }
                WaitStageProj::Readying => {
                    let inner = this.inner.as_mut().expect(POLLED_AFTER_READY);
                    if let Err(error) = ready!(inner.poll_ready(cx)) {
                        *this.inner = None;
                        let (note, watch) = (this.note.take(), this.watch.take());
                        return Poll::Ready(finish::<Request, M, A, _, _>(Err(error), note, watch));
                    }
                    let request = this.request.take().expect(POLLED_AFTER_READY);
                    let response = inner.call(request);
                    this.stage.set(WaitStage::Called { response });
                    *this.inner = None;
                }
                WaitStageProj::Called { response } => {
                    let ended = ready!(response.poll(cx));
                    let (note, watch) = (this.note.take(), this.watch.take());
                    return Poll::Ready(finish::<Request, M, A, _, _>(ended, note, watch));
                }
                WaitStageProj::Answered { answer } => {
                    return Poll::Ready(answer.take().expect(POLLED_AFTER_READY));
                }
            }
        }
    }
}

impl<S, Request, M, A> fmt::Debug for ResponseFuture<S, Request, M, A>
where
    S: Service<Request>,
    M: Reject<Request, RateLimited, S::Response, S::Error>,
    A: Annotate<S::Response>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Called { .. } => "Called",
            Stage::Answered { .. } => "Answered",
        };
        write!(f, "ResponseFuture({stage})")
    }
}

impl<S, Request, W, M, A> fmt::Debug for WaitFuture<S, Request, W, M, A>
where
    S: Service<Request>,
    M: Reject<Request, RateLimited, S::Response, S::Error>,
    A: Annotate<S::Response>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            WaitStage::Queued { .. } => "Queued",
            WaitStage::Readying => "Readying",
            WaitStage::Called { .. } => "Called",
            WaitStage::Answered { .. } => "Answered",
        };
        write!(f, "WaitFuture({stage})")
    }
}
