//! Where a call ends: the rules of `TrackedBody`, on bodies that do as they are told.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tower::{Layer, ServiceExt};
use tower_sluice::circuit_breaker::{
    CallEnd, CircuitBreaker, CircuitBreakerLayer, CircuitEventKind, CircuitPolicy, CircuitState,
    Classify, Head, Outcome,
};
use tower_sluice::clock::{Clock, ManualClock};
use tower_sluice::grpc::CodeClassifier;
use tower_sluice::http::{ClassifyEnd, StatusClassifier};

use crate::script::{Broken, Script, Step, headers};

/// How each call ended and how long it took, as the listener heard it.
type Heard = Arc<Mutex<Vec<(CallEnd, Duration)>>>;

fn breaker(clock: &ManualClock) -> (CircuitBreaker, Heard) {
    let heard = Heard::default();
    let ends = heard.clone();
    let policy = CircuitPolicy::builder().consecutive(1);
    let breaker = CircuitBreaker::builder("host", policy.build().expect("a valid policy"))
        .clock(clock.clone())
        .on_event(move |event| match event.kind {
            CircuitEventKind::Completed { end, elapsed, .. }
            | CircuitEventKind::Discarded { end, elapsed, .. } => ends.lock().push((end, elapsed)),
            _ => {}
        })
        .build();
    (breaker, heard)
}

/// The answer of a service whose response has this status and body, judged by `classifier`.
fn answer<C, State>(
    breaker: &CircuitBreaker,
    classifier: C,
    status: u16,
    body: Script,
) -> Response<impl Body<Data = Bytes, Error = Broken> + std::fmt::Debug>
where
    C: Classify<Response<Script>, Infallible, State = State> + ClassifyEnd<State, Broken> + Clone,
    State: std::fmt::Debug,
{
    let layer = CircuitBreakerLayer::from(breaker.clone())
        .classify(classifier)
        .until_body_end();
    let service = layer.layer(tower::service_fn(async |_: Request<()>| {
        let response = Response::builder().status(status);
        Ok::<_, Infallible>(response.body(body.clone()).expect("a response"))
    }));
    let response = service.oneshot(Request::new(())).now_or_never();
    let answered = response.expect("an answer at once");
    answered.expect("not refused")
}

fn clock() -> ManualClock {
    Clock::manual()
}

fn ends(heard: &Heard) -> Vec<CallEnd> {
    heard.lock().iter().map(|(end, _)| *end).collect()
}

/// Reads a body to its end or its error.
fn read<B: Body<Error = Broken>>(body: B) -> Result<(), Broken> {
    let mut body = std::pin::pin!(body);
    async {
        while let Some(frame) = body.frame().await {
            frame?;
        }
        Ok(())
    }
    .now_or_never()
    .expect("it never waits for others")
}

#[test]
fn frames_trailers_and_hints_pass_through_untouched() {
    let (breaker, _) = breaker(&clock());
    let steps = [
        Step::Data("one"),
        Step::Data("two"),
        Step::Trailers(&[("a", "b")]),
    ];
    let body = Script::new(steps).declaring(6);
    let answered = answer(&breaker, StatusClassifier::new(), 200, body);
    let mut body = std::pin::pin!(answered.into_body());
    assert_eq!(body.size_hint().exact(), Some(6));
    assert!(!body.is_end_stream());
    let mut next = || body.frame().now_or_never().expect("ready").transpose();
    let mut frame = || next().expect("no error");
    let data = |frame: Option<Frame<Bytes>>| frame.and_then(|frame| frame.into_data().ok());
    assert_eq!(data(frame()).as_deref(), Some(&b"one"[..]));
    assert_eq!(data(frame()).as_deref(), Some(&b"two"[..]));
    let trailers = frame().and_then(|frame| frame.into_trailers().ok());
    assert_eq!(trailers, Some(headers(&[("a", "b")])));
    assert!(frame().is_none());
}

