use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::http::HeaderMap;
use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::ClassifyEnd;
use super::tracked_call::{OnPanic, TrackedCall};
use crate::circuit_breaker::Answered;

pin_project! {
    /// A response body that carries a breaker's call to its end.
    ///
    /// Frames, trailers, size hints and back-pressure pass through untouched and nothing is
    /// buffered. The call is recorded once, with the time from its start:
    ///
    /// | what happens first | recorded |
    /// |---|---|
    /// | the head is all there is: the request was a HEAD, a CONNECT that succeeded, or the status is 101, 204 or 304 | the classifier's verdict |
    /// | the body says it is at its end (as soon as it comes, or after a frame), or yields no more | the classifier's verdict |
    /// | it has yielded all of its declared length, and the classifier does not wait for trailers | the classifier's verdict |
    /// | trailers | the classifier's verdict on them |
    /// | an error | the classifier's verdict on it |
    /// | a panic | a failure |
    /// | it is dropped | where the head was a failure, or ignored: that. Otherwise the caller went away: a cancelled call |
    ///
    /// Callers commonly drop the body of a 503 unread, hence the last row.
    pub struct TrackedBody<B, C, State> {
        #[pin]
        inner: B,
        call: Option<TrackedCall<C, State>>,
        // What is yet to come of the declared length.
        left: Option<u64>,
    }
}

impl<B, C, State> TrackedBody<B, C, State> {
    pub(super) fn untracked(inner: B) -> Self {
        Self {
            inner,
            call: None,
            left: None,
        }
    }

    /// The body within.
    pub fn get_ref(&self) -> &B {
        &self.inner
    }

    /// The body within. What is read past this wrapper is not seen by it.
    pub fn get_mut(&mut self) -> &mut B {
        &mut self.inner
    }
}

impl<B, C, State> TrackedBody<B, C, State>
where
    B: Body,
    C: ClassifyEnd<State, B::Error> + Clone,
{
    /// `no_body`: whether the head is known to be all there is.
    pub(super) fn tracked(inner: B, call: Answered<'_, C, State>, no_body: bool) -> Self {
        let mut call = Some(TrackedCall::new(call));
        let on_panic = OnPanic::new(&mut call);
        let left = inner.size_hint().exact();
        let all = left == Some(0) && !on_panic.waits_for_trailers::<B::Error>();
        let at_end = no_body || inner.is_end_stream();
        on_panic.disarm();
        if at_end || all {
            end::<B::Error, _, _>(&mut call, None, None);
        }
        Self { inner, call, left }
    }
}

impl<B, C, State> Body for TrackedBody<B, C, State>
where
    B: Body,
    C: ClassifyEnd<State, B::Error>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        if this.call.is_none() {
            return this.inner.poll_frame(cx);
        }
        let on_panic = OnPanic::new(this.call);
        let polled = this.inner.as_mut().poll_frame(cx);
        let frame = match &polled {
            Poll::Ready(Some(Ok(frame))) => Some(frame),
            _ => None,
        };
        let at_end = frame.is_some_and(|frame| {
            let all = is_last::<B>(this.left, frame) && !on_panic.waits_for_trailers::<B::Error>();
            all || this.inner.is_end_stream()
        });
        on_panic.disarm();

        match &polled {
            Poll::Pending => {}
            Poll::Ready(None) => end::<B::Error, _, _>(this.call, None, None),
            Poll::Ready(Some(Err(error))) => end(this.call, None, Some(error)),
            Poll::Ready(Some(Ok(frame))) => {
                let trailers = frame.trailers_ref();
                if at_end || trailers.is_some() {
                    end::<B::Error, _, _>(this.call, trailers, None);
                }
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Whether `frame` completes the declared length.
fn is_last<B: Body>(left: &mut Option<u64>, frame: &Frame<B::Data>) -> bool {
    let (Some(left), Some(data)) = (left, frame.data_ref()) else {
        return false;
    };
    *left = left.saturating_sub(data.remaining() as u64);
    *left == 0
}

/// Ends `call`, which is then gone.
fn end<BodyError, C, State>(
    call: &mut Option<TrackedCall<C, State>>,
    trailers: Option<&HeaderMap>,
    error: Option<&BodyError>,
) where
    C: ClassifyEnd<State, BodyError>,
{
    if let Some(call) = call.take() {
        call.end(trailers, error);
    }
}

/// An empty body that carries no call: for a responder further out, `grpc::respond` say.
impl<B: Default, C, State> Default for TrackedBody<B, C, State> {
    fn default() -> Self {
        Self::untracked(B::default())
    }
}

/// A body of text that carries no call: for a responder further out, `http::respond` say.
impl<B: From<String>, C, State> From<String> for TrackedBody<B, C, State> {
    fn from(text: String) -> Self {
        Self::untracked(B::from(text))
    }
}

impl<B: fmt::Debug, C, State> fmt::Debug for TrackedBody<B, C, State> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedBody")
            .field("inner", &self.inner)
            .field("in_flight", &self.call.is_some())
            .finish()
    }
}
