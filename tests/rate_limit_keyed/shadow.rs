//! A keyed limiter that only watches.

use std::time::Duration;

use tokio_test::{assert_ready, task};
use tower_sluice::clock::{Clock, ManualClock};
use tower_sluice::rate_limit::{
    KeyChoice, KeyedRateLimiter, KeyedRateLimiterBuilder, Quota, RateLimitLayer, RateLimitedReason,
};
use tower_sluice::{Error, WhenFull};

const SECOND: Duration = Duration::from_secs(1);

fn watching(quota: Quota, time: &ManualClock) -> KeyedRateLimiterBuilder<u64> {
    KeyedRateLimiter::builder(quota).clock(time).shadow()
}

#[test]
fn shadow_refuses_nothing_and_counts_what_it_held_back() {
    let time = Clock::manual();
    for quota in [Quota::per_second(2), Quota::per_second(2).fixed_window()] {
        let clients = watching(quota, &time).quota(quota).build().unwrap();
        let held_back = (0..5).filter(|_| clients.check(&1).unwrap().held_back().is_some());
        assert_eq!(
            held_back.count(),
            3,
            "two are admitted, three would not have been"
        );
        assert_eq!(clients.stats().held_back, 3);
        let too_dear = clients.check_n(&2, 3).unwrap();
        let refusal = too_dear.held_back().expect("more than is ever admitted");
        assert_eq!(refusal.reason(), RateLimitedReason::CostAboveBurst);
        assert!(clients.peek(&1).is_err(), "a look still tells the truth");
        time.advance(SECOND);
        assert!(
            clients.check(&1).unwrap().held_back().is_none(),
            "what was held back spent nothing"
        );
    }
}

#[test]
fn shadow_lets_new_keys_pass_a_full_store() {
    let time = Clock::manual();
    let builder = watching(Quota::per_second(1), &time).max_keys(1);
    let clients = builder.when_full(WhenFull::Refuse).build().unwrap();
    clients.check(&1).unwrap();
    let passed = clients.check(&2).unwrap();
    assert_eq!(
        passed.held_back().map(|refusal| refusal.reason()),
        Some(RateLimitedReason::StoreFull)
    );
    assert_eq!((clients.len(), clients.stats().refused_new), (1, 1));
}

#[test]
fn in_shadow_nothing_waits_and_no_reservation_is_refused() {
    let time = Clock::manual();
    let clients = watching(Quota::per_second(1), &time).build().unwrap();
    clients.check(&1).unwrap();
    let allowed = assert_ready!(task::spawn(clients.wait(&1, SECOND)).poll()).unwrap();
    assert!(allowed.held_back().is_some() && allowed.waited().is_zero());
    let call = clients.reserve(&1, 1).unwrap();
    assert!(call.allowed().held_back().is_some());
    call.settle(50);
    time.advance(SECOND);
    assert!(
        clients.check(&1).unwrap().held_back().is_none(),
        "nor charged when it settles"
    );
    assert_eq!(clients.stats().held_back, 2);
}

#[tokio::test]
async fn a_layer_over_a_watching_limiter_passes_every_call() {
    use tower::{Layer, ServiceExt, service_fn};
    let clients = watching(Quota::per_hour(1), &Clock::manual())
        .build()
        .unwrap();
    let layer = RateLimitLayer::keyed_with(clients.clone(), |key: &u64| match *key {
        0 => KeyChoice::Refuse,
        5 => KeyChoice::LimitBy(5, Quota::per_second(1).fixed_window()),
        key => KeyChoice::Limit(key),
    });
    let inner = service_fn(async |key: u64| Ok::<_, std::io::Error>(key));
    let (refusing, waiting) = (layer.clone().layer(inner), layer.wait(SECOND).layer(inner));
    for key in [1, 1, 0, 5] {
        let passed: Result<u64, Error<_, _>> = refusing.clone().oneshot(key).await;
        assert_eq!(passed.unwrap(), key);
        assert_eq!(waiting.clone().oneshot(key).await.unwrap(), key);
    }
    assert_eq!(clients.stats().held_back, 7, "all but the first");
}
