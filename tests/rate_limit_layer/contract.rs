//! The Tower contract, in each mode: refusing, waiting, keyed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt};
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{Quota, RateLimitLayer, RateLimited, RateLimiter};
use tower_test::mock;

use crate::support::strict::{Counts, Echo, NotWell, Readiness, Strict};

const LONG: Duration = Duration::from_secs(3_600);

fn refusing(limiter: &RateLimiter) -> (impl StrictService + use<>, Arc<Counts>) {
    let (strict, counts) = Strict::new(Echo);
    let layer = RateLimitLayer::from(limiter.clone());
    (layer.layer(strict), counts)
}

/// A service of one of our layers over a strict one.
trait StrictService: Service<u32, Response = u32, Error = Refused, Future: Send> + Clone {}
impl<S> StrictService for S where
    S: Service<u32, Response = u32, Error = Refused, Future: Send> + Clone
{
}

type Refused = tower_sluice::Error<RateLimited, NotWell>;

fn thousand() -> RateLimiter {
    RateLimiter::new(Quota::per_hour(1_000))
}

fn spent(limiter: &RateLimiter) -> u32 {
    1_000 - limiter.peek().unwrap().remaining()
}

async fn rounds(mut service: impl StrictService, counts: &Counts) {
    for n in 0..100 {
        assert_eq!(service.ready().await.unwrap().call(n).await.unwrap(), n);
        let mut copy = service.clone();
        assert_eq!(copy.ready().await.unwrap().call(n).await.unwrap(), n);
    }
    assert_eq!(counts.calls(), 200);
    assert_eq!(
        counts.polls(),
        200,
        "one poll of the same instance for each call"
    );
}

#[tokio::test]
async fn h20_refusing_calls_only_the_instance_that_was_polled() {
    let (service, counts) = refusing(&thousand());
    rounds(service, &counts).await;
}

#[tokio::test]
async fn h20_waiting_readies_its_own_clone_before_it_calls_it() {
    let (strict, counts) = Strict::new(Echo);
    let layer = RateLimitLayer::new(thousand()).wait(LONG);
    rounds(layer.layer(strict), &counts).await;
}

#[tokio::test]
async fn h20_keyed_calls_only_the_instance_that_was_polled() {
    let (strict, counts) = Strict::new(Echo);
    let layer = RateLimitLayer::keyed(Quota::per_hour(1_000), |n: &u32| n % 2);
    rounds(layer.layer(strict), &counts).await;
}

#[tokio::test]
async fn h20_keyed_waiting_readies_its_own_clone_before_it_calls_it() {
    let (strict, counts) = Strict::new(Echo);
    let layer = RateLimitLayer::keyed(Quota::per_hour(1_000), |n: &u32| n % 2).wait(LONG);
    rounds(layer.layer(strict), &counts).await;
}

#[tokio::test]
async fn h20_refused_calls_leave_the_readiness_to_the_next_call() {
    let time = Clock::manual();
    let limiter = RateLimiter::builder(Quota::per_second(1))
        .clock(&time)
        .build()
        .unwrap();
    let (mut service, counts) = refusing(&limiter);
    service.ready().await.unwrap().call(1).await.unwrap();
    service.ready().await.unwrap().call(2).await.unwrap_err();
    time.advance(Duration::from_secs(1));
    service
        .call(3)
        .await
        .expect("the instance is still ready: the refused call never used it");
    assert_eq!((counts.polls(), counts.calls()), (2, 2));
}

#[test]
fn polling_twice_takes_nothing() {
    let limiter = thousand();
    let (service, _) = refusing(&limiter);
    let mut service = task::spawn(service);
    for _ in 0..10 {
        assert_ready_ok!(service.enter(|cx, mut service| service.poll_ready(cx)));
    }
    assert_eq!(spent(&limiter), 0, "tokens are taken in `call`");
}

#[test]
fn h34_a_service_dropped_or_cloned_after_it_was_ready_has_taken_nothing() {
    let limiter = thousand();
    let (service, counts) = refusing(&limiter);
    let mut ready = task::spawn(service.clone());
    assert_ready_ok!(ready.enter(|cx, mut service| service.poll_ready(cx)));
    let _copy = Clone::clone(&*ready);
    drop(ready);
    for _ in 0..10 {
        limiter.peek().unwrap();
    }
    assert_eq!(spent(&limiter), 0, "asking is not taking");
    assert_eq!(counts.calls(), 0);
}