#[test]
fn back_pressure_passes_through_and_nothing_is_read_ahead() {
    let (breaker, heard) = breaker(&clock());
    let body = Script::new([Step::Data("a"), Step::Pending, Step::Data("b")]);
    let answered = answer(&breaker, StatusClassifier::new(), 200, body);
    let mut body = std::pin::pin!(answered.into_body());
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert!(body.as_mut().poll_frame(&mut cx).is_ready());
    assert!(body.as_mut().poll_frame(&mut cx).is_pending());
    assert!(body.as_mut().poll_frame(&mut cx).is_ready());
    assert!(ends(&heard).is_empty(), "the body has not said it is done");
}

#[test]
fn a_call_ends_where_the_body_says_so_and_a_drop_after_that_changes_nothing() {
    let success = CallEnd::from(Outcome::Success);
    let data = || [Step::Data("abc")];
    let bodies = [
        ("at its end when it comes", Script::new([]).saying_end(), 0),
        ("of no length", Script::new([]).declaring(0), 0),
        (
            "at its end after a frame",
            Script::new(data()).saying_end(),
            1,
        ),
        (
            "all of the declared length",
            Script::new(data()).declaring(3),
            1,
        ),
        (
            "trailers",
            Script::new([Step::Data("a"), Step::Trailers(&[])]),
            2,
        ),
        ("no more", Script::new(data()), 2),
    ];
    for (what, body, frames) in bodies {
        let (breaker, heard) = breaker(&clock());
        let answered = answer(&breaker, StatusClassifier::new(), 200, body);
        let mut body = Box::pin(answered.into_body());
        for _ in 0..frames {
            assert!(ends(&heard).is_empty(), "{what}: not yet");
            let _frame = body.frame().now_or_never().expect("ready");
        }
        assert_eq!(ends(&heard), [success], "{what}");
        drop(body);
        assert_eq!(ends(&heard), [success], "{what}: recorded once");
    }
}

