//! Every interleaving of what threads share, by loom.

use std::time::Duration;

use loom::thread;
use tokio_test::task;

use super::algorithm::{Balance, Rule};
use super::engine::Engine;
use super::ledger::Refused;
use super::live::LiveGcra;
use super::{Quota, RateLimiter};
use crate::clock::{Clock, Nanos};
use crate::sync::Arc;

fn hour() -> Quota {
    Quota::per_hour(1)
}

#[test]
fn loom_the_last_token_goes_to_one_thread() {
    loom::model(|| {
        let live = Arc::new(LiveGcra::new(hour()));
        let other = live.clone();
        let there = thread::spawn(move || other.decide(Nanos::ZERO, 1).is_ok());
        let here = live.decide(Nanos::ZERO, 1).is_ok();
        assert!(here ^ there.join().unwrap(), "one of two");
    });
}

fn old() -> Quota {
    Quota::per_hour(4)
}

/// In another scale: not a whole number of nanoseconds. A state read under the wrong quota would be
/// full or empty by a factor.
fn new() -> Quota {
    Quota::with_period(7, Duration::from_secs(3_600))
}

const NOW: Nanos = Nanos::new(1_000_000_007);

/// Tries a limiter of the [`old`] quota: as built, and after another was replaced by it.
fn with_either_word(test: fn(Arc<LiveGcra>)) {
    for built in [old(), hour()] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(move || {
            let live = LiveGcra::new(built);
            live.set_quota(old(), NOW);
            test(Arc::new(live));
        });
    }
}

/// Decides as the handle does.
fn decide(live: &LiveGcra, cost: u32) -> Result<Balance, Refused> {
    match live.decide(NOW, cost) {
        Ok(balance) => Ok(balance),
        Err(Some(shortfall)) => Err(Refused::Spent(shortfall)),
        Err(None) => live.decide_locked(NOW, cost),
    }
}

#[test]
fn loom_a_decision_belongs_to_one_quota_while_it_is_replaced() {
    with_either_word(|live| {
        decide(&live, 1).unwrap();
        let other = live.clone();
        let replacing = thread::spawn(move || other.set_quota(new(), NOW));
        // A cost that the old one (3 left) admits and the new one (three quarters of 7) too.
        let balance = decide(&live, 3).map(|balance| balance.remaining());
        replacing.join().unwrap();
        let (rule, state) = live.read();
        let left = rule.balance(&state, NOW).remaining();
        match balance {
            // Before: nothing left, and a full bucket's time to go. After: 5 of 7, less 3.
            Ok(0) => assert_eq!(left, 0, "charged by the old, then carried over"),
            Ok(2) => assert_eq!(left, 2, "carried over, then charged by the new"),
            other => panic!("a mixture of both: {other:?}, {left} left"),
        }
    });
}

#[test]
fn loom_a_refusal_belongs_to_one_quota_while_it_is_replaced() {
    with_either_word(|live| {
        decide(&live, 4).unwrap();
        let other = live.clone();
        let replacing = thread::spawn(move || other.set_quota(new(), NOW));
        let Err(Refused::Spent(shortfall)) = decide(&live, 1) else {
            panic!("both are spent");
        };
        let quota = shortfall.balance.quota;
        let wait = Duration::from_nanos(shortfall.retry_after());
        assert!(quota == old() || quota == new(), "not a mixture: {quota}");
        let full = Duration::from_nanos(shortfall.balance.reset_after());
        assert!(
            full <= Duration::from_secs(3_601),
            "the hour is kept: {full:?}"
        );
        let one = quota.interval();
        assert!(wait <= one + Duration::from_nanos(2), "{quota}: {wait:?}");
        replacing.join().unwrap();
        assert!(decide(&live, 1).is_err(), "nothing for free");
    });
}

#[test]
fn loom_several_quotas_are_charged_together() {
    loom::model(|| {
        let quotas = [hour(), Quota::per_hour(2).fixed_window()];
        let engine = Arc::new(Engine::new(&quotas));
        let other = engine.clone();
        let check = |engine: &Engine| engine.decide_apart(Nanos::ZERO, 1).outcome.is_ok();
        let there = thread::spawn(move || check(&other));
        let here = check(&engine);
        assert!(
            here ^ there.join().unwrap(),
            "the hourly one admits one of two"
        );
        let left = engine.read(|ledger| {
            let standings = ledger.standings(Nanos::ZERO);
            standings
                .iter()
                .map(|one| one.remaining())
                .collect::<Vec<_>>()
        });
        assert_eq!(left, [0, 1], "the refused call was charged to neither");
    });
}

#[test]
fn loom_a_refund_beside_a_check_loses_nothing() {
    loom::model(|| {
        let live = Arc::new(LiveGcra::new(Quota::per_hour(2)));
        let now = Nanos::ZERO;
        let (_, grant) = live.grant(now, now, 1).unwrap();
        let other = live.clone();
        let returning = thread::spawn(move || other.refund(&grant, || now, 1));
        let first = live.decide(now, 1).is_ok();
        returning.join().unwrap();
        assert!(first, "one was there");
        assert!(live.decide(now, 1).is_ok(), "and one came back");
        assert!(live.decide(now, 1).is_err(), "and no third");
    });
}

#[test]
fn loom_a_dropped_waiter_hands_its_turn_on_whoever_serves_it_meanwhile() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let time = Clock::manual();
        let limiter = RateLimiter::builder(hour()).clock(&time).build().unwrap();
        limiter.check().unwrap();
        let long = Duration::from_secs(86_400);
        let mut first = task::spawn(limiter.wait(long));
        assert!(first.poll().is_pending());
        let mut second = task::spawn(limiter.wait(long));
        assert!(second.poll().is_pending());
        time.advance(Duration::from_secs(3_600));

        let dropping = thread::spawn(move || drop(first));
        // Comes by, and serves the first if it is still there.
        let newcomer = limiter.wait(long);
        dropping.join().unwrap();
        assert!(second.is_woken(), "the turn was handed on");
        assert!(second.poll().is_ready(), "with its token");
        drop(newcomer);
        assert_eq!(limiter.snapshot().waiting(), 0);
    });
}

#[test]
fn loom_a_waiter_that_parks_while_the_quota_is_raised_is_woken() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let time = Clock::manual();
        let limiter = RateLimiter::builder(hour()).clock(&time).build().unwrap();
        limiter.check().unwrap();
        let other = limiter.clone();
        let raising = thread::spawn(move || other.set_quota(Quota::per_second(1)).unwrap());
        let mut waiting = task::spawn(limiter.wait(Duration::from_secs(86_400)));
        let ready = waiting.poll().is_ready();
        raising.join().unwrap();
        time.advance(Duration::from_secs(1));
        assert!(
            ready || waiting.is_woken() && (waiting.poll().is_ready()),
            "the old hour is not slept out"
        );
    });
}
