//! `Retry-After` coming in: seconds or a date.

// The one place where a date comes in from outside, and it is a date of the wall clock.
#![allow(clippy::disallowed_types)]

use std::time::{Duration, SystemTime};

use ::http::header::{DATE, RETRY_AFTER};
use ::http::{HeaderMap, HeaderValue};

/// How long the sender asks to be left alone, by its
/// [`Retry-After`](https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3).
///
/// A date counts from the response's own `Date` where there is one, so that no difference between
/// the two wall clocks enters; otherwise from ours. A date that is past asks for nothing.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?;
    seconds(value.as_bytes()).or_else(|| until(date(value)?, headers))
}

fn until(date_of_retry: SystemTime, headers: &HeaderMap) -> Option<Duration> {
    let sent = headers.get(DATE).and_then(date);
    let now = sent.unwrap_or_else(SystemTime::now);
    date_of_retry.duration_since(now).ok()
}

fn date(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?).ok()
}

/// Digits alone; more than fit are as many as do.
fn seconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = value.iter().fold(0_u64, |seconds, digit| {
        seconds
            .saturating_mul(10)
            .saturating_add((digit - b'0').into())
    });
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asked(headers: &[(&'static str, &str)]) -> Option<Duration> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).expect("a value"));
        }
        retry_after(&map)
    }

    #[test]
    fn seconds_are_read_and_saturate() {
        assert_eq!(
            asked(&[("retry-after", "120")]),
            Some(Duration::from_secs(120))
        );
        assert_eq!(asked(&[("retry-after", "0")]), Some(Duration::ZERO));
        assert_eq!(
            asked(&[("retry-after", "99999999999999999999999")]),
            Some(Duration::from_secs(u64::MAX))
        );
    }

    #[test]
    fn a_date_counts_from_the_date_of_the_response() {
        let retry = ("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT");
        let sent = ("date", "Fri, 31 Dec 1999 23:59:29 GMT");
        let late = ("date", "Sat, 01 Jan 2000 00:00:00 GMT");
        assert_eq!(asked(&[retry, sent]), Some(Duration::from_secs(30)));
        assert_eq!(asked(&[retry, late]), None, "the date is past");
        assert_eq!(asked(&[retry]), None, "and by our own clock too");
        let far = ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT");
        assert!(
            asked(&[far]) > Some(Duration::from_secs(86_400)),
            "our own clock serves where the response has no date"
        );
    }

    #[test]
    fn anything_else_asks_for_nothing() {
        for value in [
            "",
            "-1",
            "1.5",
            "1s",
            "+1",
            " 1 x",
            "soon",
            "Fri, 99 Dec 1999",
        ] {
            assert_eq!(asked(&[("retry-after", value)]), None, "{value:?}");
        }
        assert_eq!(asked(&[]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(value in prop::collection::vec(32_u8..=255, 0..50)) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let mut map = HeaderMap::new();
                map.insert(RETRY_AFTER, value.clone());
                map.insert(DATE, value);
                let _: Option<Duration> = retry_after(&map);
            }
        }
    }
}
