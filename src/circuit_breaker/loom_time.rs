//! Every interleaving of those who wait with the clock that another thread moves, and with the
//! change that they wait for: nobody sleeps on.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use loom::thread;
use tower_service::Service;

use super::{Admit, CircuitBreaker, CircuitPolicy, CircuitState, PendingWhileOpen};
use crate::clock::{Clock, ManualClock};

const SECOND: Duration = Duration::from_secs(1);

fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

/// Open for a second.
fn opened(probes: u32) -> (CircuitBreaker, ManualClock) {
    let time = Clock::manual();
    let policy = CircuitPolicy::builder().consecutive(1).probes(probes);
    let policy = policy.open_for(SECOND).open_jitter(0.0);
    let policy = policy.build().expect("sound");
    let breaker = CircuitBreaker::builder("modelled", policy).clock(&time);
    let breaker = breaker.build();
    breaker.try_acquire().expect("closed").failure();
    (breaker, time)
}

/// Set when woken.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn flag() -> (std::sync::Arc<Flag>, Waker) {
    let flag = std::sync::Arc::new(Flag::default());
    (flag.clone(), flag.into())
}

impl Flag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// An inner service that is always ready.
struct Well;

impl Service<()> for Well {
    type Response = ();
    type Error = Infallible;
    type Future = Ready<Result<(), Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, (): ()) -> Self::Future {
        ready(Ok(()))
    }
}

/// An instance in back-pressure mode that has been polled once.
struct Waiting {
    /// Kept: dropped, it would pass its turn on.
    _instance: PendingWhileOpen,
    is_ready: bool,
    flag: std::sync::Arc<Flag>,
}

impl Waiting {
    fn poll(breaker: &CircuitBreaker) -> Self {
        let mut instance = PendingWhileOpen::new(breaker.clone()).expect("it recovers by time");
        let (flag, waker) = flag();
        let mut cx = Context::from_waker(&waker);
        let polled = Admit::<()>::poll_ready(&mut instance, &mut Well, &mut cx);
        Self {
            _instance: instance,
            is_ready: polled.is_ready(),
            flag,
        }
    }

    /// Has its place, or is on its way to it.
    fn goes_on(&self) -> bool {
        self.is_ready || self.flag.is_set()
    }
}

#[test]
fn loom_as_many_as_there_are_probes_go_on_when_the_time_comes_whoever_set_the_alarm() {
    model(2, || {
        let (breaker, time) = opened(2);
        let other = breaker.clone();
        let theirs = thread::spawn(move || Waiting::poll(&other));
        let clock = thread::spawn(move || time.advance(SECOND));
        let ours = Waiting::poll(&breaker);
        let theirs = theirs.join().unwrap();
        clock.join().unwrap();
        assert!(ours.goes_on(), "its place is free, and nobody tells it");
        assert!(theirs.goes_on(), "its place is free, and nobody tells it");
    });
}

#[test]
fn loom_those_who_wait_beside_a_probe_go_on_when_it_closes_or_the_alarm_is_set_for_them() {
    model(2, || {
        let (breaker, time) = opened(1);
        time.advance(SECOND);
        let probe = breaker.acquire_owned().expect("the probe");
        let closing = thread::spawn(move || probe.success());
        let waiting = Waiting::poll(&breaker);
        closing.join().unwrap();
        assert_eq!(breaker.state(), CircuitState::Closed);
        assert!(waiting.goes_on(), "it is closed, and nobody tells it");
    });
}

#[test]
fn loom_one_who_waits_for_closed_sees_it_or_is_woken() {
    model(3, || {
        let (breaker, time) = opened(1);
        time.advance(SECOND);
        let probe = breaker.acquire_owned().expect("the probe");
        let closing = thread::spawn(move || probe.success());
        let (flag, waker) = flag();
        let mut closed = pin!(breaker.when_closed());
        let polled = closed.as_mut().poll(&mut Context::from_waker(&waker));
        closing.join().unwrap();
        assert!(polled.is_ready() || flag.is_set(), "it would sleep on");
    });
}

#[test]
fn loom_a_driver_sees_the_time_or_is_woken_by_it() {
    model(3, || {
        let (breaker, time) = opened(1);
        let clock = thread::spawn(move || time.advance(SECOND));
        let (flag, waker) = flag();
        let mut driver = pin!(breaker.drive());
        let polled = driver.as_mut().poll(&mut Context::from_waker(&waker));
        clock.join().unwrap();
        assert!(polled.is_pending(), "there is a handle still");
        let made = breaker.state() == CircuitState::HalfOpen;
        assert!(made || flag.is_set(), "it would sleep on");
    });
}

#[test]
fn loom_a_driver_sees_a_trip_and_its_time_or_is_woken() {
    model(2, || {
        let (breaker, time) = opened(1);
        breaker.reset();
        let other = breaker.clone();
        let tripping = thread::spawn(move || {
            other.try_acquire().expect("closed").failure();
            time.advance(SECOND);
        });
        let (flag, waker) = flag();
        let mut driver = pin!(breaker.drive());
        let _pending = driver.as_mut().poll(&mut Context::from_waker(&waker));
        tripping.join().unwrap();
        let made = breaker.state() == CircuitState::HalfOpen;
        assert!(made || flag.is_set(), "it would sleep on");
    });
}