#[tokio::test]
async fn h64_a_readiness_error_reaches_the_caller_typed_and_takes_nothing() {
    let limiter = thousand();
    let (service, counts) = refusing(&limiter);
    counts.script([Readiness::Error, Readiness::Pending, Readiness::Ready]);
    let mut service = task::spawn(service);
    let error = assert_ready_err!(service.enter(|cx, mut service| service.poll_ready(cx)));
    assert_eq!(error.into_inner(), Some(NotWell));
    assert_pending!(service.enter(|cx, mut service| service.poll_ready(cx)));
    drop(Clone::clone(&*service));
    counts.wake();
    assert!(
        service.is_woken(),
        "the inner service's wake passes through"
    );
    assert_ready_ok!(service.enter(|cx, mut service| service.poll_ready(cx)));
    assert_eq!(spent(&limiter), 0, "nothing was taken on the way");
}

#[tokio::test]
async fn h64_a_waiting_call_gets_its_readiness_error_from_the_future() {
    let (strict, counts) = Strict::new(Echo);
    counts.script([Readiness::Error, Readiness::Pending, Readiness::Ready]);
    let layer = RateLimitLayer::keyed(Quota::per_hour(1_000), |_: &u32| 0_u8).wait(LONG);
    let mut service = layer.layer(strict);
    let error = service.ready().await.unwrap().call(1).await.unwrap_err();
    assert_eq!(error.into_inner(), Some(NotWell));
    let mut call = task::spawn(service.ready().await.unwrap().call(2));
    assert_pending!(call.poll());
    counts.wake();
    assert!(call.is_woken(), "readiness of its clone wakes the call");
    assert_ready_ok!(call.poll());
    assert_eq!(counts.calls(), 1);
}

#[test]
fn h64_a_waiting_call_dropped_while_its_clone_is_pending_leaves_nothing_behind() {
    let (strict, counts) = Strict::new(Echo);
    counts.script([Readiness::Pending]);
    let layer = RateLimitLayer::keyed(Quota::per_hour(1), |_: &u32| 0_u8).wait(Duration::ZERO);
    let mut service = layer.layer(strict);
    let mut call = task::spawn(service.call(1));
    assert_pending!(call.poll());
    let drops = counts.drops();
    drop(call);
    assert_eq!(counts.drops(), drops + 1, "the clone went with the call");
    assert_eq!(counts.calls(), 0);
}

#[tokio::test]
async fn an_error_of_the_call_reaches_the_caller_typed() {
    let (mut service, mut handle) = mock::spawn_layer(RateLimitLayer::new(thousand()));
    assert_ready_ok!(service.poll_ready());
    let mut call = task::spawn(service.call(1));
    assert_pending!(call.poll());
    let (_, send): (u32, mock::SendResponse<u32>) = handle.next_request().await.unwrap();
    send.send_error(NotWell);
    assert!(call.is_woken());
    let error = assert_ready_err!(call.poll());
    let inner = error.into_inner().expect("not a refusal");
    assert!(inner.downcast_ref::<NotWell>().is_some());
}

#[tokio::test]
async fn readiness_that_is_pending_passes_through_until_it_comes() {
    let (mut service, mut handle) = mock::spawn_layer(RateLimitLayer::new(thousand()));
    let _: &mut mock::Handle<u32, u32> = &mut handle;
    handle.allow(0);
    assert_pending!(service.poll_ready());
    handle.allow(1);
    assert!(service.is_woken());
    assert_ready_ok!(service.poll_ready());
    drop(service.call(1));
}

#[derive(Clone)]
struct Panicking(Arc<AtomicBool>);

impl Service<u32> for Panicking {
    type Response = u32;
    type Error = NotWell;
    type Future = std::future::Ready<Result<u32, NotWell>>;

    fn poll_ready(
        &mut self,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), NotWell>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, n: u32) -> Self::Future {
        assert!(!self.0.load(Ordering::SeqCst), "told to panic");
        std::future::ready(Ok(n))
    }
}

#[tokio::test]
async fn a_panic_of_the_inner_service_costs_its_call_and_nothing_else() {
    let panics = Arc::new(AtomicBool::new(true));
    let limiter = RateLimiter::new(Quota::per_hour(2));
    let layer = RateLimitLayer::from(limiter.clone());
    let mut service = layer.layer(Panicking(panics.clone()));
    let mut copy = service.clone();
    let call = tokio::spawn(async move { copy.ready().await.unwrap().call(1).await });
    assert!(call.await.unwrap_err().is_panic());
    panics.store(false, Ordering::SeqCst);
    service
        .ready()
        .await
        .unwrap()
        .call(1)
        .await
        .expect("the second token");
    service
        .ready()
        .await
        .unwrap()
        .call(1)
        .await
        .expect_err("both are spent");
}
