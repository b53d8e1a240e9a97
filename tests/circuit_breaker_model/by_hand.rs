use std::time::Duration;

use proptest::option;
use proptest::prelude::*;
use tower_sluice::circuit_breaker::{CallEnd, CircuitBreaker, Outcome, OwnedPermit, Recorded};

use crate::model::Call;
use crate::rules::{MS, Rules, rules};
use crate::side_by_side::{Around, Pair, around, assert_same_refusal, outcome};

#[derive(Clone, Debug)]
enum Step {
    Arrive,
    /// Of which call, with what, and the open time that its upstream asks for.
    End(usize, Outcome, Option<u64>),
    Drop(usize),
    Panic(usize),
    Around(Around),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let end = (0..4_usize, outcome(), option::weighted(0.3, 0..150 * MS));
    let step = prop_oneof![
        40 => Just(Step::Arrive),
        30 => end.prop_map(|(at, outcome, floor)| Step::End(at, outcome, floor)),
        5 => (0..4_usize).prop_map(Step::Drop),
        3 => (0..4_usize).prop_map(Step::Panic),
        34 => around().prop_map(Step::Around),
    ];
    prop::collection::vec(step, 1..160)
}

/// Permits taken by hand, each beside the model's call.
struct Calls(Vec<(OwnedPermit, Call)>);

impl Calls {
    fn step(&mut self, pair: &mut Pair, step: &Step) {
        match step {
            Step::Arrive => self.arrive(pair),
            Step::End(at, outcome, floor) => {
                let time = floor.map(Duration::from_nanos);
                let record = |permit: OwnedPermit| Some(permit.record_with(*outcome, time));
                self.end(pair, *at, (*outcome).into(), floor.unwrap_or(0), record);
            }
            Step::Drop(at) => self.end(pair, *at, CallEnd::Cancelled, 0, |permit| {
                drop(permit);
                None
            }),
            Step::Panic(at) => {
                pair.model.unwinding = true;
                self.end(pair, *at, CallEnd::Panicked, 0, |permit| {
                    let unwinding = std::panic::AssertUnwindSafe(|| {
                        let _held = permit;
                        std::panic::resume_unwind(Box::new("the call"));
                    });
                    let _unwound = std::panic::catch_unwind(unwinding);
                    None
                });
                pair.model.unwinding = false;
            }
            Step::Around(around) => pair.step(around),
        }
    }

    fn arrive(&mut self, pair: &mut Pair) {
        match pair.both(CircuitBreaker::acquire_owned, |model| model.arrive(true)) {
            Some((Ok(permit), Some(Ok(call)))) => self.0.push((permit, call)),
            Some((Err(open), Some(Err(refusal)))) => assert_same_refusal(&open, refusal),
            None => {}
            Some((real, model)) => panic!("decided otherwise: {real:?}, the model {model:?}"),
        }
    }

    fn end(
        &mut self,
        pair: &mut Pair,
        at: usize,
        end: CallEnd,
        floor: u64,
        real: impl FnOnce(OwnedPermit) -> Option<Recorded>,
    ) {
        if self.0.is_empty() {
            return;
        }
        let (permit, call) = self.0.swap_remove(at % self.0.len());
        let ended = pair.both(|_| real(permit), |model| model.end(call, end, floor));
        if let Some((Some(recorded), expected)) = ended {
            assert_eq!(recorded, expected, "what became of it");
        }
    }
}

fn run(rules: Rules, heard: bool, steps: &[Step]) {
    let mut pair = Pair::new(rules, heard);
    let mut calls = Calls(Vec::new());
    for step in steps {
        calls.step(&mut pair, step);
        pair.compare(calls.0.len());
    }
    while !calls.0.is_empty() {
        calls.step(&mut pair, &Step::Drop(0));
        pair.compare(calls.0.len());
    }
}

proptest! {
    #[test]
    fn any_history_is_decided_counted_and_told_as_by_the_model(
        rules in rules(),
        steps in steps(),
        heard in any::<bool>(),
    ) {
        run(rules, heard, &steps);
    }
}
