use std::io;

use super::*;
use crate::circuit_breaker::CircuitOpen;
use crate::http::error_chain::{Boxed, Typed};
use crate::http::tests::{limited, open};
use crate::rate_limit::RateLimited;

type Result<'a> = std::result::Result<&'a Response<()>, &'a io::Error>;

fn status(status: u16) -> Response<()> {
    Response::builder().status(status).body(()).expect("valid")
}

fn head(classifier: &StatusClassifier<Typed>, response: &Response<()>) -> Head<()> {
    classifier.head(Ok::<_, &io::Error>(response))
}

#[test]
fn by_default_errors_and_5xx_fail_and_429_is_ignored() {
    let classifier = StatusClassifier::new();
    for code in 100..=999 {
        let expected = match code {
            429 => Head::Done(Outcome::Ignored),
            500..=599 => Head::Done(Outcome::Failure),
            _ => Head::Carry(()),
        };
        assert_eq!(head(&classifier, &status(code)), expected, "{code}");
    }
    let error = io::Error::other("refused");
    let result: Result<'_> = Err(&error);
    assert_eq!(classifier.head(result), Head::Done(Outcome::Failure));
}

#[test]
fn ranges_are_of_the_users_choice_and_the_later_wins() {
    let classifier = StatusClassifier::new()
        .outcome(400..=499, Outcome::Failure)
        .outcome(404..=404, Outcome::Ignored)
        .outcome(501..=501, Outcome::Success);
    for (code, expected) in [
        (403, Head::Done(Outcome::Failure)),
        (404, Head::Done(Outcome::Ignored)),
        (429, Head::Done(Outcome::Failure)),
        (501, Head::Carry(())),
        (503, Head::Done(Outcome::Failure)),
    ] {
        assert_eq!(head(&classifier, &status(code)), expected, "{code}");
    }
}

#[test]
#[allow(clippy::reversed_empty_ranges)]
fn a_range_that_holds_no_status_is_an_error() {
    for range in [0..=99, 99..=200, 500..=1_000, 599..=500] {
        let error = StatusClassifier::<Typed>::new()
            .try_outcome(range, Outcome::Failure)
            .expect_err("out of range");
        assert_eq!(error.field(), "outcome");
    }
}

#[test]
fn our_own_refusals_never_count() {
    let classifier = StatusClassifier::new().outcome(100..=999, Outcome::Failure);
    let refused: Response<()> = crate::http::respond_empty(&open(None));
    assert_eq!(
        head(&classifier, &refused),
        Head::Done(Outcome::Ignored),
        "a marked response"
    );
    let error: crate::Error<RateLimited, io::Error> = crate::Error::Refused(limited(None));
    let result = Err::<&Response<()>, _>(&error);
    assert_eq!(
        StatusClassifier::new().head(result),
        Head::Done(Outcome::Ignored),
        "a typed error"
    );
    let boxed: Box<dyn Error + Send + Sync> = open(None).into();
    let result = Err::<&Response<()>, _>(&boxed);
    assert_eq!(
        StatusClassifier::<Boxed>::new().head(result),
        Head::Done(Outcome::Ignored),
        "a boxed error"
    );
    assert!(boxed.is::<CircuitOpen>());
}

#[test]
fn errors_the_caller_caused_may_be_ignored() {
    let classifier = StatusClassifier::new()
        .ignore_errors(|error| {
            error
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::InvalidInput)
        })
        .ignore_errors(|error| error.is::<std::fmt::Error>());
    let head = |kind| {
        let error = io::Error::from(kind);
        let result: Result<'_> = Err(&error);
        classifier.head(result)
    };
    let ignored = head(io::ErrorKind::InvalidInput);
    assert_eq!(ignored, Head::Done(Outcome::Ignored));
    let failed = head(io::ErrorKind::ConnectionRefused);
    assert_eq!(failed, Head::Done(Outcome::Failure));
}

#[test]
fn retry_after_is_a_floor_only_where_asked_for() {
    let mut response = status(503);
    let seven = ::http::HeaderValue::from_static("7");
    response.headers_mut().insert("retry-after", seven);
    let floor = |classifier: StatusClassifier<Typed>| {
        classifier.retry_floor(Ok::<_, &io::Error>(&response))
    };
    assert_eq!(floor(StatusClassifier::new()), None);
    assert_eq!(
        floor(StatusClassifier::new().retry_after_floor()),
        Some(Duration::from_secs(7))
    );
}

#[test]
fn a_body_that_breaks_off_is_a_failure() {
    let classifier = StatusClassifier::<Typed>::new();
    assert_eq!(
        classifier.end((), None, None::<&io::Error>),
        Outcome::Success
    );
    let error = io::Error::other("reset");
    assert_eq!(classifier.end((), None, Some(&error)), Outcome::Failure);
}
