//! Every interleaving of two threads at the places where an order of them could lose a slot, a
//! count or a command.

use std::time::Duration;

use loom::thread;

use super::error::CircuitOpenReason;
use super::gate::Gate;
use super::plan::Plan;
use super::policy::Counts;
use super::standing::{Standing, Way};
use super::window::{Landed, Mark, Tally, Windows};
use super::{CircuitBreaker, CircuitPolicy, CircuitPolicyBuilder, CircuitState, Command, Recorded};
use crate::clock::{Clock, ManualClock, Nanos};

const SECOND: Duration = Duration::from_secs(1);

fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(test);
}

fn trips_at(failures: u32) -> CircuitPolicyBuilder {
    CircuitPolicy::builder()
        .consecutive(failures)
        .open_for(SECOND)
        .open_jitter(0.0)
}

fn breaker(policy: CircuitPolicyBuilder) -> (CircuitBreaker, ManualClock) {
    let time = Clock::manual();
    let policy = policy.build().expect("sound");
    let breaker = CircuitBreaker::builder("modelled", policy).clock(&time);
    (breaker.build(), time)
}

fn open_and_due(policy: CircuitPolicyBuilder) -> (CircuitBreaker, ManualClock) {
    let (breaker, time) = breaker(policy);
    breaker.try_acquire().expect("closed").failure();
    time.advance(SECOND);
    (breaker, time)
}

#[test]
fn loom_of_two_that_meet_a_due_probe_one_is_admitted() {
    model(|| {
        let (breaker, _) = open_and_due(trips_at(1).probes(1));
        let other = breaker.clone();
        let theirs = thread::spawn(move || other.acquire_owned());
        let ours = breaker.acquire_owned();
        let theirs = theirs.join().unwrap();
        let admitted = usize::from(ours.is_ok()) + usize::from(theirs.is_ok());
        assert_eq!(admitted, 1, "one slot, one probe");
        assert_eq!(breaker.snapshot().probes_in_flight, 1);
        drop((ours, theirs));
        assert_eq!(breaker.snapshot().probes_in_flight, 0, "it came back");
    });
}

#[test]
fn loom_a_success_of_before_a_trip_never_lands_after_it() {
    model(|| {
        let rates = CircuitPolicy::builder().failure_rate(0.5).min_calls(1);
        let (breaker, _) = breaker(rates);
        let fails = breaker.acquire_owned().expect("closed");
        let late = breaker.acquire_owned().expect("closed");
        let other = breaker.clone();
        let tripper = thread::spawn(move || {
            assert_eq!(fails.failure(), Recorded::Counted);
            assert_eq!(other.state(), CircuitState::Open, "1 of 1, or 1 of 2");
            other.reset();
        });
        late.success();
        tripper.join().unwrap();
        assert_eq!(breaker.snapshot().calls, 0, "the new window is empty");
    });
}

#[test]
fn loom_a_success_ends_a_row_or_comes_before_it() {
    model(|| {
        let (breaker, _) = breaker(trips_at(2));
        breaker.try_acquire().expect("closed").failure();
        let good = breaker.acquire_owned().expect("closed");
        let bad = breaker.acquire_owned().expect("closed");
        let failing = thread::spawn(move || bad.failure());
        good.success();
        failing.join().unwrap();
        let seen = breaker.snapshot();
        match seen.state {
            CircuitState::Closed => assert!(seen.consecutive <= 1, "the row was ended"),
            _ => assert_eq!(seen.trips, 1, "two in a row, then the success"),
        }
    });
}

#[test]
fn loom_a_slot_that_comes_back_as_another_probe_reopens_is_not_counted_twice() {
    model(|| {
        let (breaker, time) = open_and_due(trips_at(1).probes(2));
        let dropped = breaker.acquire_owned().expect("a probe");
        let failing = breaker.acquire_owned().expect("another");
        let back = thread::spawn(move || drop(dropped));
        failing.failure();
        back.join().unwrap();
        assert_eq!(breaker.state(), CircuitState::Open);
        time.advance(2 * SECOND);
        let probes = [(); 3].map(|()| breaker.try_acquire().ok());
        let admitted = probes.iter().flatten().count();
        assert_eq!(admitted, 2, "as many slots as ever");
    });
}

