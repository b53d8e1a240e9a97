//! What the tests of this binary share: a circuit on a manual clock, and services that misbehave.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tower_service::Service;
use tower_sluice::circuit_breaker::{CircuitBreaker, CircuitPolicy, CircuitPolicyBuilder};
use tower_sluice::clock::{Clock, ManualClock};

use crate::support::strict::NotWell;

pub const OPEN: Duration = Duration::from_secs(5);

/// Opens at the first failing call, for exactly [`OPEN`]; one probe closes it.
pub fn brittle() -> CircuitPolicyBuilder {
    CircuitPolicy::builder()
        .consecutive(1)
        .open_for(OPEN)
        .open_growth(1.0)
        .open_jitter(0.0)
        .probes(1)
}

pub fn circuit(policy: CircuitPolicyBuilder) -> (ManualClock, CircuitBreaker) {
    let time = Clock::manual();
    let policy = policy.build().expect("the test's policy is sound");
    let breaker = CircuitBreaker::builder("test", policy).clock(&time).build();
    (time, breaker)
}

/// Polls `service` for readiness, once.
pub fn poll_ready<S, R>(service: &mut S) -> Poll<Result<(), S::Error>>
where
    S: Service<R>,
{
    tokio_test::task::spawn(()).enter(|cx, _| service.poll_ready(cx))
}

/// Readies `service` and calls it.
pub fn call<S, R>(service: &mut S, request: R) -> S::Future
where
    S: Service<R>,
    S::Error: std::fmt::Debug,
{
    match poll_ready(service) {
        Poll::Ready(ready) => ready.expect("ready without error"),
        Poll::Pending => panic!("not ready"),
    }
    service.call(request)
}

/// Runs a future that is done by its first poll.
pub fn now<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let polled = tokio_test::task::spawn(()).enter(|cx, _| future.as_mut().poll(cx));
    match polled {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future is not done"),
    }
}

/// What an [`Actor`] is to do with a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    Answer,
    Fail,
    Hang,
    PanicInCall,
    PanicInPoll,
}

/// Does as each request says.
#[derive(Clone, Copy, Debug)]
pub struct Actor;

impl Service<Act> for Actor {
    type Response = Act;
    type Error = NotWell;
    type Future = Acting;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), NotWell>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, act: Act) -> Acting {
        assert!(act != Act::PanicInCall, "a panic in call");
        Acting(act)
    }
}

#[derive(Debug)]
pub struct Acting(Act);

impl Future for Acting {
    type Output = Result<Act, NotWell>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0 {
            Act::Fail => Poll::Ready(Err(NotWell)),
            Act::Hang => Poll::Pending,
            Act::PanicInPoll => panic!("a panic in poll"),
            act => Poll::Ready(Ok(act)),
        }
    }
}

/// Runs `work`, which is to panic.
pub fn panics<T>(work: impl FnOnce() -> T) {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    assert!(caught.is_err(), "the panic reaches the caller");
}
