//! `poll_ready` that waits while the circuit is open.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_test::task::{Spawn, spawn};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_sluice::Error;
use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitBreakerLayer, CircuitBreakerService, CircuitEvent, CircuitEventKind,
    CircuitPolicy, CircuitState, PendingWhileOpen,
};
use tower_sluice::clock::{Clock, ManualClock};

use crate::harness::{Act, Actor, OPEN, brittle, call, circuit, now, poll_ready};
use crate::support::strict::{Readiness, Strict};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

type Waiting = CircuitBreakerService<Actor, PendingWhileOpen>;

fn waiting(probes: u32) -> (ManualClock, CircuitBreaker, Waiting) {
    let (time, breaker) = circuit(brittle().probes(probes));
    let layer = CircuitBreakerLayer::from(breaker.clone()).pending_while_open();
    (time, breaker, layer.layer(Actor))
}

fn open(breaker: &CircuitBreaker) {
    breaker.try_acquire().unwrap().failure();
}

/// Tasks that each have polled their own clone once.
fn pending_tasks(service: &Waiting, number: usize) -> Vec<Spawn<Waiting>> {
    let mut tasks: Vec<_> = (0..number).map(|_| spawn(service.clone())).collect();
    for task in &mut tasks {
        assert_eq!(ready_in(task), Poll::Pending, "open");
    }
    tasks
}

fn ready_in(task: &mut Spawn<Waiting>) -> Poll<()> {
    task.enter(|cx, mut service| {
        service
            .poll_ready(cx)
            .map(|ready| ready.expect("the inner service is always well"))
    })
}

fn woken(tasks: &[Spawn<Waiting>]) -> usize {
    tasks.iter().filter(|task| task.is_woken()).count()
}

#[test]
fn h51_after_the_open_time_the_permitted_number_wakes_and_after_success_the_rest() {
    let (time, breaker, service) = waiting(2);
    open(&breaker);
    let mut tasks = pending_tasks(&service, 10);
    time.advance(OPEN - Duration::from_nanos(1));
    assert_eq!(woken(&tasks), 0, "nobody wakes early");
    time.advance(Duration::from_nanos(1));
    assert_eq!(woken(&tasks), 2, "as many as there are probes");
    for task in &mut tasks {
        let expected = if task.is_woken() {
            Poll::Ready(())
        } else {
            Poll::Pending
        };
        assert_eq!(
            ready_in(task),
            expected,
            "a place is reserved for each that woke"
        );
    }
    let mut probes: Vec<_> = tasks.drain(..2).collect();
    assert_eq!(breaker.snapshot().probes_in_flight, 2);
    for probe in &mut probes {
        let made = probe.enter(|_, mut service| now(service.call(Act::Answer)));
        assert_eq!(made, Ok(Act::Answer));
    }
    assert_eq!(breaker.snapshot().state, CircuitState::Closed);
    assert_eq!(
        woken(&tasks),
        8,
        "all the rest wake, with no call from outside"
    );
    assert!(tasks.iter_mut().all(|task| ready_in(task).is_ready()));
}

#[test]
fn a_reserved_place_goes_to_the_next_when_its_instance_is_dropped() {
    let (time, breaker, service) = waiting(1);
    open(&breaker);
    let mut tasks = pending_tasks(&service, 3);
    time.advance(OPEN);
    assert_eq!(ready_in(&mut tasks[0]), Poll::Ready(()));
    assert_eq!(ready_in(&mut tasks[1]), Poll::Pending);
    drop(tasks.remove(0));
    assert!(
        tasks[0].is_woken(),
        "the place came back and the first in the queue has it"
    );
    assert_eq!(ready_in(&mut tasks[0]), Poll::Ready(()));
}

#[test]
fn a_turn_that_came_to_an_instance_that_goes_away_is_passed_on() {
    let (time, breaker, service) = waiting(1);
    open(&breaker);
    let mut tasks = pending_tasks(&service, 2);
    time.advance(OPEN);
    assert_eq!(woken(&tasks), 1);
    drop(tasks.remove(0));
    assert!(
        tasks[0].is_woken(),
        "or both the place and the rest would sleep"
    );
    assert_eq!(ready_in(&mut tasks[0]), Poll::Ready(()));
}

/// The open time ends while a probe by count is out: what time changes next is that probe's
/// deadline.
#[test]
fn a_probe_by_count_that_never_ends_wakes_who_waits_at_its_deadline() {
    let policy = brittle().recover_every(1).probe_timeout(2 * OPEN);
    let (time, breaker) = circuit(policy.probes(1));
    let layer = CircuitBreakerLayer::from(breaker.clone()).pending_while_open();
    let service = layer.layer(Actor);
    open(&breaker);
    std::mem::forget(breaker.acquire_owned().expect("the first arrival"));
    let mut tasks = pending_tasks(&service, 1);
    time.advance(OPEN);
    assert_eq!(ready_in(&mut tasks[0]), Poll::Pending, "its probe is out");
    time.advance(OPEN);
    assert_eq!(woken(&tasks), 1, "its time is up");
}

