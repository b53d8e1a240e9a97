//! Services of one breaker over inner services whose readiness is drawn too: instances that
//! refuse while open, and instances that wait.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use proptest::prelude::*;
use tokio_test::task::spawn;
use tower::{Layer, Service};
use tower_sluice::Error;
use tower_sluice::circuit_breaker::{
    CallEnd, CircuitBreakerLayer, CircuitBreakerService, CircuitOpen, NoSkip, Outcome,
    PendingWhileOpen, Single, SkipIf,
};

use crate::model::{Call, Instance, Model, Readiness};
use crate::rules::{Rules, rules};
use crate::side_by_side::{Around, Pair, around, assert_same_refusal, outcome};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Polls the instance, whose inner service answers so: ready, pending or an error.
    Ready(usize, u8),
    Call(usize),
    /// A call that passes unguarded, where the instance is ready for one.
    Skip(usize),
    /// Puts a clone in the place of an instance, which is dropped.
    Clone(usize),
    End(usize, Outcome),
    Drop(usize),
    Panic(usize),
}

#[derive(Clone, Debug)]
enum Any {
    Step(Step),
    Around(Around),
}

fn steps() -> impl Strategy<Value = Vec<Any>> {
    let (instance, call) = (0..4_usize, 0..4_usize);
    let inner = prop_oneof![6 => Just(0_u8), 1 => Just(1), 1 => Just(2)];
    let step = prop_oneof![
        40 => (instance.clone(), inner).prop_map(|(at, inner)| Step::Ready(at, inner)),
        40 => instance.clone().prop_map(Step::Call),
        8 => instance.clone().prop_map(Step::Skip),
        5 => instance.prop_map(Step::Clone),
        30 => (call.clone(), outcome()).prop_map(|(at, outcome)| Step::End(at, outcome)),
        5 => call.clone().prop_map(Step::Drop),
        3 => call.prop_map(Step::Panic),
    ];
    let any = prop_oneof![
        4 => step.prop_map(Any::Step),
        1 => around().prop_map(Any::Around),
    ];
    prop::collection::vec(any, 1..200)
}

/// An inner service whose readiness, and whose answers, the test gives.
#[derive(Clone, Default)]
struct Directed {
    ready: Arc<Mutex<u8>>,
    polled: bool,
    calls: Arc<Mutex<Vec<Answer>>>,
}

type Answer = Arc<Mutex<Option<Outcome>>>;

impl Service<bool> for Directed {
    type Response = Outcome;
    type Error = Outcome;
    type Future = Answering;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Outcome>> {
        let answer = *self.ready.lock();
        self.polled = answer == 0;
        match answer {
            0 => Poll::Ready(Ok(())),
            1 => Poll::Pending,
            _ => Poll::Ready(Err(Outcome::Failure)),
        }
    }

    fn call(&mut self, _skip: bool) -> Answering {
        assert!(
            self.polled,
            "called on an instance that was not polled ready"
        );
        self.polled = false;
        let answer = Answer::default();
        self.calls.lock().push(answer.clone());
        Answering(answer)
    }
}

/// Ends as it is told; told nothing, it panics when polled.
struct Answering(Answer);

impl Future for Answering {
    type Output = Result<Outcome, Outcome>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        match *self.0.lock() {
            Some(Outcome::Failure) => Poll::Ready(Err(Outcome::Failure)),
            Some(outcome) => Poll::Ready(Ok(outcome)),
            None => std::panic::resume_unwind(Box::new("the call")),
        }
    }
}

fn classify(result: Result<&Outcome, &Outcome>) -> Outcome {
    *result.unwrap_or_else(|error| error)
}

type Classifier = fn(Result<&Outcome, &Outcome>) -> Outcome;
type Skipping = Single<SkipIf<NoSkip, fn(&bool) -> bool>>;

/// Of requests that say whether they are to be skipped, where that may be.
enum Real {
    Refusing(CircuitBreakerService<Directed, Single, Classifier>),
    Skipping(CircuitBreakerService<Directed, Skipping, Classifier>),
    Waiting(CircuitBreakerService<Directed, PendingWhileOpen, Classifier>),
}

type Refused = Error<CircuitOpen, Outcome>;
type Made = Pin<Box<dyn Future<Output = Result<Outcome, Refused>>>>;

impl Real {
    fn poll_ready(&mut self) -> Readiness {
        let polled = spawn(()).enter(|cx, _| match self {
            Self::Refusing(service) => service.poll_ready(cx),
            Self::Skipping(service) => service.poll_ready(cx),
            Self::Waiting(service) => service.poll_ready(cx),
        });
        polled.map_err(|error| {
            assert!(
                matches!(error, Error::Inner(_)),
                "readiness refuses nothing"
            );
        })
    }

    fn call(&mut self, skip: bool) -> Made {
        match self {
            Self::Refusing(service) => Box::pin(service.call(skip)),
            Self::Skipping(service) => Box::pin(service.call(skip)),
            Self::Waiting(service) => Box::pin(service.call(skip)),
        }
    }

    fn again(&self) -> Self {
        match self {
            Self::Refusing(service) => Self::Refusing(service.clone()),
            Self::Skipping(service) => Self::Skipping(service.clone()),
            Self::Waiting(service) => Self::Waiting(service.clone()),
        }
    }
}

/// Calls in flight: the response, what ends it, the model's call.
type InFlight = (Made, Answer, Call);

