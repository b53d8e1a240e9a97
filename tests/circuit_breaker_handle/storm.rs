//! Everything at once on several threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitEventKind, CircuitPolicy, CircuitState, Outcome, OwnedPermit,
};
use tower_sluice::clock::{Clock, ManualClock, Nanos};

use crate::kit::{SECOND, trips_at};

const THREADS: u64 = 4;

fn policies() -> Vec<CircuitPolicy> {
    let rates = || CircuitPolicy::builder().failure_rate(0.4).min_calls(3);
    let all = [
        trips_at(2).probes(2).probe_timeout(SECOND),
        rates().window(SECOND).ramp_up(SECOND).probes(1),
        rates().window_calls(5).recover_every(3).open_for(SECOND),
        trips_at(3).slow_threshold(SECOND).count_overdue(),
        CircuitPolicy::builder()
            .consecutive(1)
            .open_time(|trips, _| match trips % 3 {
                0 => resume_unwind(Box::new("the user's function")),
                trips => SECOND * trips,
            }),
    ];
    all.map(|policy| policy.build().expect("sound")).into()
}

/// What one thread does; it holds calls over several steps.
struct Thread<'a> {
    breaker: &'a CircuitBreaker,
    time: &'a ManualClock,
    policies: &'a [CircuitPolicy],
    held: Vec<OwnedPermit>,
    admitted: u64,
    random: fastrand::Rng,
}

impl Thread<'_> {
    fn run(mut self, steps: u32) -> u64 {
        for _ in 0..steps {
            let _users = catch_unwind(AssertUnwindSafe(|| self.step()));
        }
        while let Some(permit) = self.held.pop() {
            let _users = catch_unwind(AssertUnwindSafe(|| drop(permit)));
        }
        self.admitted
    }

    fn step(&mut self) {
        let breaker = self.breaker;
        match self.random.u32(0..100) {
            0..45 => {
                let permit = breaker.acquire_owned();
                self.admitted += u64::from(permit.is_ok());
                self.held.extend(permit);
            }
            45..80 if !self.held.is_empty() => {
                let at = self.random.usize(0..self.held.len());
                let permit = self.held.swap_remove(at);
                let outcome = match self.random.u32(0..10) {
                    0..4 => Some(Outcome::Success),
                    4..7 => Some(Outcome::Failure),
                    7 => Some(Outcome::Ignored),
                    8 => None,
                    _ => {
                        let _held = permit;
                        resume_unwind(Box::new("the call"))
                    }
                };
                match outcome {
                    Some(outcome) => _ = permit.record(outcome),
                    None => drop(permit),
                }
            }
            80..88 => self
                .time
                .advance(Duration::from_millis(self.random.u64(0..700))),
            88..90 => {
                let back = self.random.u64(0..2_000_000_000);
                let now = self.time.now().as_u64().saturating_sub(back);
                self.time.set(Nanos::new(now));
            }
            90 => breaker.force_open(),
            91 => breaker.force_close(),
            92 => breaker.disable(),
            93..95 => breaker.release(),
            95 => breaker.reset(),
            96 => {
                let _pending = tokio_test::task::spawn(breaker.drive()).poll();
            }
            _ => {
                let policy = self.random.choice(self.policies).expect("some");
                breaker.set_policy(policy.clone());
            }
        }
    }
}

/// Calls, cancellations, panics, clock jumps, commands and changes of policy on four threads.
#[test]
fn in_a_storm_no_permit_is_lost_no_total_is_off_and_events_form_a_chain() {
    for seed in 0..8 {
        let (time, policies) = (Clock::manual(), policies());
        // A listener's panic would be caught, so it keeps what breaks the chain.
        let chain = Arc::new(Mutex::new((CircuitState::Closed, Vec::new())));
        let told = chain.clone();
        let breaker = CircuitBreaker::builder("stormy", policies[0].clone())
            .clock(&time)
            .on_event(move |event| {
                if let CircuitEventKind::Transition { transition, .. } = &event.kind {
                    let (last, broken) = &mut *told.lock();
                    let before = std::mem::replace(last, transition.to);
                    broken.extend((before != transition.from).then_some(*transition));
                }
            })
            .build();
        let admitted: u64 = thread::scope(|scope| {
            let run = |number: u64| {
                let thread = Thread {
                    breaker: &breaker,
                    time: &time,
                    policies: &policies,
                    held: Vec::new(),
                    admitted: 0,
                    random: fastrand::Rng::with_seed(seed * THREADS + number),
                };
                scope.spawn(move || thread.run(2_000))
            };
            let threads: Vec<_> = (0..THREADS).map(run).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        let seen = breaker.snapshot();
        let totals = seen.totals.expect("kept");
        assert_eq!(totals.admitted, admitted, "all that passed, and no other");
        assert_eq!(totals.in_flight, 0, "every permit came back");
        assert_eq!(seen.probes_in_flight, 0, "every probe's place came back");
        let (last, broken) = std::mem::replace(&mut *chain.lock(), (seen.state, Vec::new()));
        assert!(broken.is_empty(), "each begins where one ended: {broken:?}");
        assert_eq!(last, seen.state, "the last transition told is the state");
        assert_works_as_new(&breaker, &time);
    }
}

fn assert_works_as_new(breaker: &CircuitBreaker, time: &ManualClock) {
    breaker.set_policy(trips_at(2).probes(2).build().expect("sound"));
    breaker.force_open();
    breaker.release();
    let call = || breaker.try_acquire().expect("admitted");
    call().failure();
    call().failure();
    assert_eq!(
        breaker.snapshot().retry_after,
        Some(SECOND),
        "no growth is left"
    );
    time.advance(SECOND);
    let probes = (call(), call());
    breaker.try_acquire().map(drop).expect_err("two probes");
    probes.0.success();
    probes.1.success();
    assert_eq!(breaker.state(), CircuitState::Closed);
}
