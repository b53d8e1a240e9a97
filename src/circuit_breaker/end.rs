use std::fmt;
use std::time::Duration;

use super::in_flight::InFlight;
use super::{Head, Outcome};

/// Where a call ends: at the response head ([`AtHead`], the default), or at the end of the body
/// (`http::UntilBodyEnd`). Sealed; a service names it in its own type.
///
/// Until its end a call counts as in flight, holds its probe's place, and its time runs.
#[diagnostic::on_unimplemented(
    message = "calls of `{Request}` answered with `{Response}` cannot end at `{Self}` when judged by `{C}`",
    note = "`.until_body_end()` needs `http::Request`, or is `.until_any_body_end()` for others; `http::Response<B>` with `B: http_body::Body`; and a classifier that implements `http::ClassifyEnd`: closures, the default and those of `http` do"
)]
pub trait EndsAt<Request, Response, C, State>: sealed::Sealed + Copy {
    /// What the service answers with.
    type Response;

    /// What has to be known of the request when its answer comes.
    #[doc(hidden)]
    fn of(request: &Request) -> Self;

    /// Takes over a call whose response head is in.
    #[doc(hidden)]
    fn answered(self, call: Answered<'_, C, State>, response: Response) -> Self::Response;

    /// Passes on a response that stands for no admitted call.
    #[doc(hidden)]
    fn unguarded(response: Response) -> Self::Response;
}

/// Ends a call where its response head is in: the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtHead;

impl<Request, Response, C, State> EndsAt<Request, Response, C, State> for AtHead {
    type Response = Response;

    #[inline]
    fn of(_request: &Request) -> Self {
        Self
    }

    #[inline]
    fn answered(self, call: Answered<'_, C, State>, response: Response) -> Response {
        call.end();
        response
    }

    #[inline]
    fn unguarded(response: Response) -> Response {
        response
    }
}

/// An admitted call whose response head is in and has been judged, still where the response
/// future keeps it: a call that ends here need not be moved.
#[doc(hidden)]
pub struct Answered<'a, C, State> {
    pub(crate) call: &'a mut InFlight,
    #[cfg_attr(not(feature = "http"), allow(dead_code))] // read where calls end with the body
    pub(crate) classifier: &'a C,
    pub(crate) head: Head<State>,
    /// The time to stay open that a response judged a failure asked for.
    pub(crate) retry_floor: Option<Duration>,
}

impl<C, State> Answered<'_, C, State> {
    /// Records the call as it was judged at the head.
    #[inline]
    pub(crate) fn end(self) {
        let outcome = match self.head {
            Head::Done(outcome) => outcome,
            Head::Carry(_) => Outcome::Success,
        };
        self.call.end(outcome, self.retry_floor);
    }
}

impl<C, State: fmt::Debug> fmt::Debug for Answered<'_, C, State> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answered")
            .field("call", &self.call)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
    impl Sealed for super::AtHead {}
}
