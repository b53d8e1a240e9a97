//! A body that does as it is told.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use tower_sluice::clock::ManualClock;

/// What a body does when it is polled.
#[derive(Clone, Debug)]
pub enum Step {
    Data(&'static str),
    Trailers(&'static [(&'static str, &'static str)]),
    Error,
    Panic,
    Pending,
    Advance(ManualClock, Duration),
}

/// A body that does `steps`, then ends.
#[derive(Clone, Debug, Default)]
pub struct Script {
    steps: VecDeque<Step>,
    /// Says that it is at its end when no step is left.
    says_end: bool,
    length: Option<u64>,
}

impl Script {
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let steps = steps.into_iter().collect();
        Self {
            steps,
            ..Self::default()
        }
    }

    pub fn saying_end(self) -> Self {
        Self {
            says_end: true,
            ..self
        }
    }

    pub fn declaring(self, length: u64) -> Self {
        let length = Some(length);
        Self { length, ..self }
    }
}

#[derive(Debug, PartialEq)]
pub struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken")
    }
}

impl std::error::Error for Broken {}

impl Body for Script {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        Poll::Ready(match self.steps.pop_front() {
            None => None,
            Some(Step::Data(text)) => Some(Ok(Frame::data(Bytes::from_static(text.as_bytes())))),
            Some(Step::Trailers(pairs)) => Some(Ok(Frame::trailers(headers(pairs)))),
            Some(Step::Error) => Some(Err(Broken)),
            Some(Step::Panic) => panic!("the body panics"),
            Some(Step::Pending) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Step::Advance(clock, time)) => {
                clock.advance(time);
                return self.poll_frame(cx);
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.says_end && self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

pub fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|&(name, value)| {
        let name = http::HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    });
    pairs.collect()
}
