use std::time::Duration;

use ::http::header::{CONTENT_TYPE, RETRY_AFTER};
use ::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::Refused;
use super::respond_body::{BodyWith, Empty, ProblemDetails, RefusalBody, Text};
use super::retry_after::{digits, spread, whole_millis};
use crate::reject::{Refusal, RefusalKind, Respond};

/// Answers refused calls as [`respond`](super::respond) does, with every part open to choice.
///
/// Clones are independent values; there is no state.
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderValue, StatusCode};
/// use tower_sluice::{http as sluice, reject::RefusalKind};
///
/// let responder = sluice::Responder::new()
///     .problem_details()
///     .status(RefusalKind::Limited, StatusCode::SERVICE_UNAVAILABLE)
///     .header(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"))
///     .default_retry_after(Duration::from_secs(30))
///     .retry_after_jitter(Duration::from_secs(10));
/// # let _ = responder;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a responder answers nothing until it is given to `.respond_with`"]
pub struct Responder<Body = Text> {
    body: Body,
    limited: StatusCode,
    unavailable: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    default_retry_after: Option<Duration>,
    jitter: Duration,
    millis: bool,
}

impl Responder {
    /// Answers as [`respond`](super::respond): 429 or 503, `Retry-After`, a few words of text.
    pub const fn new() -> Self {
        Self {
            body: Text,
            limited: StatusCode::TOO_MANY_REQUESTS,
            unavailable: StatusCode::SERVICE_UNAVAILABLE,
            headers: Vec::new(),
            default_retry_after: None,
            jitter: Duration::ZERO,
            millis: false,
        }
    }

    /// Sends [problem details](https://www.rfc-editor.org/rfc/rfc9457) in place of text.
    ///
    /// The type is `quota-exceeded` or `temporary-reduced-capacity`, as proposed by
    /// [draft-ietf-httpapi-ratelimit-headers-11](https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-11),
    /// with the limiter's name among the violated policies. `detail` is the refusal's own text,
    /// so the names of limiters and breakers become public.
    pub fn problem_details(self) -> Responder<ProblemDetails> {
        self.with_body(ProblemDetails)
    }

    /// Sends no body, so that any `B: Default` will do.
    pub fn empty(self) -> Responder<Empty> {
        self.with_body(Empty)
    }

    /// Sends the body that `make` makes from the refusal.
    ///
    /// Called on the caller's task; a panic reaches the caller.
    pub fn body_with<F>(self, content_type: HeaderValue, make: F) -> Responder<BodyWith<F>> {
        self.with_body(BodyWith { content_type, make })
    }

    fn with_body<Body>(self, body: Body) -> Responder<Body> {
        Responder {
            body,
            limited: self.limited,
            unavailable: self.unavailable,
            headers: self.headers,
            default_retry_after: self.default_retry_after,
            jitter: self.jitter,
            millis: self.millis,
        }
    }
}

impl<Body> Responder<Body> {
    /// Answers refusals of this kind with `status`. Default: 429 for `Limited`, 503 for
    /// `Unavailable`.
    pub fn status(mut self, kind: RefusalKind, status: StatusCode) -> Self {
        match kind {
            RefusalKind::Limited => self.limited = status,
            RefusalKind::Unavailable => self.unavailable = status,
        }
        self
    }

