use std::time::Duration;

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderMap, HeaderName, HeaderValue, Response};

use super::message::percent_encoded;
use super::{Code, retry_info};
use crate::http::Refused;
use crate::http::retry_after::digits;
use crate::reject::{Refusal, RefusalKind};

/// Answers a refused gRPC call with a status that its client understands; for
/// `.respond_with(grpc::respond)` on tonic's servers and channels.
///
/// | refusal | code |
/// |---|---|
/// | [`Limited`](RefusalKind::Limited) | `RESOURCE_EXHAUSTED` |
/// | [`Unavailable`](RefusalKind::Unavailable) | `UNAVAILABLE` |
///
/// The response is *trailers-only*: HTTP 200, no body, `grpc-status` and `grpc-message` among the
/// headers, which is right for unary calls and all streams. Where the refusal knows how long to
/// wait, that stands in
/// [`grpc-retry-pushback-ms`](https://github.com/grpc/proposal/blob/master/A6-client-retries.md)
/// (rounded up) for clients that retry by themselves, and exactly in a `google.rpc.RetryInfo`
/// within `grpc-status-details-bin` for the program. The response is marked as [`Refused`].
///
/// [`Responder`](super::Responder) changes the codes and follows the request's content type.
pub fn respond<R: Refusal, B: Default>(refusal: &R) -> Response<B> {
    let (limited, unavailable) = DEFAULT_CODES;
    let code = match refusal.kind() {
        RefusalKind::Limited => limited,
        RefusalKind::Unavailable => unavailable,
    };
    refused(refusal, code, refusal.retry_after(), GRPC, B::default())
}

/// For a limit and for an open circuit.
pub(super) const DEFAULT_CODES: (Code, Code) = (Code::ResourceExhausted, Code::Unavailable);

pub(super) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

pub(super) const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
pub(super) const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

pub(super) fn refused<R: Refusal, B>(
    refusal: &R,
    code: Code,
    retry_after: Option<Duration>,
    content_type: HeaderValue,
    body: B,
) -> Response<B> {
    let message = refusal.to_string();
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(STATUS, HeaderValue::from_static(code.digits()));
    headers.insert(MESSAGE, percent_encoded(&message));
    if let Some(wait) = retry_after {
        insert_wait(headers, code, &message, wait);
    }
    Refused::mark(&mut response);
    response
}

fn insert_wait(headers: &mut HeaderMap, code: Code, message: &str, wait: Duration) {
    headers.insert(PUSHBACK, digits(whole_millis(wait)));
    headers.insert(DETAILS, retry_info::details(code, message, wait));
}

/// Rounded up, as a wait must be; the field is a signed number of 32 bits.
fn whole_millis(wait: Duration) -> u64 {
    let millis = wait.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis)
        .unwrap_or(u64::MAX)
        .min(i32::MAX as u64)
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
        assert_eq!(whole_millis(Duration::from_nanos(1)), 1);
        assert_eq!(whole_millis(Duration::from_millis(200)), 200);
        assert_eq!(whole_millis(Duration::MAX), i32::MAX as u64);
    }
}