#[test]
fn dropped_before_its_end_a_call_is_cancelled() {
    let (breaker, heard) = breaker(&clock());
    let body = Script::new([Step::Data("abc"), Step::Data("d")]).declaring(4);
    let answered = answer(&breaker, StatusClassifier::new(), 200, body);
    let mut body = Box::pin(answered.into_body());
    let _frame = body.frame().now_or_never().expect("ready");
    drop(body);
    assert_eq!(ends(&heard), [CallEnd::Cancelled]);
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[test]
fn where_the_connection_turns_into_another_the_call_ends_with_its_head() {
    use http::Method;
    for (method, status, end) in [
        (Method::CONNECT, 200, CallEnd::Success),
        (Method::CONNECT, 204, CallEnd::Success),
        (Method::CONNECT, 407, CallEnd::Cancelled),
        (Method::CONNECT, 502, CallEnd::Failure),
        (Method::GET, 101, CallEnd::Success),
        (Method::GET, 200, CallEnd::Cancelled),
    ] {
        let (breaker, heard) = breaker(&clock());
        let layer = CircuitBreakerLayer::from(breaker)
            .classify(StatusClassifier::new())
            .until_body_end();
        let service = layer.layer(tower::service_fn(async |_: Request<()>| {
            let body = Script::new([Step::Data("never read by a server")]);
            let response = Response::builder().status(status).extension(7_u8);
            Ok::<_, Infallible>(response.body(body).expect("a response"))
        }));
        let request = Request::builder().method(&method).body(());
        let answer = service.oneshot(request.expect("a request")).now_or_never();
        let response = answer.expect("an answer at once").expect("not refused");
        let upgrade = response.extensions().get::<u8>();
        assert_eq!(upgrade, Some(&7), "what an upgrade needs passes through");
        drop(response);
        assert_eq!(ends(&heard), [end], "{method} {status}");
    }
}

#[test]
fn a_failure_or_an_ignored_head_counts_though_nobody_reads_the_body() {
    for (status, outcome) in [(503, Outcome::Failure), (429, Outcome::Ignored)] {
        let (breaker, heard) = breaker(&clock());
        let body = Script::new([Step::Data("try later")]);
        drop(answer(&breaker, StatusClassifier::new(), status, body));
        assert_eq!(ends(&heard), [outcome.into()], "{status}");
    }
}

#[test]
fn an_error_in_the_body_is_a_failure_and_counts_once() {
    let (breaker, heard) = breaker(&clock());
    let body = Script::new([Step::Data("a"), Step::Error]).declaring(9);
    let answered = answer(&breaker, StatusClassifier::new(), 200, body);
    assert_eq!(read(answered.into_body()), Err(Broken), "passed on");
    assert_eq!(ends(&heard), [Outcome::Failure.into()]);
    assert_eq!(breaker.state(), CircuitState::Open);
}

#[test]
fn a_panic_in_the_body_is_a_failure_and_goes_on_to_the_caller() {
    let (breaker, heard) = breaker(&clock());
    let answered = answer(
        &breaker,
        StatusClassifier::new(),
        200,
        Script::new([Step::Panic]),
    );
    let body = std::panic::AssertUnwindSafe(answered.into_body());
    let panicked = std::panic::catch_unwind(|| read({ body }.0));
    assert!(panicked.is_err(), "the caller sees it");
    assert_eq!(ends(&heard), [CallEnd::Panicked]);
    assert_eq!(breaker.state(), CircuitState::Open);
}

/// A classifier that panics when it is asked whether it waits for trailers.
#[derive(Clone, Debug)]
struct Undecided;

impl<Response, Error> Classify<Response, Error> for Undecided {
    type State = ();

    fn head(&self, _result: Result<&Response, &Error>) -> Head<()> {
        Head::Carry(())
    }
}

impl<BodyError> ClassifyEnd<(), BodyError> for Undecided {
    fn end(&self, (): (), _: Option<&HeaderMap>, _: Option<&BodyError>) -> Outcome {
        Outcome::Success
    }

    fn needs_trailers(&self, (): &()) -> bool {
        panic!("the classifier panics")
    }
}

#[test]
fn a_panic_of_the_classifier_is_a_failure_wherever_it_is_asked() {
    for (what, length, frames) in [("at the head", 0, 0), ("after a frame", 3, 1)] {
        let (breaker, heard) = breaker(&clock());
        let body = Script::new([Step::Data("abc")]).declaring(length);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut body = Box::pin(answer(&breaker, Undecided, 200, body).into_body());
            for _ in 0..frames {
                let _frame = body.frame().now_or_never();
            }
        }));
        assert!(panicked.is_err(), "{what}: the caller sees it");
        assert_eq!(ends(&heard), [CallEnd::Panicked], "{what}");
        assert_eq!(breaker.state(), CircuitState::Open, "{what}");
    }
}

/// Can be cloned so many times.
struct Copies(usize);

impl Clone for Copies {
    fn clone(&self) -> Self {
        Self(self.0.checked_sub(1).expect("a copy more"))
    }
}

#[test]
fn a_classifier_that_panics_as_it_is_cloned_makes_the_call_a_failure() {
    for (copies, what) in [(1, "for the call"), (2, "for the body")] {
        let (breaker, heard) = breaker(&clock());
        let copies = Copies(copies);
        let classifier = move |_: Result<&Response<Script>, &Infallible>| {
            let _held = &copies;
            Outcome::Success
        };
        let answered = std::panic::AssertUnwindSafe(|| {
            answer(&breaker, classifier, 200, Script::new([Step::Data("abc")]))
        });
        assert!(std::panic::catch_unwind(answered).is_err(), "{what}");
        assert_eq!(ends(&heard), [CallEnd::Panicked], "{what}");
    }
}

