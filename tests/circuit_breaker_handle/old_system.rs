use std::time::Duration;

use tower_sluice::circuit_breaker::{CircuitBreaker, CircuitPolicy, CircuitState};
use tower_sluice::clock::Clock;

const MAX_TIME: Duration = Duration::from_millis(500);

/// The hand-written component that this crate grew out of: `maxTime` 500 ms, `maxCnt` 100,
/// `tryRecoverCnt` 200, one probe.
#[test]
fn the_old_system_trips_on_the_hundredth_slow_call_and_makes_every_two_hundredth_arrival() {
    let time = Clock::manual();
    let policy = CircuitPolicy::builder()
        .slow_threshold(MAX_TIME)
        .consecutive(100)
        .recover_every(200)
        .probes(1)
        .build()
        .unwrap();
    let breaker = CircuitBreaker::builder("old", policy).clock(&time).build();
    let call = |takes: Duration| {
        let permit = breaker.try_acquire().ok()?;
        time.advance(takes);
        Some(permit.success())
    };

    for made in 1..=99 {
        assert!(call(MAX_TIME).is_some(), "slow call {made} is made");
        assert_eq!(breaker.state(), CircuitState::Closed, "after {made} slow");
    }
    call(MAX_TIME);
    assert_eq!(breaker.state(), CircuitState::Open, "after 100 slow");

    let arrive = |takes| (1..=200).filter(|_| call(takes).is_some()).count();
    for round in 0..3 {
        let made: Vec<u32> = (1..=200).filter(|_| call(MAX_TIME).is_some()).collect();
        assert_eq!(made, [200], "round {round}: 199 refused, the 200th made");
        assert_eq!(breaker.state(), CircuitState::Open, "a slow probe");
    }
    assert_eq!(arrive(MAX_TIME - Duration::from_nanos(1)), 1);
    assert_eq!(breaker.state(), CircuitState::Closed, "a probe not slow");
    assert_eq!(breaker.snapshot().consecutive, 0, "counts begin anew");
}
