// The epoch form of a header is of the wall clock, and nothing is decided by it.
#![allow(clippy::disallowed_types)]

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use ::http::{HeaderMap, HeaderName, HeaderValue};

use super::numbers::{Numbers, whole};
use crate::Name;
use crate::http::retry_after::digits;

/// Tells callers where they stand with their quota, in headers on admitted and refused answers;
/// for `.headers(…)` on a limit. Nothing is sent unless a form is chosen; several may be.
///
/// | form | fields |
/// |---|---|
/// | [`draft_11`](Self::draft_11) | `RateLimit-Policy: "api";q=100;w=60`, `RateLimit: "api";r=42;t=3` |
/// | [`three_fields`](Self::three_fields) | `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset` |
/// | [`x_seconds`](Self::x_seconds), [`x_epoch`](Self::x_epoch) | `X-RateLimit-Limit`, `-Remaining`, `-Reset` |
///
/// The limit is the quota's burst, and the window the time in which an empty quota refills to it,
/// so that remaining never exceeds the limit nor, unless a reservation left a debt, reset the window. With a sliding window or log
/// the times are those at which all is told to be back (see
/// [`Standing::reset_after`](crate::rate_limit::Standing::reset_after)); a part may be back before.
/// Times are whole seconds, rounded up. All values come from one decision and agree with each other and with
/// `Retry-After`.
///
/// With several quotas on one limiter the three-field forms speak of the one with least
/// remaining. Of several layers that send headers, the set of the one that refused stands, else the
/// set with least remaining, so no set is ever doubled.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is sent until it is given to a limit's `.headers`"]
pub struct RateHeaders {
    draft_11: Option<Name>,
    three_fields: bool,
    x_seconds: bool,
    x_epoch: Option<fn() -> SystemTime>,
}

impl RateHeaders {
    /// Sends nothing yet.
    pub const fn new() -> Self {
        Self {
            draft_11: None,
            three_fields: false,
            x_seconds: false,
            x_epoch: None,
        }
    }

    /// Sends `RateLimit-Policy` and `RateLimit` as of
    /// [draft-ietf-httpapi-ratelimit-headers-11](https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-11):
    /// structured fields with `q` (quota) and `w` (window), `r` (available) and `t` (the time in
    /// which no more than `r` is available).
    ///
    /// The policy is called `policy`, with a number after it where the limiter has several quotas.
    /// A later draft will be a setting of its own.
    pub fn draft_11(mut self, policy: impl Into<Name>) -> Self {
        self.draft_11 = Some(policy.into());
        self
    }

    /// Sends `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` (seconds left), as of
    /// [the drafts up to -06](https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-06).
    pub fn three_fields(mut self) -> Self {
        self.three_fields = true;
        self
    }

    /// Sends `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`, the reset in
    /// seconds left.
    ///
    /// With [`x_epoch`](Self::x_epoch) too, there is still one `X-RateLimit-Reset`: the epoch.
    pub fn x_seconds(mut self) -> Self {
        self.x_seconds = true;
        self
    }

    /// Sends the same three, the reset as seconds since 1970 by the wall clock `now`: commonly
    /// `SystemTime::now`.
    pub fn x_epoch(mut self, now: fn() -> SystemTime) -> Self {
        self.x_epoch = Some(now);
        self
    }

    /// Writes the chosen forms over what stands in `headers`.
    pub(super) fn write(&self, quotas: &[Numbers], headers: &mut HeaderMap) {
        for name in [POLICY, LIMITS].into_iter().chain(THREE).chain(X) {
            headers.remove(name);
        }
        if let Some(name) = &self.draft_11 {
            headers.insert(POLICY, policies(name, quotas));
            headers.insert(LIMITS, limits(name, quotas));
        }
        let Some(tightest) = quotas.iter().min_by_key(|numbers| numbers.remaining) else {
            return;
        };
        if self.three_fields {
            insert_three(headers, THREE, tightest, whole(tightest.reset));
        }
        if let Some(now) = self.x_epoch {
            insert_three(headers, X, tightest, epoch(now(), tightest.reset));
        } else if self.x_seconds {
            insert_three(headers, X, tightest, whole(tightest.reset));
        }
    }
}

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMITS: HeaderName = HeaderName::from_static("ratelimit");

/// Limit, remaining, reset.
type Three = [HeaderName; 3];

const THREE: Three = [
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
];

const X: Three = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];