#[test]
fn elapsed_runs_to_the_end_of_the_body() {
    let clock = clock();
    let (breaker, heard) = breaker(&clock);
    let advance = |millis| Step::Advance(clock.clone(), Duration::from_millis(millis));
    let body = Script::new([Step::Data("a"), advance(300), Step::Data("b"), advance(200)]);
    let answered = answer(&breaker, StatusClassifier::new(), 200, body);
    read(answered.into_body()).expect("no error");
    let success = CallEnd::from(Outcome::Success);
    assert_eq!(*heard.lock(), [(success, Duration::from_millis(500))]);
}

#[test]
fn the_event_has_the_time_to_the_head_and_the_time_to_the_end() {
    let clock = clock();
    let times = Arc::new(Mutex::new(Vec::new()));
    let heard = times.clone();
    let breaker = CircuitBreaker::builder("host", CircuitPolicy::default())
        .clock(clock.clone())
        .on_event(move |event| {
            if let CircuitEventKind::Completed {
                to_head, elapsed, ..
            } = event.kind
            {
                heard.lock().push((to_head, elapsed));
            }
        })
        .build();
    let millis = Duration::from_millis;
    let layer = CircuitBreakerLayer::from(breaker).until_body_end();
    for body_takes in [Some(millis(200)), None] {
        let service = layer.layer(tower::service_fn(async |_: Request<()>| {
            clock.advance(millis(50));
            let steps = body_takes.map(|time| Step::Advance(clock.clone(), time));
            let body = Script::new(steps).saying_end();
            Ok::<_, Infallible>(Response::new(body))
        }));
        let response = service.oneshot(Request::new(())).now_or_never();
        let response = response.expect("an answer at once").expect("not refused");
        read(response.into_body()).expect("no error");
    }
    assert_eq!(
        *times.lock(),
        [
            (Some(millis(50)), millis(250)),
            (Some(millis(50)), millis(50))
        ],
        "an empty body ends with its head"
    );
}

#[test]
fn grpc_waits_for_its_trailers_even_past_the_declared_length() {
    for (status, outcome) in [("0", Outcome::Success), ("14", Outcome::Failure)] {
        let (breaker, heard) = breaker(&clock());
        let trailers: &'static [_] = match status {
            "0" => &[("grpc-status", "0")],
            _ => &[("grpc-status", "14")],
        };
        let body = Script::new([Step::Data("abc"), Step::Trailers(trailers)]).declaring(3);
        let answered = answer(&breaker, CodeClassifier::new(), 200, body);
        read(answered.into_body()).expect("no error");
        assert_eq!(ends(&heard), [outcome.into()], "{status}");
    }
}

#[test]
fn h32_empty_trailers_count_as_the_unknown_code() {
    let (breaker, heard) = breaker(&clock());
    let body = Script::new([Step::Data("abc"), Step::Trailers(&[])]);
    let answered = answer(&breaker, CodeClassifier::new(), 200, body);
    read(answered.into_body()).expect("no error");
    assert_eq!(ends(&heard), [Outcome::Failure.into()]);
}

#[test]
fn a_pushback_in_the_trailers_sets_the_least_time_to_stay_open() {
    let clock = clock();
    let (breaker, _) = breaker(&clock);
    let trailers = &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "40000")];
    let body = Script::new([Step::Trailers(trailers)]);
    let classifier = CodeClassifier::new().retry_pushback_floor();
    let answered = answer(&breaker, classifier, 200, body);
    read(answered.into_body()).expect("no error");
    let refusal = breaker.try_acquire().expect_err("open");
    assert_eq!(refusal.retry_after(), Some(Duration::from_secs(40)));
}

#[test]
fn a_closure_judges_the_head_whatever_the_body_does() {
    let (breaker, heard) = breaker(&clock());
    let closure = |_: Result<&Response<Script>, &Infallible>| Outcome::Success;
    let answered = answer(&breaker, closure, 500, Script::new([Step::Error]));
    assert_eq!(read(answered.into_body()), Err(Broken));
    assert_eq!(ends(&heard), [Outcome::Success.into()]);
}
