//! Who is woken for a probe's place that another took.

use std::task::Poll;
use std::time::Duration;

use tokio_test::task::{Spawn, spawn};
use tower::{Layer, Service};
use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitBreakerLayer, CircuitBreakerService, PendingWhileOpen,
};
use tower_sluice::clock::ManualClock;

use crate::harness::{Act, Actor, OPEN, brittle, circuit};

const TIMEOUT: Duration = Duration::from_secs(30);

type Task = Spawn<CircuitBreakerService<Actor, PendingWhileOpen>>;

/// `number` tasks that wait, each with an instance of its own, while the circuit is open.
fn waiting(number: usize) -> (ManualClock, CircuitBreaker, Vec<Task>) {
    let (time, breaker) = circuit(brittle().probe_timeout(TIMEOUT));
    let layer = CircuitBreakerLayer::from(breaker.clone()).pending_while_open();
    breaker.try_acquire().expect("closed").failure();
    let mut tasks: Vec<_> = (0..number).map(|_| spawn(layer.layer(Actor))).collect();
    for task in &mut tasks {
        assert_eq!(ready_in(task), Poll::Pending, "open");
    }
    (time, breaker, tasks)
}

fn ready_in(task: &mut Task) -> Poll<()> {
    let polled = task.enter(|cx, mut service| service.poll_ready(cx));
    polled.map(|ready| ready.expect("the inner service is always well"))
}

#[test]
fn a_probe_that_hangs_wakes_those_who_wait_behind_it_at_its_deadline() {
    let (time, _breaker, mut tasks) = waiting(3);
    time.advance(OPEN);
    assert_eq!(ready_in(&mut tasks[0]), Poll::Ready(()));
    let _hangs = tasks[0].enter(|_, mut service| service.call(Act::Hang));
    time.advance(TIMEOUT);
    assert!(
        tasks[1].is_woken(),
        "the probe has failed, and no one else comes"
    );
    assert_eq!(ready_in(&mut tasks[1]), Poll::Pending, "open again");
    time.advance(OPEN);
    assert!(
        tasks[1].is_woken() || tasks[2].is_woken(),
        "a probe is due again"
    );
}

#[test]
fn a_place_that_is_held_and_not_used_goes_to_those_who_wait_at_its_deadline() {
    let (time, _breaker, mut tasks) = waiting(2);
    time.advance(OPEN);
    assert_eq!(ready_in(&mut tasks[0]), Poll::Ready(()));
    time.advance(TIMEOUT);
    assert!(tasks[1].is_woken(), "the place is free again");
    assert_eq!(ready_in(&mut tasks[1]), Poll::Ready(()));
}

#[test]
fn the_deadline_is_that_of_the_call_once_the_place_is_used() {
    let (time, _breaker, mut tasks) = waiting(2);
    time.advance(OPEN);
    assert_eq!(ready_in(&mut tasks[0]), Poll::Ready(()));
    time.advance(TIMEOUT / 2);
    let _hangs = tasks[0].enter(|_, mut service| service.call(Act::Hang));
    time.advance(TIMEOUT / 2);
    assert_eq!(ready_in(&mut tasks[1]), Poll::Pending, "it may run on");
    time.advance(TIMEOUT / 2);
    assert!(tasks[1].is_woken(), "its time is up");
}