#[test]
fn a_clone_of_an_instance_that_holds_a_place_holds_none() {
    let (time, breaker, mut service) = waiting(1);
    open(&breaker);
    time.advance(OPEN);
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    assert_eq!(
        poll_ready(&mut service),
        Poll::Ready(Ok(())),
        "polled twice, taken once"
    );
    let mut clone = service.clone();
    assert_eq!(
        poll_ready(&mut clone),
        Poll::Pending,
        "the one place is taken"
    );
    drop(clone);
    assert_eq!(
        breaker.snapshot().probes_in_flight,
        1,
        "the clone had nothing to give back"
    );
    assert_eq!(now(service.call(Act::Answer)), Ok(Act::Answer));
    assert_eq!(breaker.snapshot().state, CircuitState::Closed);
}

#[test]
fn a_failed_probe_leaves_the_rest_waiting_for_the_next_open_time() {
    let (time, breaker, service) = waiting(1);
    open(&breaker);
    let mut tasks = pending_tasks(&service, 3);
    time.advance(OPEN);
    assert_eq!(ready_in(&mut tasks[0]), Poll::Ready(()));
    let failed = tasks[0].enter(|_, mut service| now(service.call(Act::Fail)));
    assert!(failed.is_err());
    for task in &mut tasks[1..] {
        assert_eq!(ready_in(task), Poll::Pending, "open again");
    }
    time.advance(OPEN);
    assert_eq!(
        woken(&tasks[1..]),
        1,
        "woken by the new open time, with no call from outside"
    );
}

#[test]
fn a_place_whose_round_is_over_is_not_used() {
    let (time, breaker, mut service) = waiting(2);
    open(&breaker);
    time.advance(OPEN);
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    breaker.try_acquire().unwrap().failure();
    let refused = now(service.call(Act::Answer));
    assert!(
        matches!(refused, Err(Error::Refused(_))),
        "the other probe reopened the circuit"
    );
    assert_eq!(poll_ready(&mut service), Poll::Pending);
    time.advance(OPEN);
    assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
}

#[test]
fn an_instance_whose_inner_service_is_pending_leaves_the_place_to_others() {
    let (time, breaker) = circuit(brittle());
    let layer = CircuitBreakerLayer::from(breaker.clone()).pending_while_open();
    let (stuck, counts) = Strict::new(Actor);
    let mut stuck = spawn(layer.layer(stuck));
    let mut well = spawn(layer.layer(Actor));
    open(&breaker);
    assert!(
        stuck
            .enter(|cx, mut service| service.poll_ready(cx))
            .is_pending()
    );
    assert!(
        well.enter(|cx, mut service| service.poll_ready(cx))
            .is_pending()
    );
    time.advance(OPEN);
    assert!(
        stuck.is_woken() && !well.is_woken(),
        "first come, first woken"
    );
    counts.script([Readiness::Pending]);
    assert!(
        stuck
            .enter(|cx, mut service| service.poll_ready(cx))
            .is_pending()
    );
    assert!(well.is_woken(), "the turn went on to one that can use it");
    assert!(
        well.enter(|cx, mut service| service.poll_ready(cx))
            .is_ready()
    );
}

#[test]
fn the_clock_of_a_probe_runs_from_its_call_and_not_from_its_reservation() {
    let (time, breaker, mut service) = waiting(1);
    open(&breaker);
    time.advance(OPEN);
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    time.advance(Duration::from_secs(2));
    let in_flight = service.call(Act::Answer);
    time.advance(Duration::from_millis(100));
    assert_eq!(now(in_flight), Ok(Act::Answer));
    let elapsed = breaker.snapshot().last_elapsed;
    assert!(
        elapsed.is_none_or(|elapsed| elapsed == Duration::from_millis(100)),
        "the wait between readiness and call is not the call's: {elapsed:?}"
    );
}