    /// Adds a header to every refusal. `Retry-After` and `Content-Type` stay the responder's own,
    /// which sends them where it knows a wait and has a body; one given here is not added.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if name != RETRY_AFTER && name != CONTENT_TYPE {
            self.headers.push((name, value));
        }
        self
    }

    /// Sends this wait where the refusal knows none: a circuit forced open, or open until enough
    /// calls have arrived. Default: no `Retry-After` then.
    pub fn default_retry_after(mut self, wait: Duration) -> Self {
        self.default_retry_after = Some(wait);
        self
    }

    /// Spreads `Retry-After` evenly from the true wait to the true wait plus `span`, in whole
    /// seconds, so that clients refused together do not come back together. Default: zero.
    ///
    /// No value is below the true wait; none is above the wait plus `span`, except that the wait
    /// alone is rounded up to a whole second.
    pub fn retry_after_jitter(mut self, span: Duration) -> Self {
        self.jitter = span;
        self
    }

    /// Adds `retry-after-ms`, the true wait in milliseconds, rounded up and without jitter, which
    /// some clients prefer to the coarse `Retry-After`. Default: not sent.
    pub fn retry_after_ms(mut self) -> Self {
        self.millis = true;
        self
    }

    pub(super) fn answer<R: Refusal, B>(&self, refusal: &R) -> Response<B>
    where
        Body: RefusalBody<R, B>,
    {
        let kind = refusal.kind();
        let status = match kind {
            RefusalKind::Limited => self.limited,
            RefusalKind::Unavailable => self.unavailable,
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        let wait = refusal.retry_after().or(self.default_retry_after);
        if let (Some(wait), true) = (wait, self.millis) {
            headers.insert(RETRY_AFTER_MS, digits(whole_millis(wait)));
        }
        let body = self.body.make(refusal, status, &mut headers);

        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Refused::mark_with(&mut response, wait.map(|wait| spread(wait, self.jitter)));
        response
    }
}

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

impl Default for Responder {
    fn default() -> Self {
        Self::new()
    }
}

impl<Request, R, B, Body> Respond<Request, R, Response<B>> for Responder<Body>
where
    R: Refusal,
    Body: RefusalBody<R, B>,
{
    fn respond(&self, _request: &Request, refusal: &R) -> Response<B> {
        self.answer(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::tests::{limited, open};

    #[test]
    fn every_part_is_open_to_choice() {
        let responder = Responder::new()
            .body_with(HeaderValue::from_static("text/html"), |_: &_| "<p>no</p>")
            .status(RefusalKind::Unavailable, StatusCode::BAD_GATEWAY)
            .header(CONTENT_TYPE, HeaderValue::from_static("text/x-wrong"))
            .header(RETRY_AFTER, HeaderValue::from_static("wrong"))
            .header(::http::header::VARY, HeaderValue::from_static("a"))
            .header(::http::header::VARY, HeaderValue::from_static("b"))
            .default_retry_after(Duration::from_millis(29_001))
            .retry_after_ms();
        let response: Response<&str> = responder.respond(&(), &open(None));

        assert_eq!(response.status(), 502);
        assert_eq!(response.body(), &"<p>no</p>");
        let headers = response.headers();
        let all = |name: HeaderName| headers.get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(all(CONTENT_TYPE), ["text/html"], "the body says what it is");
        assert_eq!(all(RETRY_AFTER), ["30"], "the default wait, rounded up");
        assert_eq!(all(RETRY_AFTER_MS), ["29001"]);
        assert_eq!(all(::http::header::VARY), ["a", "b"], "lines add up");
        assert!(Refused::marks(&response));
    }

    #[test]
    fn a_fixed_header_is_no_wait_and_no_body_where_the_responder_has_none() {
        let responder = Responder::new()
            .header(CONTENT_TYPE, HeaderValue::from_static("text/x-wrong"))
            .header(RETRY_AFTER, HeaderValue::from_static("wrong"))
            .empty()
            .header(RETRY_AFTER, HeaderValue::from_static("wrong too"));
        let response: Response<()> = responder.respond(&(), &open(None));
        assert!(response.headers().is_empty(), "{:?}", response.headers());
        assert!(Refused::marks(&response));
    }

    #[test]
    fn a_default_wait_yields_to_a_known_one() {
        let responder = Responder::new()
            .empty()
            .default_retry_after(Duration::from_secs(30));
        let response: Response<()> =
            responder.respond(&(), &limited(Some(Duration::from_nanos(1))));
        assert_eq!(response.headers()[RETRY_AFTER], "1");
    }

    #[test]
    fn new_answers_as_the_plain_function_does() {
        let refusal = limited(Some(Duration::from_secs(7)));
        let built: Response<String> = Responder::new().respond(&(), &refusal);
        let plain: Response<String> = crate::http::respond(&refusal);
        assert_eq!(built.status(), plain.status());
        assert_eq!(built.headers(), plain.headers());
        assert_eq!(built.body(), plain.body());
    }
}
