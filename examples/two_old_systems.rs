//! The two hand-written systems that this crate replaces, replayed on a clock moved by hand.
//!
//! A: an RPC server with a count of calls for each service and a limit on each, cleared every
//! minute, and an operator who switches a service off and on.
//!
//! B: a breaker with three numbers. `maxTime`: a call that takes this long is slow. `maxCnt`: so
//! many slow calls in a row open the circuit. `tryRecoverCnt`: while open, every so many-th call
//! that arrives is really made, and closes the circuit if it is not slow.
//!
//! `cargo run --example two_old_systems`

use std::convert::Infallible;
use std::time::Duration;

use tower::{Service, ServiceBuilder, ServiceExt};
use tower_sluice::circuit_breaker::{CircuitOpenReason, CircuitState, Outcome, OwnedPermit};
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::RateLimitedReason;
use tower_sluice::{
    CircuitBreaker, CircuitBreakerLayer, CircuitBreakers, CircuitPolicy, Error, KeyedRateLimiter,
    Quota, RateLimitLayer,
};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    rpc_server().await;
    counting_breaker();
}

/// A call of system A.
#[derive(Clone, Copy)]
struct Call {
    service: &'static str,
}

fn calls_a_minute(service: &str) -> Quota {
    let limit = if service == "orders" { 5 } else { 3 };
    Quota::per_minute(limit).fixed_window()
}

async fn rpc_server() {
    println!("A: orders may be called 5 times a minute, users 3 times");
    let time = Clock::manual();
    let calls = KeyedRateLimiter::builder(Quota::per_minute(5).fixed_window())
        .name("calls")
        .clock(&time)
        .build()
        .expect("a valid quota");
    let switches = CircuitBreakers::<&str>::new(CircuitPolicy::default());
    let mut server = ServiceBuilder::new()
        .layer(
            // Only a switch here: what the calls come to does not move it.
            CircuitBreakerLayer::keyed(switches.clone(), |call: &Call| call.service)
                .classify(|_: Result<&String, &_>| Outcome::Ignored),
        )
        .layer(RateLimitLayer::keyed_with(calls, |call: &Call| {
            Some((call.service, Some(calls_a_minute(call.service))))
        }))
        .service_fn(async |call: Call| Ok::<_, Infallible>(format!("{} answered", call.service)));

    let mut eight = async |service| {
        let mut passed = 0;
        for _ in 0..8 {
            match server
                .ready()
                .await
                .expect("always ready")
                .call(Call { service })
                .await
            {
                Ok(_) => passed += 1,
                Err(Error::Refused(open)) => assert_eq!(open.reason(), CircuitOpenReason::Forced),
                Err(Error::Inner(Error::Refused(limited))) => {
                    assert_eq!(limited.reason(), RateLimitedReason::Spent);
                    assert_eq!(limited.retry_after(), Some(Duration::from_secs(60)));
                }
                Err(Error::Inner(Error::Inner(never))) => match never {},
            }
        }
        println!("  8 calls of {service}: {passed} passed");
        passed
    };

    assert_eq!((eight("orders").await, eight("users").await), (5, 3));
    println!("  a minute later");
    time.advance(Duration::from_secs(60));
    assert_eq!((eight("orders").await, eight("users").await), (5, 3));

    println!("  a minute later, with orders switched off by hand");
    time.advance(Duration::from_secs(60));
    let orders = switches.get_or_create(&"orders").expect("there is room");
    orders.force_open();
    assert_eq!((eight("orders").await, eight("users").await), (0, 3));
    println!("  and on again");
    orders.release();
    assert_eq!(eight("orders").await, 5);
}

const CALLERS: u64 = 30;
const ROUND: Duration = Duration::from_secs(1);

/// System B and what was seen of it.
struct Callers {
    time: tower_sluice::clock::ManualClock,
    breaker: CircuitBreaker,
    /// Calls that arrived since the circuit opened.
    arrivals: u64,
    /// Which of those were made.
    probes: Vec<u64>,
}

fn counting_breaker() {
    println!("\nB: maxTime 500 ms, maxCnt 100, tryRecoverCnt 200; 30 callers a second");
    let time = Clock::manual();
    let policy = CircuitPolicy::builder()
        .slow_threshold(Duration::from_millis(500))
        .consecutive(100)
        .recover_every(200)
        .probes(1)
        .build()
        .expect("a valid policy");
    let breaker = CircuitBreaker::builder("old", policy).clock(&time).build();
    let mut callers = Callers {
        time,
        breaker,
        arrivals: 0,
        probes: Vec::new(),
    };

    for second in 0..20 {
        // The first ten seconds are well, the others are not.
        let base = if second < 10 { 300 } else { 500 };
        callers.round(second, base);
    }
    assert_eq!(
        callers.breaker.state(),
        CircuitState::Open,
        "opened by 100 slow calls in a row"
    );
    let mut second = 20;
    while callers.probes.len() < 2 {
        callers.round(second, 500);
        second += 1;
    }
    println!("  healthy again");
    while callers.breaker.state() != CircuitState::Closed {
        callers.round(second, 300);
        second += 1;
    }
    assert_eq!(
        callers.probes,
        [200, 400, 600],
        "exactly every 200th arrival was made"
    );
    callers.round(second, 300);
    assert_eq!(
        callers.probes.len(),
        3,
        "closed again: calls are made, not probed"
    );
}

impl Callers {
    /// One second: all callers arrive at once, and their calls end one after the other.
    fn round(&mut self, second: u32, base_ms: u64) {
        let start = Duration::from_secs(second.into());
        let was_open = self.breaker.state() != CircuitState::Closed;
        let mut made: Vec<(Duration, OwnedPermit)> = Vec::new();
        let mut refused = 0;
        for caller in 0..CALLERS {
            self.arrivals += u64::from(was_open);
            let took = Duration::from_millis(base_ms + caller * 100 / CALLERS);
            match self.breaker.acquire_owned() {
                Ok(permit) => {
                    if was_open {
                        self.probes.push(self.arrivals);
                    }
                    made.push((took, permit));
                }
                Err(_) => refused += 1,
            }
        }
        let (calls, mut slow) = (made.len(), 0);
        for (took, permit) in made {
            self.time.set((start + took).into());
            slow += u32::from(took >= Duration::from_millis(500));
            permit.success();
        }
        self.time.set((start + ROUND).into());
        let state = self.breaker.state();
        println!(
            "  second {second:2}: {calls:2} made, {slow:2} slow, {refused:2} refused, {state}"
        );
    }
}
