use std::time::Duration;

use ::http::{Request, Response};

use super::respond::refused;
use super::{Code, Dialect};
use crate::ConfigError;
use crate::http::respond_body::EmptyBody;
use crate::reject::{Refusal, RefusalKind, Respond};

/// Answers refused gRPC calls as [`respond`](super::respond) does, with codes of choice, and in
/// the dialect of the request: plain gRPC, gRPC-Web, or gRPC-Web in base64.
///
/// ```
/// use tower_sluice::grpc::{Code, Responder};
/// use tower_sluice::reject::RefusalKind;
///
/// let responder = Responder::new().code(RefusalKind::Limited, Code::Unavailable);
/// # let _ = responder;
/// assert!(Responder::new().try_code(RefusalKind::Limited, Code::Ok).is_err());
/// ```
#[derive(Clone, Debug)]
#[must_use = "a responder answers nothing until it is given to `.respond_with`"]
pub struct Responder {
    limited: Code,
    unavailable: Code,
    default_retry_after: Option<Duration>,
    jitter: Duration,
}

impl Responder {
    /// `RESOURCE_EXHAUSTED` for a limit, `UNAVAILABLE` for an open circuit.
    pub const fn new() -> Self {
        Self {
            limited: Code::ResourceExhausted,
            unavailable: Code::Unavailable,
            default_retry_after: None,
            jitter: Duration::ZERO,
        }
    }

    /// Answers refusals of this kind with `code`.
    ///
    /// Clients retry `UNAVAILABLE` by themselves, and `RESOURCE_EXHAUSTED` only where they were
    /// told to; see [gRPC's own list](https://github.com/grpc/grpc/blob/master/doc/statuscodes.md).
    ///
    /// # Panics
    ///
    /// If `code` is [`Code::Ok`]; [`try_code`](Self::try_code) returns that as an error.
    #[track_caller]
    pub fn code(self, kind: RefusalKind, code: Code) -> Self {
        match self.try_code(kind, code) {
            Ok(responder) => responder,
            Err(error) => panic!("{error}"),
        }
    }

    /// Answers refusals of this kind with `code`.
    ///
    /// # Errors
    ///
    /// If `code` is [`Code::Ok`]: the client would wait for a message that never comes.
    pub fn try_code(mut self, kind: RefusalKind, code: Code) -> Result<Self, ConfigError> {
        if code == Code::Ok {
            return Err(ConfigError::new("code", code, "any code but Ok"));
        }
        match kind {
            RefusalKind::Limited => self.limited = code,
            RefusalKind::Unavailable => self.unavailable = code,
        }
        Ok(self)
    }

    /// Sends this wait where the refusal knows none. Default: no wait is sent then.
    pub fn default_retry_after(mut self, wait: Duration) -> Self {
        self.default_retry_after = Some(wait);
        self
    }

    /// Spreads the wait that is sent evenly from the true one to the true one plus `span`, so that
    /// clients refused together do not come back together. Default: zero.
    ///
    /// No wait is below the true one; pushback and `RetryInfo` of one answer agree.
    pub fn retry_after_jitter(mut self, span: Duration) -> Self {
        self.jitter = span;
        self
    }

    pub(crate) fn answer<R: Refusal, B: EmptyBody>(
        &self,
        refusal: &R,
        dialect: Dialect,
    ) -> Response<B> {
        let code = match refusal.kind() {
            RefusalKind::Limited => self.limited,
            RefusalKind::Unavailable => self.unavailable,
        };
        let wait = refusal.retry_after().or(self.default_retry_after);
        let wait = wait.map(|wait| wait.saturating_add(part_of(self.jitter)));
        refused(refusal, code, wait, dialect)
    }
}

/// Drawn evenly from nothing to all of `span`.
fn part_of(span: Duration) -> Duration {
    if span.is_zero() {
        return span;
    }
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(fastrand::u64(..=nanos))
}

