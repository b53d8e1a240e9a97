//! An admitted call on its way from the response head to the end of the body.

use std::mem;
use std::time::Duration;

use ::http::HeaderMap;

use super::ClassifyEnd;
use crate::circuit_breaker::{Admitted, Answered, Head, Outcome, guard};
use crate::clock::Nanos;

/// Recorded exactly once: at the end, by a panic, or when dropped.
pub(super) struct TrackedCall<C, State>(Option<Judged<C, State>>);

/// A call whose head was judged, taken out of its response future.
struct Judged<C, State> {
    permit: Admitted,
    classifier: C,
    head: Head<State>,
    retry_floor: Option<Duration>,
    /// When the head was in, where anyone wants to hear of it.
    head_at: Option<Nanos>,
}

impl<C: Clone, State> TrackedCall<C, State> {
    pub(super) fn new(call: Answered<'_, C, State>) -> Self {
        let on_panic = guard::OnPanic::new(call.call);
        let classifier = call.classifier.clone();
        on_panic.disarm();
        Self(call.call.take().map(|permit| Judged {
            head_at: permit.time_of_head(),
            permit,
            classifier,
            head: call.head,
            retry_floor: call.retry_floor,
        }))
    }
}

impl<C, State> TrackedCall<C, State> {
    fn waits_for_trailers<BodyError>(&self) -> bool
    where
        C: ClassifyEnd<State, BodyError>,
    {
        match &self.0 {
            Some(Judged {
                classifier,
                head: Head::Carry(state),
                ..
            }) => classifier.needs_trailers(state),
            _ => false,
        }
    }

    pub(super) fn end<BodyError>(mut self, trailers: Option<&HeaderMap>, error: Option<&BodyError>)
    where
        C: ClassifyEnd<State, BodyError>,
    {
        let Some(mut call) = self.0.take() else {
            return;
        };
        let head = mem::replace(&mut call.head, Head::Done(Outcome::Failure));
        let (outcome, floor) = match head {
            Head::Done(outcome) => (outcome, call.retry_floor),
            Head::Carry(state) => {
                let judging = Judging(Some(call.permit));
                let outcome = call.classifier.end(state, trailers, error);
                let floor = trailers.and_then(|trailers| call.classifier.end_retry_floor(trailers));
                call.permit = judging.done();
                (outcome, floor)
            }
        };
        let head_at = call.head_at;
        call.permit.record_past_head(outcome, floor, head_at);
    }

    fn panicked(mut self) {
        if let Some(call) = self.0.take() {
            call.permit.panicked();
        }
    }
}

impl<C, State> Drop for TrackedCall<C, State> {
    fn drop(&mut self) {
        let Some(call) = self.0.take() else {
            return;
        };
        match call.head {
            // The head has said it; that nobody wants to read the rest changes nothing.
            Head::Done(outcome @ (Outcome::Failure | Outcome::Ignored)) => {
                let floor = call.retry_floor;
                call.permit.record_past_head(outcome, floor, call.head_at);
            }
            // The permit's own drop: cancelled.
            Head::Done(Outcome::Success) | Head::Carry(_) => drop(call.permit),
        }
    }
}

/// Records a panic of the classifier.
struct Judging(Option<Admitted>);

impl Judging {
    fn done(mut self) -> Admitted {
        self.0.take().expect("a permit is taken out once")
    }
}

impl Drop for Judging {
    fn drop(&mut self) {
        if let Some(permit) = self.0.take() {
            permit.panicked();
        }
    }
}

/// Records the call as a panicked one if it goes out of scope by unwinding: it stands on the
/// stack around the code of the inner body and of the classifier.
pub(super) struct OnPanic<'a, C, State>(Option<&'a mut Option<TrackedCall<C, State>>>);

impl<'a, C, State> OnPanic<'a, C, State> {
    pub(super) fn new(call: &'a mut Option<TrackedCall<C, State>>) -> Self {
        Self(Some(call))
    }

    pub(super) fn waits_for_trailers<BodyError>(&self) -> bool
    where
        C: ClassifyEnd<State, BodyError>,
    {
        let call = self.0.as_ref().and_then(|call| call.as_ref());
        call.is_some_and(TrackedCall::waits_for_trailers::<BodyError>)
    }

    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl<C, State> Drop for OnPanic<'_, C, State> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take().and_then(Option::take) {
            call.panicked();
        }
    }
}