struct Services {
    instances: Vec<(Real, Instance)>,
    inner: Directed,
    calls: Vec<InFlight>,
}

impl Services {
    fn new(pair: &Pair) -> Self {
        let inner = Directed::default();
        let layer = CircuitBreakerLayer::from(pair.breaker.clone());
        let layer = layer.classify(classify as Classifier);
        let waiting = layer.clone().try_pending_while_open();
        let skipping = layer.clone().skip((|skip| *skip) as fn(&bool) -> bool);
        // Where the policy can wait, half of them do; one skips.
        let instances = (0..4).map(|number| match &waiting {
            Ok(waiting) if number % 2 == 0 => {
                let real = Real::Waiting(waiting.layer(inner.clone()));
                (real, Instance::new(true, false))
            }
            _ if number == 1 => {
                let real = Real::Skipping(skipping.layer(inner.clone()));
                (real, Instance::new(false, true))
            }
            _ => {
                let real = Real::Refusing(layer.layer(inner.clone()));
                (real, Instance::new(false, false))
            }
        });
        Self {
            instances: instances.collect(),
            inner,
            calls: Vec::new(),
        }
    }

    fn step(&mut self, pair: &mut Pair, step: Step) {
        match step {
            Step::Ready(at, inner) => self.poll_ready(pair, at, inner),
            Step::Call(at) => self.call(pair, at),
            Step::Skip(at) => self.skip(at),
            Step::Clone(at) => {
                let (real, model) = &self.instances[at];
                let fresh = (real.again(), model.fresh());
                self.drop_instance(pair, at);
                self.instances.insert(at, fresh);
            }
            Step::End(at, outcome) => self.end(pair, at, outcome.into(), |made, answer| {
                *answer.lock() = Some(outcome);
                assert!(spawn(made).poll().is_ready());
            }),
            Step::Drop(at) => self.end(pair, at, CallEnd::Cancelled, |made, _| drop(made)),
            Step::Panic(at) => {
                pair.model.unwinding = true;
                self.end(pair, at, CallEnd::Panicked, |made, _| {
                    let polling = std::panic::AssertUnwindSafe(|| spawn(made).poll());
                    let panicked = std::panic::catch_unwind(polling).is_err();
                    assert!(panicked, "the panic reaches the caller");
                });
                pair.model.unwinding = false;
            }
        }
    }

    fn poll_ready(&mut self, pair: &mut Pair, at: usize, inner: u8) {
        *self.inner.ready.lock() = inner;
        let answer = match inner {
            0 => Poll::Ready(Ok(())),
            1 => Poll::Pending,
            _ => Poll::Ready(Err(())),
        };
        let (real, instance) = &mut self.instances[at];
        let polled = pair.both(|_| real.poll_ready(), |m| m.poll_ready(instance, answer));
        if let Some((real, model)) = polled {
            assert_eq!(real, model, "the readiness");
        }
    }

    fn call(&mut self, pair: &mut Pair, at: usize) {
        let (real, instance) = &mut self.instances[at];
        let Some((made, model)) = pair.both(|_| real.call(false), |model| model.call(instance))
        else {
            return;
        };
        let called = self.inner.calls.lock().pop();
        match (called, model.expect("no panic")) {
            (Some(answer), Ok(call)) => self.calls.push((made, answer, call)),
            (None, Err(refusal)) => match spawn(made).poll() {
                Poll::Ready(Err(Error::Refused(open))) => assert_same_refusal(&open, refusal),
                answer => panic!("refused, but {answer:?}"),
            },
            (called, model) => panic!("decided otherwise: {called:?}, the model {model:?}"),
        }
    }

    fn skip(&mut self, at: usize) {
        let (real, instance) = &mut self.instances[at];
        if Model::skip(instance) {
            drop(real.call(true));
            let called = self.inner.calls.lock().pop();
            assert!(called.is_some(), "a skipped call is never refused");
        }
    }

    fn end(&mut self, pair: &mut Pair, at: usize, end: CallEnd, real: impl FnOnce(Made, Answer)) {
        if self.calls.is_empty() {
            return;
        }
        let (made, answer, call) = self.calls.swap_remove(at % self.calls.len());
        pair.both(|_| real(made, answer), |model| model.end(call, end, 0));
    }

    fn drop_instance(&mut self, pair: &mut Pair, at: usize) {
        let (real, mut instance) = self.instances.remove(at);
        pair.both(|_| drop(real), |model| model.give_back(&mut instance));
    }
}

fn run(rules: Rules, heard: bool, steps: Vec<Any>) {
    let mut pair = Pair::new(rules, heard);
    let mut services = Services::new(&pair);
    for step in steps {
        match step {
            Any::Step(step) => services.step(&mut pair, step),
            Any::Around(around) => pair.step(&around),
        }
        pair.compare(services.calls.len());
    }
    while !services.instances.is_empty() {
        services.drop_instance(&mut pair, 0);
        pair.compare(services.calls.len());
    }
    while !services.calls.is_empty() {
        services.step(&mut pair, Step::Drop(0));
        pair.compare(services.calls.len());
    }
    let seen = pair.model.seen();
    assert!(seen.out.is_empty(), "every probe's place came back");
}

/// Half as many as elsewhere: each step polls futures too.
fn cases() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: default.cases.div_ceil(2),
        ..default
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_history_of_services_is_decided_counted_and_told_as_by_the_model(
        rules in rules(),
        steps in steps(),
        heard in any::<bool>(),
    ) {
        run(rules, heard, steps);
    }
}
