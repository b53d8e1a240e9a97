//! What listeners are told, shadow mode, notes on responses.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_sluice::clock::{Clock, ManualClock};
use tower_sluice::rate_limit::event::{Ending, RateLimitEvent};
use tower_sluice::rate_limit::{
    Allowed, Annotate, KeyedRateLimiter, Quota, RateLimitLayer, RateLimited, RateLimitedReason,
};

use crate::support::strict::{Echo, NotWell};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq)]
enum Told {
    Admitted(u32, Duration),
    Refused(RateLimitedReason, bool, Duration),
    Abandoned(Duration),
    Completed(Duration, Duration, Ending),
}

/// A listener and what it has heard.
fn listener() -> (impl Fn(&RateLimitEvent<'_>) + Clone, Arc<Mutex<Vec<Told>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    let listener = move |event: &RateLimitEvent<'_>| {
        log.lock().push(match event {
            RateLimitEvent::Admitted {
                allowed, waited, ..
            } => Told::Admitted(allowed.remaining(), *waited),
            RateLimitEvent::Refused {
                refusal,
                shadow,
                waited,
                ..
            } => Told::Refused(refusal.reason(), *shadow, *waited),
            RateLimitEvent::Abandoned { waited, .. } => Told::Abandoned(*waited),
            RateLimitEvent::Completed {
                elapsed,
                waited,
                ending,
                ..
            } => Told::Completed(*elapsed, *waited, *ending),
            other => panic!("an event this test does not know: {other:?}"),
        });
    };
    (listener, heard)
}

/// Takes as long as its request says, on `time`, which it moves itself.
fn slow(
    time: &ManualClock,
) -> impl Service<Duration, Response = (), Error = NotWell, Future: Send> + Clone + use<> {
    let time = time.clone();
    service_fn(move |takes| {
        let time = time.clone();
        async move {
            time.advance(takes);
            if takes.is_zero() {
                Err(NotWell)
            } else {
                Ok(())
            }
        }
    })
}

#[tokio::test]
async fn each_call_is_told_once_when_decided_and_once_when_it_ended() {
    let time = Clock::manual();
    let (listen, heard) = listener();
    let service = RateLimitLayer::new(Quota::per_hour(3))
        .clock(&time)
        .on_event(listen)
        .layer(slow(&time));
    service.clone().oneshot(SECOND).await.unwrap();
    service.clone().oneshot(Duration::ZERO).await.unwrap_err();
    let mut dropped = service.clone();
    let call = dropped.ready().await.unwrap().call(SECOND);
    time.advance(5 * SECOND);
    drop(call);
    service.clone().oneshot(SECOND).await.unwrap_err();
    let none = Duration::ZERO;
    assert_eq!(
        *heard.lock(),
        [
            Told::Admitted(2, none),
            Told::Completed(SECOND, none, Ending::Response),
            Told::Admitted(1, none),
            Told::Completed(none, none, Ending::Error),
            Told::Admitted(0, none),
            Told::Completed(5 * SECOND, none, Ending::Dropped),
            Told::Refused(RateLimitedReason::Spent, false, none),
        ]
    );
}

#[tokio::test]
async fn h56_time_waited_is_told_apart_from_the_time_of_the_call() {
    let time = Clock::manual();
    let (listen, heard) = listener();
    let limiter = KeyedRateLimiter::<u8>::builder(Quota::with_period(1, 3 * SECOND))
        .clock(&time)
        .build()
        .unwrap();
    let mut service = RateLimitLayer::keyed(limiter.clone(), |_: &Duration| 0_u8)
        .wait(10 * SECOND)
        .on_event(listen)
        .layer(slow(&time));
    limiter.check(&0).unwrap();
    let took = Duration::from_millis(100);
    let mut call = task::spawn(service.ready().await.unwrap().call(took));
    assert_pending!(call.poll());
    time.advance(3 * SECOND);
    assert!(call.is_woken(), "its turn has come");
    assert_ready!(call.poll()).unwrap();
    assert_eq!(
        *heard.lock(),
        [
            Told::Admitted(0, 3 * SECOND),
            Told::Completed(took, 3 * SECOND, Ending::Response),
        ],
        "three seconds waited are no part of the call's tenth of a second"
    );
}

#[test]
fn a_call_dropped_while_it_waits_is_told_as_abandoned() {
    let time = Clock::manual();
    let (listen, heard) = listener();
    let limiter = KeyedRateLimiter::<u8>::builder(Quota::per_minute(1))
        .clock(&time)
        .build()
        .unwrap();
    let mut service = RateLimitLayer::keyed(limiter.clone(), |_: &u32| 0_u8)
        .wait(60 * SECOND)
        .on_event(listen)
        .layer(Echo);
    limiter.check(&0).unwrap();
    let mut call = task::spawn(service.call(1));
    assert_pending!(call.poll());
    time.advance(2 * SECOND);
    drop(call);
    let mut late = task::spawn(service.call(1));
    assert_pending!(late.poll());
    let mut too_late = task::spawn(service.call(1));
    assert_ready!(too_late.poll()).unwrap_err();
    assert_eq!(
        *heard.lock(),
        [
            Told::Abandoned(2 * SECOND),
            Told::Refused(RateLimitedReason::WaitTooLong, false, Duration::ZERO),
        ]
    );
    assert_eq!(limiter.waiting(), 1);
}

#[tokio::test]
async fn h16_a_fixed_window_neither_refuses_nor_delays_a_caller_within_its_limit() {
    let time = Clock::manual();
    let (listen, heard) = listener();
    let service = RateLimitLayer::new(Quota::per_second(3).fixed_window())
        .clock(&time)
        .on_event(listen)
        .layer(Echo);
    for _ in 0..20 {
        for n in 0..3_u32 {
            service.clone().oneshot(n).await.expect("within the limit");
        }
        time.advance(Duration::from_millis(1_500));
    }
    let heard = heard.lock();
    let admitted = heard.iter().filter_map(|told| match told {
        Told::Admitted(left, _) => Some(*left),
        _ => None,
    });
    let expected: Vec<u32> = [2, 1, 0].repeat(20);
    assert_eq!(
        admitted.collect::<Vec<_>>(),
        expected,
        "each window begins anew"
    );
    assert!(!heard.iter().any(|told| matches!(told, Told::Refused(..))));
}

#[tokio::test]
async fn shadow_mode_lets_every_call_through_and_counts_what_it_would_have_refused() {
    let (listen, heard) = listener();
    let layer = RateLimitLayer::keyed(Quota::per_hour(1), |_: &u32| 0_u8)
        .on_event(listen)
        .shadow();
    for layer in [layer.layer(Echo), layer.clone().layer(Echo)] {
        layer
            .oneshot(1_u32)
            .await
            .expect("shadow mode never refuses");
    }
    let waiting = layer.clone().wait(60 * SECOND).layer(Echo);
    waiting.oneshot(1_u32).await.expect("nor does it wait");
    assert_eq!(layer.shadowed(), 2);
    let refused = heard
        .lock()
        .iter()
        .filter(|told| matches!(told, Told::Refused(_, true, _)))
        .count();
    let completed = heard
        .lock()
        .iter()
        .filter(|told| matches!(told, Told::Completed(..)))
        .count();
    assert_eq!((refused, completed), (2, 3));
}

#[tokio::test]
async fn skipped_and_exempt_calls_are_not_counted_and_not_told() {
    let (listen, heard) = listener();
    let layer = RateLimitLayer::keyed_with(Quota::per_hour(1), |n: &u32| {
        (*n != 7).then_some((0_u8, None))
    })
    .cost(|n: &u32| {
        assert_ne!(*n, 9, "a skipped request is asked for nothing else");
        1
    })
    .skip(|n: &u32| *n == 9)
    .skip(|n: &u32| *n == 8)
    .on_event(listen);
    for n in [7, 8, 9, 7, 8, 9] {
        layer.layer(Echo).oneshot(n).await.unwrap();
    }
    assert!(heard.lock().is_empty());
    layer
        .layer(Echo)
        .oneshot(1)
        .await
        .expect("nothing was spent");
}

#[tokio::test]
async fn a_cost_is_charged_whole_or_not_at_all() {
    let layer = RateLimitLayer::new(Quota::per_hour(10)).cost(|n: &u32| *n);
    let service = layer.layer(Echo);
    service.clone().oneshot(7).await.unwrap();
    let refused = service.clone().oneshot(4).await.unwrap_err();
    assert_eq!(refused.refused().unwrap().remaining(), 3);
    service
        .clone()
        .oneshot(3)
        .await
        .expect("the refused call took nothing");
    service
        .clone()
        .oneshot(0)
        .await
        .expect("a cost of 0 is always admitted");
    let never = service.oneshot(11).await.unwrap_err();
    let never = never.refused().unwrap();
    assert_eq!(never.reason(), RateLimitedReason::CostAboveBurst);
    assert_eq!(never.retry_after(), None);
}

#[derive(Clone)]
struct Left;

impl Annotate<Vec<u32>> for Left {
    type Note = u32;

    fn admitted(&self, allowed: &Allowed) -> u32 {
        allowed.remaining()
    }

    fn refused(&self, _refusal: &RateLimited) -> u32 {
        u32::MAX
    }

    fn write(note: u32, response: &mut Vec<u32>) {
        response.push(note);
    }
}

#[tokio::test]
async fn the_decision_is_written_on_admitted_and_on_refused_responses() {
    let layer = RateLimitLayer::keyed(Quota::per_hour(2), |n: &Vec<u32>| n[0])
        .annotate(Left)
        .respond_with(|_: &RateLimited| vec![0]);
    let service = layer.layer(Echo);
    assert_eq!(service.clone().oneshot(vec![5]).await.unwrap(), [5, 1]);
    let waiting = layer.clone().wait(SECOND).layer(Echo);
    assert_eq!(waiting.oneshot(vec![5]).await.unwrap(), [5, 0]);
    assert_eq!(service.oneshot(vec![5]).await.unwrap(), [0, u32::MAX]);
}

#[tokio::test]
async fn h70_a_panic_in_a_listener_is_counted_and_harms_nothing() {
    let (listen, heard) = listener();
    let layer = RateLimitLayer::new(Quota::per_hour(100))
        .on_event(|_| panic!("a listener's own fault"))
        .on_event(listen);
    for n in 0..100_u32 {
        let service = layer.layer(Echo);
        let call = tokio::spawn(service.oneshot(n));
        call.await.expect("no panic reaches the caller").unwrap();
    }
    layer
        .layer(Echo)
        .oneshot(1)
        .await
        .expect_err("exactly as many as the quota says");
    assert_eq!(layer.listener_panics(), 201, "one for each event");
    assert_eq!(
        heard.lock().len(),
        201,
        "the other listener heard every one"
    );
}

#[tokio::test]
async fn h70_a_panic_in_a_key_or_cost_function_reaches_the_caller_and_spends_nothing() {
    let layer = RateLimitLayer::keyed(Quota::per_hour(100), |n: &u32| {
        assert_ne!(*n, 1, "a key function's own fault");
        0_u8
    })
    .cost(|n: &u32| {
        assert_ne!(*n, 2, "a cost function's own fault");
        1
    })
    .skip(|n: &u32| {
        assert_ne!(*n, 3, "a predicate's own fault");
        false
    })
    .respond_with(|_: &RateLimited| -> u32 { panic!("a responder's own fault") });
    for n in [1, 2, 3] {
        let call = tokio::spawn(layer.layer(Echo).oneshot(n));
        assert!(call.await.unwrap_err().is_panic());
    }
    for _ in 0..100 {
        let call = tokio::spawn(layer.layer(Echo).oneshot(0));
        call.await.unwrap().expect("all hundred are left");
    }
    for _ in 0..2 {
        let call = tokio::spawn(layer.layer(Echo).oneshot(0));
        assert!(
            call.await.unwrap_err().is_panic(),
            "refused, so the responder is asked"
        );
    }
}

#[tokio::test]
async fn a_listener_may_call_back_into_the_limiter_it_listens_to() {
    let limiter = KeyedRateLimiter::<u8>::new(Quota::per_hour(10));
    let inside = limiter.clone();
    let layer = RateLimitLayer::keyed(limiter.clone(), |_: &u32| 0_u8).on_event(move |_| {
        inside.check(&0).unwrap();
        inside.set_quota(Quota::per_hour(10)).unwrap();
        inside.sweep();
    });
    layer.layer(Echo).oneshot(1).await.unwrap();
    assert_eq!(
        limiter.peek(&0).unwrap().remaining(),
        7,
        "the call and two events"
    );
}
