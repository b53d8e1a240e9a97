use ::http::{Request, Response};

use super::Responder;
use super::respond_body::{EmptyBody, RefusalBody, Text};
use crate::grpc::{self, Dialect};
use crate::reject::{Refusal, Respond};

/// Answers a refused call as [`grpc::respond`] where the request's content type is gRPC or
/// gRPC-Web, and as [`http::respond`](super::respond) otherwise; for
/// `.respond_with(http::respond_auto)` on a router that serves both.
///
/// [`AutoResponder`] takes responders of choice for either side.
// Deliberately in lower case: to the user it is one of the `respond…` names, and it cannot be a
// function like the others, since those never see the request.
#[allow(non_upper_case_globals)]
pub const respond_auto: AutoResponder = AutoResponder::new();

/// Answers a refused call in gRPC where the request was gRPC, and in HTTP otherwise.
///
/// ```
/// use tower_sluice::{grpc, http as sluice, reject::RefusalKind};
///
/// let responder = sluice::AutoResponder::new()
///     .http(sluice::Responder::new().problem_details())
///     .grpc(grpc::Responder::new().code(RefusalKind::Limited, grpc::Code::Unavailable));
/// # let _ = responder;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a responder answers nothing until it is given to `.respond_with`"]
pub struct AutoResponder<Body = Text> {
    http: Responder<Body>,
    grpc: grpc::Responder,
}

impl AutoResponder {
    /// Answers as [`respond_auto`].
    pub const fn new() -> Self {
        Self {
            http: Responder::new(),
            grpc: grpc::Responder::new(),
        }
    }
}

impl Default for AutoResponder {
    fn default() -> Self {
        Self::new()
    }
}

impl<Body> AutoResponder<Body> {
    /// Answers requests that are not gRPC with `responder`.
    pub fn http<Other>(self, responder: Responder<Other>) -> AutoResponder<Other> {
        AutoResponder {
            http: responder,
            grpc: self.grpc,
        }
    }

    /// Answers gRPC requests with `responder`.
    pub fn grpc(mut self, responder: grpc::Responder) -> Self {
        self.grpc = responder;
        self
    }
}

impl<T, R, B, Body> Respond<Request<T>, R, Response<B>> for AutoResponder<Body>
where
    R: Refusal,
    B: EmptyBody,
    Body: RefusalBody<R, B>,
{
    fn respond(&self, request: &Request<T>, refusal: &R) -> Response<B> {
        match Dialect::of(request.headers()) {
            Some(dialect) => self.grpc.answer(refusal, dialect),
            None => self.http.answer(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::tests::open;

    #[test]
    fn the_request_decides_the_language() {
        let answer = |content_type| -> Response<String> {
            let request = Request::builder()
                .header("content-type", content_type)
                .body(())
                .expect("a request");
            respond_auto.respond(&request, &open(None))
        };
        assert_eq!(answer("application/json").status(), 503);
        let grpc = answer("application/grpc-web+proto");
        assert_eq!(grpc.status(), 200);
        assert_eq!(grpc.headers()["grpc-status"], "14");
        assert_eq!(grpc.headers()["content-type"], "application/grpc-web+proto");
        assert_eq!(grpc.body(), "", "trailers-only");
    }
}
