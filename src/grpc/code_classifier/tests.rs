use std::io;

use super::*;
use crate::http::error_chain::Typed;
use crate::http::tests::limited;

fn response(status: u16, grpc_status: &[&str]) -> Response<()> {
    let mut builder = Response::builder().status(status);
    for value in grpc_status {
        builder = builder.header("grpc-status", *value);
    }
    builder.body(()).expect("a response")
}

fn head(classifier: &CodeClassifier<Typed>, response: &Response<()>) -> Head<Code> {
    classifier.head(Ok::<_, &io::Error>(response))
}

fn end(state: Code, grpc_status: Option<&str>) -> Outcome {
    let response = response(200, &Vec::from_iter(grpc_status));
    let classifier = CodeClassifier::<Typed>::new();
    classifier.end(state, Some(response.headers()), None::<&io::Error>)
}

#[test]
fn the_default_table_is_the_documented_one() {
    use Outcome::{Failure, Ignored, Success};
    let table = [
        Success, Ignored, Failure, Success, Failure, Success, Success, Success, Ignored, Success,
        Success, Success, Success, Failure, Failure, Failure, Success,
    ];
    for (code, outcome) in Code::ALL.into_iter().zip(table) {
        assert_eq!(end(Code::Unknown, Some(code.digits())), outcome, "{code}");
        if code != Code::Ok {
            let head = head(&CodeClassifier::new(), &response(200, &[code.digits()]));
            assert_eq!(head, Head::Done(outcome), "{code} in the headers");
        }
    }
}

#[test]
fn each_code_has_a_setting() {
    for code in Code::ALL {
        let classifier = CodeClassifier::<Typed>::new().outcome(code, Outcome::Failure);
        let trailers = response(200, &[code.digits()]).into_parts().0.headers;
        let outcome = classifier.end(Code::Ok, Some(&trailers), None::<&io::Error>);
        assert_eq!(outcome, Outcome::Failure, "{code}");
    }
}

#[test]
fn a_missing_doubled_or_unknown_status_follows_the_documented_rule() {
    let classifier = CodeClassifier::new();
    let nothing = head(&classifier, &response(200, &[]));
    assert_eq!(nothing, Head::Carry(Code::Unknown));
    assert_eq!(end(Code::Unknown, None), Outcome::Failure, "empty trailers");
    let outcome = CodeClassifier::<Typed>::new().end(Code::Unknown, None, None::<&io::Error>);
    assert_eq!(outcome, Outcome::Failure, "no trailers at all");

    let ok = head(&classifier, &response(200, &["0"]));
    assert_eq!(ok, Head::Carry(Code::Ok));
    assert_eq!(end(Code::Ok, None), Outcome::Success);
    assert_eq!(
        end(Code::Ok, Some("13")),
        Outcome::Failure,
        "trailers overrule OK"
    );

    for doubled in [["0", "13"], ["5", "5x"]] {
        let head = head(&classifier, &response(200, &doubled));
        assert_eq!(head, Head::Done(Outcome::Failure), "{doubled:?}");
    }
    assert_eq!(end(Code::Ok, Some("99")), Outcome::Failure);
}

#[test]
fn a_bare_http_status_is_mapped() {
    use Outcome::{Failure, Ignored, Success};
    for (status, outcome) in [
        (400, Failure),
        (401, Success),
        (403, Success),
        (404, Success),
        (429, Ignored),
        (500, Failure),
        (503, Failure),
        (302, Failure),
    ] {
        let head = head(&CodeClassifier::new(), &response(status, &[]));
        assert_eq!(head, Head::Done(outcome), "{status}");
    }
}

#[test]
fn h63_a_bare_429_counts_as_any_other_limit_does() {
    let strict = CodeClassifier::new().outcome(Code::ResourceExhausted, Outcome::Failure);
    assert_eq!(
        head(&strict, &response(429, &[])),
        Head::Done(Outcome::Failure)
    );
    let lenient = CodeClassifier::new().outcome(Code::Unavailable, Outcome::Failure);
    assert_eq!(
        head(&lenient, &response(429, &[])),
        Head::Done(Outcome::Ignored),
        "the host is well, whatever the mapping calls it"
    );
}

#[test]
fn grpc_web_has_its_status_in_the_body_which_is_not_read() {
    let classifier = CodeClassifier::new();
    for (content_type, carried) in [
        ("application/grpc-web+proto", Code::Ok),
        ("application/grpc-web-text", Code::Ok),
        ("application/grpc", Code::Unknown),
        ("text/html", Code::Unknown),
    ] {
        let mut response = response(200, &[]);
        let value = ::http::HeaderValue::from_static(content_type);
        response.headers_mut().insert("content-type", value);
        assert_eq!(
            head(&classifier, &response),
            Head::Carry(carried),
            "{content_type}"
        );
        response.headers_mut().insert(
            "grpc-status",
            ::http::HeaderValue::from_static(Code::Internal.digits()),
        );
        assert_eq!(
            head(&classifier, &response),
            Head::Done(Outcome::Failure),
            "a status in the headers is seen: {content_type}"
        );
    }
    let outcome = classifier.end(Code::Ok, None, None::<&io::Error>);
    assert_eq!(outcome, Outcome::Success);
}

#[test]
fn errors_and_broken_bodies_fail_and_our_refusals_do_not_count() {
    let classifier = CodeClassifier::new();
    let error = io::Error::other("reset");
    let result = Err::<&Response<()>, _>(&error);
    assert_eq!(classifier.head(result), Head::Done(Outcome::Failure));
    assert_eq!(
        classifier.end(Code::Ok, None, Some(&error)),
        Outcome::Failure
    );

    let refused: Response<()> = crate::grpc::respond(&limited(None));
    let classifier = classifier.outcome(Code::ResourceExhausted, Outcome::Failure);
    assert_eq!(head(&classifier, &refused), Head::Done(Outcome::Ignored));
    let refused = limited(None);
    let result = Err::<&Response<()>, _>(&refused);
    assert_eq!(classifier.head(result), Head::Done(Outcome::Ignored));
}

#[cfg(feature = "tonic")]
#[test]
fn a_tonic_status_counts_by_its_code() {
    let classifier = CodeClassifier::<Typed>::new();
    for (status, outcome) in [
        (tonic::Status::not_found("x"), Outcome::Success),
        (tonic::Status::unavailable("x"), Outcome::Failure),
        (tonic::Status::cancelled("x"), Outcome::Ignored),
    ] {
        let head = classifier.head(Err::<&Response<()>, _>(&status));
        assert_eq!(head, Head::Done(outcome));
        assert_eq!(classifier.end(Code::Ok, None, Some(&status)), outcome);
    }
}

#[test]
fn pushback_is_a_floor_only_where_asked_for() {
    let mut response = response(200, &["14"]);
    let value = ::http::HeaderValue::from_static("250");
    response
        .headers_mut()
        .insert("grpc-retry-pushback-ms", value);
    let floors = |classifier: CodeClassifier<Typed>| {
        let trailers = response.headers();
        let end = ClassifyEnd::<Code, io::Error>::end_retry_floor(&classifier, trailers);
        let head = classifier.retry_floor(Ok::<_, &io::Error>(&response));
        (head, end)
    };
    let quarter = Some(Duration::from_millis(250));
    assert_eq!(floors(CodeClassifier::new()), (None, None));
    assert_eq!(
        floors(CodeClassifier::new().retry_pushback_floor()),
        (quarter, quarter)
    );
}
