use std::time::Duration;

use tower_sluice::circuit_breaker::{
    Call, CircuitBreaker, CircuitBreakerBuilder, CircuitEvent, CircuitOpen, CircuitPolicy,
    CircuitPolicyBuilder, CircuitState, Drive, Outcome, OwnedPermit, Permit, Snapshot, WhenClosed,
};

use crate::kit::{SECOND, Told, breaker, succeed, told_breaker, trip, trips_at};

#[test]
fn handles_permits_and_futures_go_to_other_threads() {
    fn shared<T: Send + Sync + Unpin>() {}
    shared::<CircuitBreaker>();
    shared::<CircuitBreakerBuilder>();
    shared::<CircuitPolicy>();
    shared::<CircuitPolicyBuilder>();
    shared::<CircuitOpen>();
    shared::<CircuitEvent>();
    shared::<Snapshot>();
    shared::<Permit<'static>>();
    shared::<OwnedPermit>();
    shared::<WhenClosed>();
    shared::<Call<std::future::Ready<Result<(), ()>>>>();
    fn sent<T: Send>() {}
    sent::<Drive>();
}

#[test]
fn what_is_printed_fits_a_line_of_a_log() {
    let (breaker, time, told) = told_breaker(trips_at(1).probes(2));
    succeed(&breaker);
    let line = "circuit tested closed: 0 calls, 0 failed, 0 slow, 0 in a row, trips 0";
    assert_eq!(breaker.snapshot().to_string(), line);
    trip(&breaker);
    let line = "circuit tested open (failing outcomes in a row): 0 calls, 0 failed, 0 slow, \
                0 in a row, probe due in 1s, trips 1";
    assert_eq!(breaker.snapshot().to_string(), line);
    let refused = breaker.try_acquire().expect_err("open");
    assert_eq!(
        refused.to_string(),
        "circuit tested is open, retry after 1s"
    );
    let debug = r#"CircuitOpen { name: "tested", reason: Open, retry_after: Some(1s) }"#;
    assert_eq!(format!("{refused:?}"), debug);
    time.advance(SECOND);
    let probe = breaker.try_acquire().expect("due");
    assert_eq!(format!("{probe:?}"), "Permit(tested, Probe(0) in epoch 2)");
    let line = "circuit tested half-open (open time over): 0 calls, 0 failed, 0 slow, \
                0 in a row, probes 1 out, 0 good, trips 1";
    assert_eq!(breaker.snapshot().to_string(), line);
    drop(probe);
    breaker.force_open();
    let refused = breaker.try_acquire().expect_err("forced");
    assert_eq!(refused.to_string(), "circuit tested is open");
    assert!(format!("{breaker:?}").contains("forced open"));
    let texts: Vec<String> = told.events().iter().map(ToString::to_string).collect();
    let expected = [
        "circuit tested: success after 0ns",
        "circuit tested: failure after 0ns",
        "circuit tested: closed to open: failing outcomes in a row",
        "circuit tested: refused (Open)",
        "circuit tested: open to half-open: open time over",
        "circuit tested: cancelled after 0ns",
        "circuit tested: half-open to open: forced open",
        "circuit tested: refused (Forced)",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_refusal_and_a_pass_allocate_nothing() {
    let (breaker, _) = breaker(trips_at(1).open_for(Duration::MAX));
    let admitted = crate::support::alloc::allocations(|| {
        for _ in 0..1_000 {
            succeed(&breaker);
            drop(breaker.acquire_owned().expect("closed"));
        }
    });
    trip(&breaker);
    let refused = crate::support::alloc::allocations(|| {
        for _ in 0..1_000 {
            assert!(breaker.try_acquire().is_err(), "open for ever");
        }
    });
    assert_eq!((admitted, refused), ((0, 0), (0, 0)));
}

#[test]
fn the_last_elapsed_time_is_of_the_call_that_ended_last_whatever_it_counted() {
    let (breaker, time) = breaker(trips_at(1).slow_threshold(10 * SECOND).probes(1));
    assert_eq!(breaker.snapshot().last_elapsed, None);
    let take = |took: Duration, outcome: Outcome| {
        let permit = breaker.try_acquire().expect("admitted");
        time.advance(took);
        permit.record(outcome);
        breaker.snapshot().last_elapsed
    };
    assert_eq!(take(SECOND, Outcome::Success), Some(SECOND));
    assert_eq!(take(2 * SECOND, Outcome::Ignored), Some(2 * SECOND));
    assert_eq!(take(3 * SECOND, Outcome::Failure), Some(3 * SECOND));
    time.advance(SECOND);
    assert_eq!(
        take(4 * SECOND, Outcome::Success),
        Some(4 * SECOND),
        "a probe"
    );
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[test]
fn no_clock_is_read_where_nothing_uses_the_time() {
    let (breaker, time) = breaker(trips_at(5));
    let permit = breaker.try_acquire().expect("closed");
    time.advance(SECOND);
    permit.success();
    assert_eq!(breaker.snapshot().last_elapsed, None, "no start was noted");
    let with_listener = told_breaker(trips_at(5));
    succeed(&with_listener.0);
    assert!(with_listener.0.snapshot().last_elapsed.is_some());
    let _: Told = with_listener.2;
}
