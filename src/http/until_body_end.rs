use ::http::{Method, Request, Response, StatusCode};
use http_body::Body;

use super::{ClassifyEnd, TrackedBody};
use crate::circuit_breaker::{Answered, CircuitBreakerLayer, EndsAt, ends_at_sealed};

/// Ends a call where the body of its response ends: `.until_body_end()` on a circuit breaker.
///
/// The call goes on in a [`TrackedBody`].
#[derive(Clone, Copy, Debug)]
pub struct UntilBodyEnd(Asked);

#[derive(Clone, Copy, Debug)]
enum Asked {
    /// For the head alone.
    Head,
    /// For a tunnel, where there would be a body.
    Connect,
    Other,
}

/// As [`UntilBodyEnd`], for requests of any type: `.until_any_body_end()` on a circuit breaker.
#[derive(Clone, Copy, Debug)]
pub struct UntilAnyBodyEnd;

impl<A, C, M, E> CircuitBreakerLayer<A, C, M, E> {
    /// Ends calls where the bodies of their responses end, not at the response heads: slow bodies
    /// are slow calls, broken bodies are failures, and a status in the trailers is seen.
    ///
    /// Where answers are streams that live long by design, callers end them by going away: with a
    /// slow threshold the default cancel rule counts those as slow, so set
    /// [`Cancel::Ignore`](crate::circuit_breaker::Cancel::Ignore) there, or end calls at their heads.
    ///
    /// The responses become [`Response`]`<`[`TrackedBody`]`<B, …>>`, which see for when a body is
    /// at its end. It takes the classifiers of this crate, and closures, whose verdict at the
    /// head stands whatever the body does.
    pub fn until_body_end(self) -> CircuitBreakerLayer<A, C, M, UntilBodyEnd> {
        self.ending_at()
    }

    /// As [`until_body_end`](Self::until_body_end), where requests are not `http::Request`: around
    /// a reqwest client, say.
    ///
    /// It cannot tell that a request was a HEAD or a CONNECT. That makes no difference around a
    /// client, whose answer to those has no body. Around a handler it does: the server never reads the body of
    /// such an answer, which then counts as a call that was cancelled.
    pub fn until_any_body_end(self) -> CircuitBreakerLayer<A, C, M, UntilAnyBodyEnd> {
        self.ending_at()
    }
}

impl ends_at_sealed::Sealed for UntilBodyEnd {}
impl ends_at_sealed::Sealed for UntilAnyBodyEnd {}

impl<T, B, C, State> EndsAt<Request<T>, Response<B>, C, State> for UntilBodyEnd
where
    B: Body,
    C: ClassifyEnd<State, B::Error> + Clone,
{
    type Response = Response<TrackedBody<B, C, State>>;

    fn of(request: &Request<T>) -> Self {
        Self(match *request.method() {
            Method::HEAD => Asked::Head,
            Method::CONNECT => Asked::Connect,
            _ => Asked::Other,
        })
    }

    fn answered(self, call: Answered<'_, C, State>, response: Response<B>) -> Self::Response {
        let status = response.status();
        let no_body = match self.0 {
            Asked::Head => true,
            Asked::Connect => status.is_success() || never_has_a_body(status),
            Asked::Other => never_has_a_body(status),
        };
        response.map(|inner| TrackedBody::tracked(inner, call, no_body))
    }

    fn unguarded(response: Response<B>) -> Self::Response {
        response.map(TrackedBody::untracked)
    }
}

impl<Request, B, C, State> EndsAt<Request, Response<B>, C, State> for UntilAnyBodyEnd
where
    B: Body,
    C: ClassifyEnd<State, B::Error> + Clone,
{
    type Response = Response<TrackedBody<B, C, State>>;

    fn of(_request: &Request) -> Self {
        Self
    }

    fn answered(self, call: Answered<'_, C, State>, response: Response<B>) -> Self::Response {
        let no_body = never_has_a_body(response.status());
        response.map(|inner| TrackedBody::tracked(inner, call, no_body))
    }

    fn unguarded(response: Response<B>) -> Self::Response {
        response.map(TrackedBody::untracked)
    }
}

/// Whether nothing follows the head, [whatever the handler put there](https://www.rfc-editor.org/rfc/rfc9110#section-6.4.1):
/// the server then drops it unread.
fn never_has_a_body(status: StatusCode) -> bool {
    status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
}
