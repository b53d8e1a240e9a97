use ::http::header::CONTENT_TYPE;
use ::http::{HeaderValue, Response, StatusCode};

use super::Refused;
use super::respond_body::{EmptyBody, TextBody};
use super::retry_after::whole_seconds;
use crate::reject::{Refusal, RefusalKind};

/// Answers a refused call with 429 or 503, `Retry-After` and a few words of plain text; for
/// `.respond_with(http::respond)`.
///
/// | refusal | status |
/// |---|---|
/// | [`Limited`](RefusalKind::Limited): the caller asked too often | [429 Too Many Requests](https://www.rfc-editor.org/rfc/rfc6585#section-4) |
/// | [`Unavailable`](RefusalKind::Unavailable): an open circuit, a full store of keys | [503 Service Unavailable](https://www.rfc-editor.org/rfc/rfc9110#section-15.6.4) |
///
/// [`Retry-After`](https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3) is in whole seconds,
/// rounded up and at least 1, and stands only where the refusal knows a time. The response is
/// marked as [`Refused`]. [`Responder`](super::Responder) has all the choices.
///
/// `B` is any body made from a `String`: axum's, `Full<Bytes>`, reqwest's, `String` itself. For
/// others there is [`respond_empty`].
///
/// ```
/// # use std::time::Duration;
/// use tower_sluice::circuit_breaker::CircuitOpen;
/// use tower_sluice::http;
///
/// # fn example(refusal: &CircuitOpen) {
/// let response: ::http::Response<String> = http::respond(refusal);
/// assert_eq!(response.status(), 503);
/// # }
/// ```
pub fn respond<R: Refusal, B: TextBody>(refusal: &R) -> Response<B> {
    let status = status(refusal.kind());
    let text = status.canonical_reason().unwrap_or_default();
    let mut response = refused(refusal, status, B::from_text(String::from(text)));
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response
}

/// Answers a refused call like [`respond`], but without a body; for
/// `.respond_with(http::respond_empty)` over bodies that cannot be made from text, such as
/// tonic's.
pub fn respond_empty<R: Refusal, B: EmptyBody>(refusal: &R) -> Response<B> {
    refused(refusal, status(refusal.kind()), B::empty())
}

pub(super) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

pub(super) fn status(kind: RefusalKind) -> StatusCode {
    match kind {
        RefusalKind::Limited => StatusCode::TOO_MANY_REQUESTS,
        RefusalKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn refused<R: Refusal, B>(refusal: &R, status: StatusCode, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    Refused::mark_with(&mut response, refusal.retry_after().map(whole_seconds));
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ::http::header::RETRY_AFTER;

    use super::*;
    use crate::http::tests::{limited, open};

    #[test]
    fn a_limit_is_429_and_an_open_circuit_503() {
        let refused: Response<String> = respond(&limited(Some(Duration::from_millis(200))));
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()[RETRY_AFTER], "1", "rounded up, never 0");
        assert_eq!(refused.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_eq!(refused.body(), "Too Many Requests");
        assert!(Refused::marks(&refused), "ours to tell from the service's");

        let refused: Response<String> = respond(&open(Some(Duration::from_millis(5_001))));
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.headers()[RETRY_AFTER], "6");
    }

    #[test]
    fn no_time_known_means_no_retry_after() {
        let refused: Response<()> = respond_empty(&open(None));
        assert_eq!(refused.status(), 503);
        assert!(
            refused.headers().is_empty(),
            "a guess would be taken for a promise"
        );
    }
}