impl Default for Responder {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, R: Refusal, B: EmptyBody> Respond<Request<T>, R, Response<B>> for Responder {
    fn respond(&self, request: &Request<T>, refusal: &R) -> Response<B> {
        let dialect = Dialect::of(request.headers()).unwrap_or(Dialect::Http2);
        self.answer(refusal, dialect)
    }
}

#[cfg(all(test, not(sluice_loom)))]
mod tests {
    use super::*;
    use crate::http::tests::{limited, open};

    fn request(content_type: &str) -> Request<()> {
        Request::builder()
            .header("content-type", content_type)
            .body(())
            .expect("a request")
    }

    #[test]
    fn the_answer_speaks_the_dialect_of_the_request() {
        for (asked, answered) in [
            ("application/grpc", "application/grpc"),
            ("application/grpc-web", "application/grpc-web+proto"),
            (
                "application/grpc-web-text",
                "application/grpc-web-text+proto",
            ),
            ("text/plain", "application/grpc"),
        ] {
            let response: Response<()> = Responder::new().respond(&request(asked), &limited(None));
            assert_eq!(response.headers()["content-type"], answered);
            assert_eq!(response.headers()["grpc-status"], "8");
        }
    }

    #[test]
    fn codes_and_the_default_wait_are_open_to_choice() {
        let responder = Responder::new()
            .code(RefusalKind::Limited, Code::Unavailable)
            .code(RefusalKind::Unavailable, Code::Aborted)
            .default_retry_after(Duration::from_secs(1));
        let request = request("application/grpc");
        let response: Response<()> = responder.respond(&request, &limited(None));
        assert_eq!(response.headers()["grpc-status"], "14");
        assert_eq!(response.headers()["grpc-retry-pushback-ms"], "1000");
        let response: Response<()> = responder.respond(&request, &open(None));
        assert_eq!(response.headers()["grpc-status"], "10");
    }

    #[test]
    fn h54_jitter_spreads_the_wait_of_a_grpc_refusal_and_never_shortens_it() {
        use tonic_types::StatusExt;

        let (wait, span) = (Duration::from_millis(500), Duration::from_millis(300));
        let responder = Responder::new().retry_after_jitter(span);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..500 {
            let refusal = limited(Some(wait));
            let response: Response<()> = responder.respond(&request("application/grpc"), &refusal);
            let pushback = response.headers()["grpc-retry-pushback-ms"].to_str();
            let pushback: u64 = pushback.expect("digits").parse().expect("a number");
            let status = tonic::Status::from_header_map(response.headers()).expect("a status");
            let info = status.get_details_retry_info().expect("retry info");
            let told = info.retry_delay.expect("a delay");
            assert!((wait..=wait + span).contains(&told), "{told:?}");
            assert_eq!(
                told.as_nanos().div_ceil(1_000_000),
                pushback.into(),
                "both agree"
            );
            seen.insert(pushback);
        }
        assert!(seen.len() > 100, "they are spread: {} values", seen.len());
    }

    #[test]
    fn jitter_without_end_saturates_and_adds_no_wait_where_none_is_known() {
        let responder = Responder::new().retry_after_jitter(Duration::MAX);
        let request = request("application/grpc");
        let long = Duration::from_secs(1 << 33);
        let response: Response<()> = responder.respond(&request, &open(Some(long)));
        let pushback = &response.headers()["grpc-retry-pushback-ms"];
        assert_eq!(
            pushback,
            &i32::MAX.to_string(),
            "as much as the field holds"
        );
        let response: Response<()> = responder.respond(&request, &limited(None));
        assert!(!response.headers().contains_key("grpc-retry-pushback-ms"));
    }

    #[test]
    fn ok_is_no_answer_to_a_refused_call() {
        let error = Responder::new()
            .try_code(RefusalKind::Limited, Code::Ok)
            .expect_err("Ok is not allowed");
        assert_eq!(
            error.to_string(),
            "`code` is Ok, but must be any code but Ok"
        );
    }
}