#[test]
fn loom_forced_open_wins_over_a_trip_whichever_is_first() {
    model(|| {
        let (breaker, _) = breaker(trips_at(1));
        let failing = breaker.acquire_owned().expect("closed");
        let other = breaker.clone();
        let forcing = thread::spawn(move || other.force_open());
        failing.failure();
        forcing.join().unwrap();
        let refused = breaker.try_acquire().map(drop).expect_err("forced");
        assert_eq!(refused.reason(), CircuitOpenReason::Forced);
        assert_eq!(breaker.snapshot().command, Some(Command::ForceOpen));
        breaker.release();
        assert_eq!(breaker.state(), CircuitState::Closed);
    });
}

#[test]
fn loom_a_refusal_without_the_lock_never_takes_the_time_of_an_earlier_open_state() {
    model(|| {
        let gate = loom::sync::Arc::new(Gate::new());
        let (first, second) = (Nanos::new(1), Nanos::new(2));
        let set = |gate: &Gate, epoch, way| {
            gate.set(Standing::new(epoch, way, Plan::from_bits(0), false));
        };
        gate.set_until(first);
        set(&gate, 1, Way::RefuseInTime);
        let writing = gate.clone();
        let writer = thread::spawn(move || {
            set(&writing, 2, Way::Pass);
            writing.set_until(second);
            set(&writing, 3, Way::RefuseInTime);
        });
        let standing = gate.standing();
        match (standing.epoch(), gate.refusing_until(standing)) {
            // The later one is set already, or about to be: the time truly left is up to that.
            (1, Some(until)) => assert!([first, second].contains(&until)),
            (3, Some(until)) => assert_eq!(until, second, "the earlier time is over"),
            (epoch, until) => assert_eq!((epoch, until), (2, None)),
        }
        writer.join().unwrap();
    });
}

fn windows() -> loom::sync::Arc<Windows> {
    let windows = Windows::new();
    let policy = CircuitPolicy::builder()
        .failure_rate(1.0)
        .window(10 * SECOND);
    windows.fit(&policy.build().expect("sound"), true, Some(0));
    loom::sync::Arc::new(windows)
}

fn mark(epoch: u64, at: Duration) -> Mark {
    Mark {
        epoch,
        tally: Tally::default(),
        ended: Nanos::from(at),
        elapsed: None,
    }
}

#[test]
fn loom_a_window_that_rolls_under_a_record_loses_none_and_counts_no_old_bucket() {
    model(|| {
        let windows = windows();
        windows.mark_stripe_of(0, mark(0, Duration::ZERO));
        let other = windows.clone();
        let newer = thread::spawn(move || other.mark_stripe_of(1, mark(0, 10 * SECOND)));
        let same = windows.mark_stripe_of(0, mark(0, 9 * SECOND));
        assert_eq!((same, newer.join().unwrap()), (Landed::Yes, Landed::Yes));
        let now = Nanos::from(10 * SECOND);
        assert_eq!(windows.counts(now).calls, 2, "the first is a window old");
    });
}

#[test]
fn loom_a_record_of_an_old_epoch_cannot_land_in_a_window_that_was_emptied() {
    model(|| {
        let windows = windows();
        let other = windows.clone();
        let late = thread::spawn(move || other.mark_stripe_of(1, mark(0, SECOND)));
        windows.restart(Some(2));
        windows.mark_stripe_of(0, mark(2, SECOND));
        late.join().unwrap();
        let counts = windows.counts(Nanos::from(SECOND));
        let expected = Counts {
            calls: 1,
            ..Counts::default()
        };
        assert_eq!(counts, expected, "the one of the new epoch");
    });
}
