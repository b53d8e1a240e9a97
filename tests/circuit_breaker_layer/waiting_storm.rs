//! Instances that wait, while commands, changes of policy and the clock come from elsewhere.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tower::{Layer, ServiceExt, service_fn};
use tower_service::Service;
use tower_sluice::Error;
use tower_sluice::circuit_breaker::{CircuitBreaker, CircuitBreakerLayer, CircuitPolicy};
use tower_sluice::clock::ManualClock;

use crate::harness::{OPEN, brittle, circuit};

/// Does this and that to `breaker`, and leaves it to recover.
fn rage(breaker: &CircuitBreaker, time: &ManualClock, policies: &[CircuitPolicy], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..20 {
        match random.u32(0..10) {
            0 => breaker.force_open(),
            1 => breaker.force_close(),
            2 => breaker.disable(),
            3 => breaker.release(),
            4 => breaker.reset(),
            5 => breaker.set_policy(random.choice(policies).expect("some").clone()),
            6 | 7 => time.advance(OPEN / 2),
            _ => drop(breaker.try_acquire().map(|permit| permit.failure())),
        }
        std::thread::yield_now();
    }
    breaker.release();
    let _ = breaker.try_acquire().map(|permit| permit.failure());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn h51_in_a_storm_of_commands_no_instance_sleeps_on() {
    let policies = [
        brittle().probes(1),
        brittle().probes(3).open_for(3 * OPEN),
        brittle().probes(2).recover_every(2).ramp_up(OPEN),
    ];
    // The clock runs far ahead of the calls: no probe is to time out by that.
    let policies =
        policies.map(|policy| policy.probe_timeout(Duration::MAX).build().expect("sound"));
    for round in 0..200 {
        let (time, breaker) = circuit(brittle().probes(2).probe_timeout(Duration::MAX));
        let inner = service_fn(|()| async {
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(())
        });
        let layer = CircuitBreakerLayer::from(breaker.clone()).pending_while_open();
        let service = layer.layer(inner);
        let tasks: Vec<_> = (0..6)
            .map(|_| {
                let mut service = service.clone();
                tokio::spawn(async move {
                    let mut made = 0;
                    while made < 5 {
                        let ready = service.ready().await.expect("never fails");
                        match ready.call(()).await {
                            Ok(()) => made += 1,
                            Err(Error::Refused(_)) => tokio::task::yield_now().await,
                            Err(Error::Inner(never)) => match never {},
                        }
                    }
                })
            })
            .collect();
        rage(&breaker, &time, &policies, round);
        // From here on the clock alone moves, and nobody calls but those who wait.
        let done = Arc::new(AtomicBool::new(false));
        let clock = {
            let (time, done) = (time.clone(), done.clone());
            std::thread::spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    time.advance(OPEN);
                    std::thread::yield_now();
                }
            })
        };
        for task in tasks {
            task.await.expect("every instance goes on, in the end");
        }
        done.store(true, Ordering::SeqCst);
        clock.join().unwrap();
    }
}
