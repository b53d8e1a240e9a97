//! The hot paths of both layers, by name: what `cargo bench` times and `benches/counts` counts.
//!
//! The inner service is the cheapest there is, so that a figure is that of the layer. It includes
//! the loop and the readiness check; `bare` is the same without any layer. Of a decision by hand
//! only the verdict is looked at, as a caller who lets through or not does.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tower_layer::Layer;
use tower_service::Service;
use tower_sluice::clock::Clock;
use tower_sluice::http::respond;
use tower_sluice::{
    CircuitBreaker, CircuitBreakerLayer, CircuitPolicy, KeyedRateLimiter, Quota, RateLimitLayer,
    RateLimiter,
};

#[derive(Clone, Copy)]
struct Bare;

impl<Request> Service<Request> for Bare {
    type Response = Request;
    type Error = Infallible;
    type Future = Ready<Result<Request, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        ready(Ok(request))
    }
}

// Inlined, so that a count does not depend on how many paths call the same service.
#[inline(always)]
fn call<S: Service<Request>, Request>(
    service: &mut S,
    request: Request,
) -> Poll<Result<S::Response, S::Error>> {
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(())) = service.poll_ready(&mut cx) else {
        panic!("a service here is always ready");
    };
    pin!(service.call(request)).poll(&mut cx)
}

/// A burst that no run spends.
const PLENTY: u32 = 900_000_000;

fn plenty() -> Quota {
    Quota::with_period(1, Duration::from_secs(1)).burst(PLENTY)
}

fn limiter(quota: Quota, clock: Clock) -> RateLimiter {
    let builder = RateLimiter::builder(quota).name("counted");
    builder.clock(clock).build().expect("a valid quota")
}

/// A limiter whose quota is not that of the beginning.
fn replaced() -> RateLimiter {
    let limiter = limiter(Quota::per_second(1), Clock::tokio());
    limiter.set_quota(plenty()).expect("the same algorithm");
    limiter
}

fn spent(clock: Clock) -> RateLimiter {
    let limiter = limiter(Quota::per_hour(1), clock);
    limiter.check().expect("the one call of the hour");
    limiter
}

fn keyed() -> KeyedRateLimiter<u64> {
    let limiter = KeyedRateLimiter::builder(plenty())
        .build()
        .expect("a valid quota");
    for key in 0..1_000 {
        limiter.check(&key).expect("there is plenty");
    }
    limiter
}

fn breaker(policy: CircuitPolicy) -> CircuitBreaker {
    CircuitBreaker::new("counted", policy)
}

fn untimed() -> CircuitPolicy {
    CircuitPolicy::builder()
        .consecutive(5)
        .build()
        .expect("a valid policy")
}

fn timed() -> CircuitPolicy {
    let builder = CircuitPolicy::builder().consecutive(5);
    builder
        .slow_threshold(Duration::from_secs(1))
        .build()
        .expect("a valid policy")
}

fn calls_window() -> CircuitPolicy {
    let builder = CircuitPolicy::builder().failure_rate(0.5);
    builder.window_calls(100).build().expect("a valid policy")
}

fn open() -> CircuitBreaker {
    let policy = CircuitPolicy::builder()
        .consecutive(1)
        .open_for(Duration::from_secs(3_000));
    let breaker = breaker(
        policy
            .open_cap(Duration::from_secs(6_000))
            .build()
            .expect("a valid policy"),
    );
    breaker.try_acquire().expect("it is closed").failure();
    breaker
}

/// Has so many calls succeed by hand.
fn succeed(policy: CircuitPolicy) -> Box<dyn FnMut(u64)> {
    let breaker = breaker(policy);
    Box::new(move |times| {
        (0..times).for_each(|_| {
            let permit = breaker.try_acquire().expect("it is closed");
            black_box(permit.success());
        });
    })
}

/// Calls a service so many times, and wants each verdict to be `expected`.
fn serve<S: Service<u64>>(expected: bool, mut service: S) -> impl FnMut(u64) {
    move |times| {
        (0..times).for_each(|n| {
            let succeeds = matches!(call(&mut service, n), Poll::Ready(Ok(_)));
            assert_eq!(black_box(succeeds), expected);
        });
    }
}

/// As [`serve`], over HTTP; the whole answer is looked at, since it is what goes on the wire.
fn serve_http<S: Service<http::Request<()>>>(mut service: S) -> impl FnMut(u64) {
    move |times| {
        (0..times).for_each(|_| {
            let answer = call(&mut service, http::Request::new(()));
            assert!(black_box(answer).is_ready());
        });
    }
}

