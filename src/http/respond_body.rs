//! What stands in the body of a refusal: a choice of [`Responder`](super::Responder).

use std::fmt::{self, Write};

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderMap, HeaderValue, StatusCode};

use super::respond::TEXT;
use crate::reject::{Refusal, RefusalKind};

/// Makes the body of a refusal. Sealed.
#[diagnostic::on_unimplemented(
    message = "the responder's body `{Self}` cannot be a `{B}`",
    note = "text and problem details need `{B}: From<String>`; `Responder::empty` needs `{B}: Default`"
)]
pub trait RefusalBody<R, B>: sealed::Sealed {
    #[doc(hidden)]
    fn make(&self, refusal: &R, status: StatusCode, headers: &mut HeaderMap) -> B;
}

/// A body that can be made from text: every `B: From<String>`, among them axum's, `Full<Bytes>`,
/// reqwest's and `String` itself.
#[diagnostic::on_unimplemented(
    message = "the response body `{Self}` cannot be made from text: it is not `From<String>`",
    label = "this responder writes text",
    note = "`http::respond_empty`, `http::Responder::empty` and `grpc::respond` take any body that is `Default`, such as tonic's"
)]
pub trait TextBody {
    #[doc(hidden)]
    fn from_text(text: String) -> Self;
}

// Not recommended, so that what is missing is told in the trait's own words.
#[diagnostic::do_not_recommend]
impl<B: From<String>> TextBody for B {
    fn from_text(text: String) -> Self {
        Self::from(text)
    }
}

/// A body that can be empty: every `B: Default`.
#[diagnostic::on_unimplemented(
    message = "the response body `{Self}` cannot be left empty: it is not `Default`",
    label = "this responder writes no body",
    note = "`http::respond` takes any body that is `From<String>`; a closure `|refusal: &_| …` takes any body at all"
)]
pub trait EmptyBody {
    #[doc(hidden)]
    fn empty() -> Self;
}

#[diagnostic::do_not_recommend] // as above
impl<B: Default> EmptyBody for B {
    fn empty() -> Self {
        Self::default()
    }
}

/// The words of the status as plain text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text;

/// No body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Empty;

/// Problem details as of [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457).
#[derive(Clone, Copy, Debug, Default)]
pub struct ProblemDetails;

/// A body made by the user's own function.
#[derive(Clone)]
pub struct BodyWith<F> {
    pub(super) content_type: HeaderValue,
    pub(super) make: F,
}

impl<R: Refusal, B: TextBody> RefusalBody<R, B> for Text {
    fn make(&self, _refusal: &R, status: StatusCode, headers: &mut HeaderMap) -> B {
        headers.insert(CONTENT_TYPE, TEXT);
        B::from_text(String::from(status.canonical_reason().unwrap_or_default()))
    }
}

impl<R: Refusal, B: EmptyBody> RefusalBody<R, B> for Empty {
    fn make(&self, _refusal: &R, _status: StatusCode, _headers: &mut HeaderMap) -> B {
        B::empty()
    }
}

impl<R: Refusal, B: TextBody> RefusalBody<R, B> for ProblemDetails {
    fn make(&self, refusal: &R, status: StatusCode, headers: &mut HeaderMap) -> B {
        headers.insert(CONTENT_TYPE, PROBLEM);
        B::from_text(problem(refusal, status))
    }
}

impl<R, B, F: Fn(&R) -> B> RefusalBody<R, B> for BodyWith<F> {
    fn make(&self, refusal: &R, _status: StatusCode, headers: &mut HeaderMap) -> B {
        headers.insert(CONTENT_TYPE, self.content_type.clone());
        (self.make)(refusal)
    }
}

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

fn problem(refusal: &impl Refusal, status: StatusCode) -> String {
    let (fragment, title) = match refusal.kind() {
        RefusalKind::Limited => ("quota-exceeded", "Quota exceeded"),
        RefusalKind::Unavailable => (
            "temporary-reduced-capacity",
            "Capacity is reduced for a time",
        ),
    };
    let mut json = format!(
        r#"{{"type":"https://iana.org/assignments/http-problem-types#{fragment}","title":"{title}","status":{},"detail":"#,
        status.as_u16()
    );
    push_string(&mut json, &refusal.to_string());
    if let (RefusalKind::Limited, Some(name)) = (refusal.kind(), refusal.name()) {
        json.push_str(r#","violated-policies":["#);
        push_string(&mut json, name);
        json.push(']');
    }
    json.push('}');
    json
}

/// Appends `text` as a JSON string.
fn push_string(json: &mut String, text: &str) {
    json.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => json.extend(['\\', char]),
            '\0'..' ' => {
                write!(json, "\\u{:04x}", u32::from(char)).expect("a `String` takes all text");
            }
            _ => json.push(char),
        }
    }
    json.push('"');
}

impl<F> fmt::Debug for BodyWith<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyWith")
            .field("content_type", &self.content_type)
            .field("make", &std::any::type_name::<F>())
            .finish()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Text {}
    impl Sealed for super::Empty {}
    impl Sealed for super::ProblemDetails {}
    impl<F> Sealed for super::BodyWith<F> {}
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::http::tests::{limited, open};

    #[test]
    fn problem_details_name_type_title_status_and_policy() {
        assert_eq!(
            problem(
                &limited(Some(Duration::from_secs(2))),
                StatusCode::TOO_MANY_REQUESTS
            ),
            concat!(
                r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","#,
                r#""title":"Quota exceeded","status":429,"#,
                r#""detail":"rate limited by clients, retry after 2s","#,
                r#""violated-policies":["clients"]}"#
            )
        );
        assert_eq!(
            problem(&open(None), StatusCode::SERVICE_UNAVAILABLE),
            concat!(
                r#"{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","#,
                r#""title":"Capacity is reduced for a time","status":503,"#,
                r#""detail":"circuit billing is open"}"#
            )
        );
    }

    #[test]
    fn json_strings_are_escaped() {
        let mut json = String::new();
        push_string(&mut json, "a\"b\\c\n\0ü");
        assert_eq!(json, r#""a\"b\\c\u000a\u0000ü""#);
    }
}
