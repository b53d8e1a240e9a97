use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tower_sluice::circuit_breaker::{
    CircuitBreaker, CircuitEvent, CircuitEventKind, CircuitState, Snapshot,
};
use tower_sluice::clock::Clock;

use crate::kit::{SECOND, Told, succeed, told_breaker, trip, trips_at};

/// A breaker whose listener is given the breaker itself.
fn with_handle(
    probes: u32,
    listener: impl Fn(&CircuitBreaker, &CircuitEvent) + Send + Sync + 'static,
) -> (CircuitBreaker, tower_sluice::clock::ManualClock) {
    let own = Arc::new(OnceLock::<CircuitBreaker>::new());
    let time = Clock::manual();
    let seen = own.clone();
    let breaker = CircuitBreaker::builder("tested", trips_at(2).probes(probes).build().unwrap())
        .clock(&time)
        .on_event(move |event| listener(seen.get().expect("set below"), event))
        .build();
    own.set(breaker.clone()).expect("once");
    (breaker, time)
}

/// denoland/std#6967: the listener saw the old counters, as the event fired before the state was
/// complete.
#[test]
fn h07_a_listener_sees_the_state_that_its_event_tells_of() {
    let seen = Arc::new(Mutex::new(Vec::<(CircuitState, Snapshot)>::new()));
    let keep = seen.clone();
    let (breaker, time) = with_handle(1, move |breaker, event| {
        if let CircuitEventKind::Transition {
            transition,
            snapshot,
        } = &event.kind
        {
            let now = breaker.snapshot();
            assert_eq!(**snapshot, now, "what the event carries and what is");
            assert_eq!(now.state, transition.to);
            keep.lock().push((transition.to, now));
            // A call of the listener's own changes nothing of what it was told.
            drop(breaker.try_acquire());
        }
    });
    trip(&breaker);
    time.advance(SECOND);
    let probe = breaker.try_acquire().expect("the probe");
    probe.success();
    let seen = std::mem::take(&mut *seen.lock());
    let states: Vec<_> = seen.iter().map(|(to, _)| *to).collect();
    let chain = [
        CircuitState::Open,
        CircuitState::HalfOpen,
        CircuitState::Closed,
    ];
    assert_eq!(states, chain);
    assert_eq!(
        seen[0].1.retry_after,
        Some(SECOND),
        "when it reopens is known"
    );
    assert_eq!((seen[1].1.probes_succeeded, seen[1].1.calls), (0, 0));
    assert!(seen[1].1.probes_in_flight <= 1, "the probe that caused it");
    assert_eq!((seen[2].1.calls, seen[2].1.consecutive), (0, 0), "empty");
}

/// sony/gobreaker#119: a callback that read the breaker deadlocked.
#[test]
fn h11_a_listener_may_read_and_command_any_breaker() {
    let (done, finished) = mpsc::channel();
    let driver = thread::spawn(move || {
        let (other, _, _) = told_breaker(trips_at(1));
        let (breaker, time) = with_handle(1, move |breaker, event| {
            let _ = (breaker.state(), breaker.snapshot());
            if let CircuitEventKind::Transition { transition, .. } = &event.kind {
                assert_eq!(breaker.state(), transition.to);
                other.force_open();
                other.release();
                other.reset();
            }
        });
        trip(&breaker);
        time.advance(SECOND);
        succeed(&breaker);
        let seen = breaker.snapshot();
        done.send((seen.state, seen.listener_panics))
            .expect("waited for");
    });
    // A watchdog, not a measure: a deadlock would never answer.
    let answer = finished.recv_timeout(Duration::from_secs(30));
    assert_eq!(answer, Ok((CircuitState::Closed, 0)));
    driver.join().expect("ran to its end");
}

#[test]
fn several_listeners_hear_each_event_in_order_and_a_panic_of_one_stops_no_other() {
    let (time, first, last) = (Clock::manual(), Told::default(), Told::default());
    let breaker = CircuitBreaker::builder("tested", trips_at(1).build().unwrap())
        .clock(&time)
        .on_event(first.listener())
        .on_event(|_| std::panic::resume_unwind(Box::new("a listener")))
        .on_event(last.listener())
        .build();
    trip(&breaker);
    let heard = first.take();
    assert_eq!(heard.len(), 2, "the failure and the transition it made");
    assert!(matches!(heard[0], CircuitEventKind::Completed { .. }));
    assert!(matches!(heard[1], CircuitEventKind::Transition { .. }));
    assert_eq!(last.take(), heard);
    assert_eq!(breaker.snapshot().listener_panics, 2);
}

#[test]
fn threads_tell_of_one_breaker_a_chain_of_transitions_and_one_end_for_each_call() {
    let (breaker, time, told) = told_breaker(trips_at(1).probes(1).open_growth(1.0));
    let call = |turn: usize| {
        for step in 0..300 {
            if let Ok(permit) = breaker.try_acquire() {
                match (step + turn) % 3 {
                    0 => permit.failure(),
                    _ => permit.success(),
                };
            }
            time.advance(SECOND / 2);
        }
    };
    thread::scope(|scope| {
        for turn in 0..3 {
            scope.spawn(move || call(turn));
        }
    });
    let totals = breaker.snapshot().totals.expect("a listener implies them");
    let (mut state, mut ends, mut refused) = (CircuitState::Closed, 0, 0);
    for event in told.take() {
        match event {
            CircuitEventKind::Transition {
                transition,
                snapshot,
            } => {
                assert_eq!(transition.from, state, "each begins where the last ended");
                assert_eq!(snapshot.state, transition.to);
                state = transition.to;
            }
            CircuitEventKind::Refused { .. } => refused += 1,
            _ => ends += 1,
        }
    }
    assert_eq!((totals.admitted, totals.in_flight), (ends, 0));
    assert_eq!(totals.refused, refused);
    assert_eq!(state, breaker.state(), "the last told is the state");
}

/// One thread at a time delivers; meanwhile the others only queue theirs.
#[test]
fn behind_a_listener_that_hangs_a_bounded_number_of_calls_waits_and_every_transition() {
    const MOST: u64 = 4_096;
    let (time, told) = (Clock::manual(), Told::default());
    let (let_go, hangs) = std::sync::mpsc::channel::<()>();
    let (began, begun) = std::sync::mpsc::channel();
    let hangs = Mutex::new(hangs);
    let breaker = CircuitBreaker::builder("tested", trips_at(1).build().unwrap())
        .clock(&time)
        .on_event(move |_| {
            let _ = began.send(());
            let _ = hangs.lock().recv(); // at once, when the sender is gone
        })
        .on_event(told.listener())
        .build();
    std::thread::scope(|scope| {
        scope.spawn(|| succeed(&breaker));
        begun.recv().expect("the listener has the first event");
        for _ in 0..MOST + 100 {
            breaker.force_open();
            breaker.try_acquire().expect_err("refused");
            breaker.release();
        }
        let snapshot = breaker.snapshot();
        assert_eq!(snapshot.events_dropped, 100, "those that found no room");
        drop(let_go);
    });
    let events = told.take();
    let (transitions, calls): (Vec<_>, Vec<_>) = events
        .into_iter()
        .partition(|event| matches!(event, CircuitEventKind::Transition { .. }));
    assert_eq!(
        calls.len() as u64,
        1 + MOST,
        "those that waited, and the first"
    );
    assert_eq!(
        transitions.len() as u64,
        2 * (MOST + 100),
        "none was dropped"
    );
    succeed(&breaker);
    assert_eq!(told.take().len(), 1, "and there is room again");
}