/// Asks a limiter so many times, and wants each verdict to be `expected`.
fn ask(expected: bool, check: impl Fn(u64) -> bool) -> impl FnMut(u64) {
    move |times| (0..times).for_each(|n| assert_eq!(black_box(check(n)), expected))
}

/// A name, and what makes the work: a closure that does it so many times.
pub(crate) type Path = (&'static str, fn() -> Box<dyn FnMut(u64)>);

pub(crate) const PATHS: &[Path] = &[
    ("bare", || Box::new(serve(true, Bare))),
    ("limiter allow", || {
        let limiter = limiter(plenty(), Clock::tokio());
        Box::new(ask(true, move |_| limiter.check().is_ok()))
    }),
    ("limiter refuse", || {
        let limiter = spent(Clock::tokio());
        Box::new(ask(false, move |_| limiter.check().is_ok()))
    }),
    ("limiter allow, quota replaced", || {
        let limiter = replaced();
        Box::new(ask(true, move |_| limiter.check().is_ok()))
    }),
    ("limiter refuse, quota replaced", || {
        let limiter = replaced();
        limiter.check_n(PLENTY).expect("all of it is there");
        Box::new(ask(false, move |_| limiter.check().is_ok()))
    }),
    ("limiter allow, tsc", || {
        let limiter = limiter(plenty(), Clock::tsc());
        Box::new(ask(true, move |_| limiter.check().is_ok()))
    }),
    ("limiter refuse, tsc", || {
        let limiter = spent(Clock::tsc());
        Box::new(ask(false, move |_| limiter.check().is_ok()))
    }),
    ("keyed allow, 1000 keys", || {
        let limiter = keyed();
        Box::new(ask(true, move |n| limiter.check(&(n % 1_000)).is_ok()))
    }),
    ("keyed layer allow, 1000 keys", || {
        let layer = RateLimitLayer::keyed(keyed(), |n: &u64| n % 1_000);
        Box::new(serve(true, layer.layer(Bare)))
    }),
    ("limit layer allow", || {
        Box::new(serve(
            true,
            RateLimitLayer::from(limiter(plenty(), Clock::tokio())).layer(Bare),
        ))
    }),
    ("limit layer refuse", || {
        Box::new(serve(
            false,
            RateLimitLayer::from(spent(Clock::tokio())).layer(Bare),
        ))
    }),
    ("breaker closed, no time", || succeed(untimed())),
    (
        "breaker closed, window of calls",
        || succeed(calls_window()),
    ),
    ("breaker closed, slow threshold", || succeed(timed())),
    ("breaker closed, time window", || {
        succeed(CircuitPolicy::default())
    }),
    ("breaker open, refuse", || {
        let breaker = open();
        Box::new(move |times| {
            (0..times).for_each(|_| assert!(black_box(breaker.try_acquire().is_err())));
        })
    }),
    ("breaker layer closed, no time", || {
        Box::new(serve(
            true,
            CircuitBreakerLayer::from(breaker(untimed())).layer(Bare),
        ))
    }),
    ("breaker layer closed, window of calls", || {
        Box::new(serve(
            true,
            CircuitBreakerLayer::from(breaker(calls_window())).layer(Bare),
        ))
    }),
    ("breaker layer closed, slow threshold", || {
        Box::new(serve(
            true,
            CircuitBreakerLayer::from(breaker(timed())).layer(Bare),
        ))
    }),
    ("breaker layer closed, time window", || {
        Box::new(serve(
            true,
            CircuitBreakerLayer::from(breaker(CircuitPolicy::default())).layer(Bare),
        ))
    }),
    ("breaker layer open, refuse", || {
        Box::new(serve(false, CircuitBreakerLayer::from(open()).layer(Bare)))
    }),
    ("http bare", || Box::new(serve_http(Answer))),
    ("http allow", || {
        let layer = RateLimitLayer::from(limiter(plenty(), Clock::tokio()));
        Box::new(serve_http(layer.respond_with(respond).layer(Answer)))
    }),
    ("http refuse with Retry-After", || {
        let layer = RateLimitLayer::from(spent(Clock::tokio()));
        Box::new(serve_http(layer.respond_with(respond).layer(Answer)))
    }),
];

/// An inner service with an HTTP answer.
#[derive(Clone, Copy)]
struct Answer;

impl Service<http::Request<()>> for Answer {
    type Response = http::Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: http::Request<()>) -> Self::Future {
        ready(Ok(http::Response::new(String::new())))
    }
}
