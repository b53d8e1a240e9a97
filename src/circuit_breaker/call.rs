use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::breaker::CircuitBreaker;
use super::classify::Outcome;
use super::error::CircuitOpen;
use super::permit::Admitted;
use crate::Error;

pin_project! {
    /// The future of [`CircuitBreaker::call`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Call<F> {
        stage: Stage,
        #[pin]
        future: F,
    }
}

enum Stage {
    /// Not polled yet.
    New(CircuitBreaker),
    Running(Admitted),
    Done,
}

impl<F> Call<F> {
    pub(super) fn new(breaker: CircuitBreaker, future: F) -> Self {
        Self {
            stage: Stage::New(breaker),
            future,
        }
    }
}

impl<F, T, E> Future for Call<F>
where
    F: Future<Output = Result<T, E>>,
{
    type Output = Result<T, Error<CircuitOpen, E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let admitted = match std::mem::replace(this.stage, Stage::Done) {
            Stage::New(breaker) => breaker.admit().map_err(Error::Refused)?,
            Stage::Running(admitted) => admitted,
            Stage::Done => panic!("polled after it was ready"),
        };
        let mut guard = PollGuard(Some(admitted));
        match this.future.poll(cx) {
            Poll::Pending => {
                if let Some(admitted) = guard.0.take() {
                    *this.stage = Stage::Running(admitted);
                }
                Poll::Pending
            }
            Poll::Ready(result) => {
                let outcome = match &result {
                    Ok(_) => Outcome::Success,
                    Err(_) => Outcome::Failure,
                };
                if let Some(admitted) = guard.0.take() {
                    admitted.end(outcome, None);
                }
                Poll::Ready(result.map_err(Error::Inner))
            }
        }
    }
}

/// On the stack around foreign code: dropped while still holding the call, the code panicked.
struct PollGuard(Option<Admitted>);

impl Drop for PollGuard {
    fn drop(&mut self) {
        if let Some(admitted) = self.0.take() {
            admitted.panicked();
        }
    }
}

impl<F> fmt::Debug for Call<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::New(_) => "new",
            Stage::Running(_) => "running",
            Stage::Done => "done",
        };
        write!(f, "Call({stage})")
    }
}
