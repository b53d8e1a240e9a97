use std::time::Duration;

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderMap, HeaderName, HeaderValue, Response};

use super::message::percent_encoded;
use super::{Code, Dialect, Responder, retry_info};
use crate::http::Refused;
use crate::http::respond_body::EmptyBody;
use crate::http::retry_after::{digits, whole_millis};
use crate::reject::Refusal;

/// Answers a refused gRPC call with a status that its client understands; for
/// `.respond_with(grpc::respond)` on tonic's servers and channels.
///
/// | refusal | code |
/// |---|---|
/// | [`Limited`](crate::reject::RefusalKind::Limited) | `RESOURCE_EXHAUSTED` |
/// | [`Unavailable`](crate::reject::RefusalKind::Unavailable) | `UNAVAILABLE` |
///
/// The response is *trailers-only*: HTTP 200, no body, `grpc-status` and `grpc-message` among the
/// headers, which is right for unary calls and all streams. Where the refusal knows how long to
/// wait, that stands in
/// [`grpc-retry-pushback-ms`](https://github.com/grpc/proposal/blob/master/A6-client-retries.md)
/// (rounded up) for clients that retry by themselves, and exactly in a `google.rpc.RetryInfo`
/// within `grpc-status-details-bin` for the program. The response is marked as [`Refused`].
///
/// [`Responder`](super::Responder) changes the codes and follows the request's content type.
pub fn respond<R: Refusal, B: EmptyBody>(refusal: &R) -> Response<B> {
    Responder::new().answer(refusal, Dialect::Http2)
}

pub(super) const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
pub(super) const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

pub(super) fn refused<R: Refusal, B: EmptyBody>(
    refusal: &R,
    code: Code,
    retry_after: Option<Duration>,
    dialect: Dialect,
) -> Response<B> {
    let message = refusal.to_string();
    let mut response = Response::new(B::empty());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, dialect.content_type());
    headers.insert(STATUS, HeaderValue::from_static(code.digits()));
    headers.insert(MESSAGE, percent_encoded(&message));
    if let Some(wait) = retry_after {
        insert_wait(headers, code, &message, wait);
    }
    Refused::mark(&mut response);
    response
}

fn insert_wait(headers: &mut HeaderMap, code: Code, message: &str, wait: Duration) {
    headers.insert(PUSHBACK, digits(pushback(wait)));
    headers.insert(DETAILS, retry_info::details(code, message, wait));
}

/// The field is a signed number of 32 bits.
fn pushback(wait: Duration) -> u64 {
    whole_millis(wait).min(i32::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::tests::{limited, open};

    #[test]
    fn a_refusal_is_trailers_only() {
        let response: Response<()> = respond(&limited(Some(Duration::from_nanos(1_500_000))));
        assert_eq!(response.status(), 200, "gRPC's own status says what failed");
        let headers = response.headers();
        assert_eq!(headers[CONTENT_TYPE], "application/grpc");
        assert_eq!(headers[&STATUS], "8", "RESOURCE_EXHAUSTED");
        assert_eq!(
            headers[&MESSAGE],
            "rate limited by clients, retry after 1.5ms"
        );
        assert_eq!(headers[&PUSHBACK], "2", "rounded up");
        assert!(Refused::marks(&response));
    }

    #[test]
    fn no_time_known_means_no_pushback() {
        let response: Response<()> = respond(&open(None));
        assert_eq!(response.headers()[&STATUS], "14", "UNAVAILABLE");
        assert!(!response.headers().contains_key(&PUSHBACK));
        assert!(!response.headers().contains_key(&DETAILS));
    }

    #[test]
    fn pushback_rounds_up_and_fits_its_field() {
        assert_eq!(pushback(Duration::from_nanos(1)), 1);
        assert_eq!(pushback(Duration::from_millis(200)), 200);
        assert_eq!(pushback(Duration::MAX), i32::MAX as u64);
    }
}
