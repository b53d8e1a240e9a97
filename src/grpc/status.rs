//! Reading the outcome of a gRPC call off headers and trailers.

use std::time::Duration;

use ::http::{HeaderMap, StatusCode};

use super::Code;
use super::respond::{PUSHBACK, STATUS};

/// The `grpc-status` among `headers`: `None` where there is none.
///
/// One that is none of the 17 numbers reads as `Unknown`, and so do two that differ: whoever sent
/// them cannot be believed either way.
pub(super) fn code(headers: &HeaderMap) -> Option<Code> {
    let mut codes = headers
        .get_all(STATUS)
        .into_iter()
        .map(|value| Code::from_bytes(value.as_bytes()).unwrap_or(Code::Unknown));
    let first = codes.next()?;
    Some(if codes.all(|code| code == first) {
        first
    } else {
        Code::Unknown
    })
}

/// What an HTTP status means where a proxy or a server that is no gRPC server answered:
/// [HTTP to gRPC status code mapping](https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md).
pub(super) fn code_of_http(status: StatusCode) -> Code {
    match status.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

/// The server's `grpc-retry-pushback-ms`; a negative one asks not to retry, which is no time.
pub(super) fn retry_pushback(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(PUSHBACK)?.to_str().ok()?;
    value.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use ::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn statuses(values: &[&str]) -> Option<Code> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(STATUS, HeaderValue::from_str(value).expect("a value"));
        }
        code(&headers)
    }

    #[test]
    fn a_doubled_status_counts_only_where_both_agree() {
        assert_eq!(statuses(&[]), None);
        assert_eq!(statuses(&["14"]), Some(Code::Unavailable));
        assert_eq!(statuses(&["0", "0"]), Some(Code::Ok));
        assert_eq!(statuses(&["0", "14"]), Some(Code::Unknown));
        assert_eq!(statuses(&["14", "0"]), Some(Code::Unknown));
        assert_eq!(statuses(&["17"]), Some(Code::Unknown));
        assert_eq!(statuses(&[""]), Some(Code::Unknown));
        assert_eq!(
            statuses(&["0, 0"]),
            Some(Code::Unknown),
            "joined by a proxy"
        );
    }

    #[test]
    fn pushback_is_a_time_only_where_it_is_none_below_zero() {
        let pushback = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(PUSHBACK, HeaderValue::from_str(value).expect("a value"));
            retry_pushback(&headers)
        };
        assert_eq!(pushback("1500"), Some(Duration::from_millis(1500)));
        assert_eq!(pushback("0"), Some(Duration::ZERO));
        assert_eq!(pushback("-1"), None);
        assert_eq!(pushback("soon"), None);
        assert_eq!(retry_pushback(&HeaderMap::new()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(value in prop::collection::vec(32_u8..=255, 0..20)) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let mut headers = HeaderMap::new();
                headers.insert(STATUS, value.clone());
                headers.insert(PUSHBACK, value);
                prop_assert!(code(&headers).is_some());
                let _: Option<Duration> = retry_pushback(&headers);
            }
        }
    }
}