#[test]
fn the_wait_for_the_circuit_is_reported_apart_from_the_time_of_the_call() {
    let time = Clock::manual();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = heard.clone();
    let layer = CircuitBreakerLayer::new("test", brittle().build().unwrap())
        .clock(&time)
        .on_event(move |event: &CircuitEvent| {
            if let CircuitEventKind::Completed {
                elapsed, waited, ..
            } = event.kind
            {
                listener.lock().push((elapsed, waited));
            }
        })
        .pending_while_open();
    let mut service = layer.layer(Actor);
    assert!(now(call(&mut service, Act::Fail)).is_err());
    assert!(poll_ready(&mut service).is_pending());
    time.advance(OPEN);
    assert!(poll_ready(&mut service).is_ready());
    time.advance(Duration::from_secs(1));
    let in_flight = service.call(Act::Answer);
    time.advance(Duration::from_millis(100));
    assert_eq!(now(in_flight), Ok(Act::Answer));
    let nothing = Duration::ZERO;
    let expected = [(nothing, nothing), (Duration::from_millis(100), OPEN)];
    assert_eq!(*heard.lock(), expected, "and waits are spent by one call");
    assert_eq!(now(call(&mut service, Act::Answer)), Ok(Act::Answer));
    assert_eq!(heard.lock()[2], (nothing, nothing));
}

#[test]
fn a_policy_that_never_recovers_by_time_is_refused_by_name() {
    let policies = [
        CircuitPolicy::builder().recover_every(10),
        CircuitPolicy::builder()
            .open_for(Duration::MAX)
            .open_jitter(0.0),
        CircuitPolicy::builder().open_for(600 * YEAR),
        // What grows so far, or is moved so far, does not end either.
        CircuitPolicy::builder().open_cap(Duration::MAX),
        CircuitPolicy::builder().retry_after_cap(Duration::MAX),
        CircuitPolicy::builder()
            .open_for(500 * YEAR)
            .open_jitter(0.5),
    ];
    for policy in policies {
        let layer = CircuitBreakerLayer::new("stuck", policy.build().unwrap());
        let error = layer.try_pending_while_open().unwrap_err();
        assert_eq!(error.field(), "pending_while_open");
    }
    let long = CircuitPolicy::builder()
        .open_for(500 * YEAR)
        .open_jitter(0.1);
    let layer = CircuitBreakerLayer::new("patient", long.build().unwrap());
    assert!(layer.try_pending_while_open().is_ok(), "it ends some day");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn h51_no_wake_up_is_lost_in_a_thousand_rounds_on_several_threads() {
    for round in 0..1_000_u32 {
        let (time, breaker) = circuit(brittle().probes(1 + round % 3));
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let inner = service_fn(move |()| {
            let made = count.clone();
            async move {
                tokio::task::yield_now().await;
                made.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Infallible>(())
            }
        });
        let service = CircuitBreakerLayer::from(breaker.clone())
            .pending_while_open()
            .layer(inner);
        open(&breaker);
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let mut service = service.clone();
                tokio::spawn(async move {
                    loop {
                        let ready = service.ready().await.expect("never fails");
                        match ready.call(()).await {
                            Ok(()) => return,
                            Err(Error::Refused(_)) => {}
                            Err(Error::Inner(never)) => match never {},
                        }
                    }
                })
            })
            .collect();
        time.advance(OPEN);
        for task in tasks {
            task.await
                .expect("every waiter is woken and makes its call");
        }
        assert_eq!(made.load(Ordering::SeqCst), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn tokio_time_wakes_them_too() {
    let policy = brittle().build().unwrap();
    let layer = CircuitBreakerLayer::new("timed", policy).pending_while_open();
    let mut service = layer.layer(Actor);
    assert!(
        service
            .ready()
            .await
            .unwrap()
            .call(Act::Fail)
            .await
            .is_err()
    );
    let before = tokio::time::Instant::now();
    let mut other = service.clone();
    let (first, second) = tokio::join!(
        async { service.ready().await.unwrap().call(Act::Answer).await },
        async { other.ready().await.unwrap().call(Act::Answer).await },
    );
    assert_eq!((first, second), (Ok(Act::Answer), Ok(Act::Answer)));
    assert!(
        before.elapsed() >= OPEN,
        "nothing but the open time ended the wait"
    );
}

#[test]
fn a_runtime_that_ends_leaves_no_dead_timer_behind() {
    let layer = CircuitBreakerLayer::new("long-lived", brittle().build().unwrap());
    let mut service = layer.pending_while_open().layer(Actor);
    assert!(now(call(&mut service, Act::Fail)).is_err());
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap()
    };
    let first = runtime();
    let mut waiting = service.clone();
    first.block_on(async { assert!(poll_ready(&mut waiting).is_pending()) });
    drop(first);
    let made = runtime().block_on(async {
        let ready = service.ready().await.expect("the inner service is well");
        ready.call(Act::Answer).await
    });
    assert_eq!(
        made,
        Ok(Act::Answer),
        "the second runtime set the alarm anew"
    );
}