fn insert_three(headers: &mut HeaderMap, names: Three, numbers: &Numbers, reset: u64) {
    let values = [numbers.limit.into(), numbers.remaining.into(), reset];
    for (name, value) in names.into_iter().zip(values) {
        headers.insert(name, digits(value));
    }
}

/// The second at or after `reset` from `now`.
fn epoch(now: SystemTime, reset: Duration) -> u64 {
    let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH);
    whole(since_1970.unwrap_or_default().saturating_add(reset))
}

fn policies(name: &str, quotas: &[Numbers]) -> HeaderValue {
    // A window is named by whole seconds, of which 0 would be none.
    list(name, quotas, |out, numbers| {
        let window = whole(numbers.window).max(1);
        write!(out, ";q={};w={window}", numbers.limit)
    })
}

fn limits(name: &str, quotas: &[Numbers]) -> HeaderValue {
    list(name, quotas, |out, numbers| {
        write!(out, ";r={};t={}", numbers.remaining, whole(numbers.more))
    })
}

/// A list of [structured fields](https://www.rfc-editor.org/rfc/rfc9651#section-3.1), one item a
/// quota.
fn list(
    name: &str,
    quotas: &[Numbers],
    parameters: impl Fn(&mut String, &Numbers) -> std::fmt::Result,
) -> HeaderValue {
    let mut out = String::with_capacity(48);
    for (index, numbers) in quotas.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        out.push('"');
        push_escaped(&mut out, name);
        if quotas.len() > 1 {
            write!(out, "-{}", index + 1).expect("a `String` takes all text");
        }
        out.push('"');
        parameters(&mut out, numbers).expect("a `String` takes all text");
    }
    HeaderValue::try_from(out).expect("printable ASCII only")
}

/// A structured string holds printable ASCII alone; anything else in a name becomes `?`.
fn push_escaped(out: &mut String, name: &str) {
    for char in name.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            ' '..='~' => out.push(char),
            _ => out.push('?'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: Numbers = Numbers {
        limit: 100,
        window: Duration::from_secs(60),
        remaining: 42,
        more: Duration::from_millis(600),
        reset: Duration::from_millis(34_800),
    };

    fn written(headers: RateHeaders, quotas: &[Numbers]) -> Vec<String> {
        let mut map = HeaderMap::new();
        headers.write(quotas, &mut map);
        map.iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("ASCII")))
            .collect()
    }

    #[test]
    fn nothing_is_sent_unless_chosen() {
        assert!(written(RateHeaders::new(), &[NUMBERS]).is_empty());
    }

    #[test]
    fn draft_11_has_a_policy_and_where_it_stands() {
        assert_eq!(
            written(RateHeaders::new().draft_11("api"), &[NUMBERS]),
            [
                r#"ratelimit-policy: "api";q=100;w=60"#,
                r#"ratelimit: "api";r=42;t=1"#
            ]
        );
        let day = Numbers {
            limit: 5_000,
            window: Duration::from_secs(86_400),
            remaining: 7,
            more: Duration::from_secs(17),
            reset: Duration::from_secs(80_000),
        };
        assert_eq!(
            written(RateHeaders::new().draft_11("default"), &[NUMBERS, day]),
            [
                r#"ratelimit-policy: "default-1";q=100;w=60, "default-2";q=5000;w=86400"#,
                r#"ratelimit: "default-1";r=42;t=1, "default-2";r=7;t=17"#
            ]
        );
        assert_eq!(
            written(RateHeaders::new().three_fields(), &[NUMBERS, day])[1],
            "ratelimit-remaining: 7",
            "the tightest quota speaks where only one can"
        );
    }

    #[test]
    fn names_become_structured_strings() {
        let mut out = String::new();
        push_escaped(&mut out, "a\"b\\c\nü");
        assert_eq!(out, r#"a\"b\\c??"#);
    }

    #[test]
    fn the_older_forms_say_the_same() {
        assert_eq!(
            written(RateHeaders::new().three_fields().x_seconds(), &[NUMBERS]),
            [
                "ratelimit-limit: 100",
                "ratelimit-remaining: 42",
                "ratelimit-reset: 35",
                "x-ratelimit-limit: 100",
                "x-ratelimit-remaining: 42",
                "x-ratelimit-reset: 35"
            ]
        );
    }

    #[test]
    fn the_epoch_form_is_at_or_after_the_true_reset() {
        let now = || SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_900);
        let headers = RateHeaders::new().x_seconds().x_epoch(now);
        // 900 ms and 34.8 s make 35.7 s.
        assert_eq!(
            written(headers, &[NUMBERS])[2],
            "x-ratelimit-reset: 1700000036"
        );
    }
}
