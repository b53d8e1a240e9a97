//! Several quotas for each key, as one decision.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tower_sluice::clock::{Clock, ManualClock};
use tower_sluice::rate_limit::{
    Algorithm, Allowed, KeyedRateLimiter, Quota, RateLimited, RateLimitedReason, RateLimiter,
};

const SECOND: Duration = Duration::from_secs(1);

fn keyed(quotas: &[Quota], time: &ManualClock) -> KeyedRateLimiter<u64> {
    let builder = KeyedRateLimiter::builder(quotas[0]).clock(time);
    let more = quotas[1..].iter();
    let builder = more.fold(builder, |builder, quota| builder.quota(*quota));
    builder.build().unwrap()
}

fn unkeyed(quotas: &[Quota], time: &ManualClock) -> RateLimiter {
    let builder = RateLimiter::builder(quotas[0]).clock(time);
    let more = quotas[1..].iter();
    let builder = more.fold(builder, |builder, quota| builder.quota(*quota));
    builder.build().unwrap()
}

fn quota() -> impl Strategy<Value = Quota> {
    let gcra = (1..8_u32, 1..20_u32, 1..8_u32).prop_map(|(limit, seconds, burst)| {
        Quota::with_period(limit, seconds * SECOND).burst(burst)
    });
    let window = (1..8_u32, 1..20_u32)
        .prop_map(|(limit, seconds)| Quota::with_period(limit, seconds * SECOND));
    prop_oneof![
        2 => gcra,
        1 => window.clone().prop_map(Quota::fixed_window),
        1 => window.prop_map(Quota::sliding_window),
    ]
}

/// As many as fit: at most eight words, two for a window.
fn quotas() -> impl Strategy<Value = Vec<Quota>> {
    proptest::collection::vec(quota(), 1..5)
}

/// What a caller sees of a decision.
fn seen(decided: &Result<Allowed, RateLimited>) -> String {
    match decided {
        Ok(allowed) => format!("{:?} {:?}", allowed.quota(), allowed.standings()),
        Err(refusal) => format!("{refusal} {refusal:?} {:?}", refusal.standings()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_key_is_decided_as_a_limiter_of_its_own_would(
        quotas in quotas(),
        calls in proptest::collection::vec((0..4_u64, 0..9_u32, 0..6_000_u64), 1..80),
        replaced_at in 0..80_usize,
    ) {
        let time = Clock::manual();
        let clients = keyed(&quotas, &time);
        let mut model = HashMap::new();
        let slower = |quota: &Quota| match quota.algorithm() {
            Algorithm::Gcra => {
                Quota::with_period(quota.limit(), 2 * quota.period()).burst(quota.burst_size())
            }
            _ => *quota,
        };
        let slower: Vec<Quota> = quotas.iter().map(slower).collect();
        for (n, (key, cost, pause)) in calls.into_iter().enumerate() {
            time.advance(Duration::from_millis(pause));
            let own = model.entry(key).or_insert_with(|| unkeyed(&quotas, &time));
            let decided = clients.check_n(&key, cost);
            prop_assert_eq!(seen(&decided), seen(&own.check_n(cost)), "key {}, cost {}", key, cost);
            let peeked = clients.peek(&key);
            prop_assert_eq!(seen(&peeked), seen(&own.peek()), "peek of key {}", key);
            if n == replaced_at {
                clients.set_quotas(&slower).unwrap();
                prop_assert_eq!(clients.quotas(), slower.clone());
                model.values().for_each(|own| own.set_quotas(&slower).unwrap());
                // A key that comes later is under them from the beginning, as the store's are.
                for key in 0..4 {
                    model.entry(key).or_insert_with(|| unkeyed(&slower, &time));
                }
            }
        }
    }
}

#[test]
fn a_call_that_one_quota_refuses_is_charged_to_none() {
    let time = Clock::manual();
    let clients = keyed(
        &[Quota::per_second(10), Quota::per_hour(12).fixed_window()],
        &time,
    );
    clients.check_n(&1, 10).unwrap();
    let refusal = clients.check(&1).unwrap_err();
    assert_eq!(
        refusal.quota(),
        &Quota::per_second(10),
        "the hour has two left"
    );
    assert_eq!(refusal.retry_after(), Some(SECOND / 10));
    time.advance(SECOND);
    clients.check_n(&1, 2).unwrap();
    let refusal = clients.check(&1).unwrap_err();
    assert_eq!(
        refusal.quota().period(),
        3_600 * SECOND,
        "it has the longest wait"
    );
    assert_eq!(refusal.retry_after(), Some(3_599 * SECOND));
    let left: Vec<u32> = refusal
        .standings()
        .iter()
        .map(|one| one.remaining())
        .collect();
    assert_eq!(
        left,
        [8, 0],
        "the refused calls took nothing from the second either"
    );
    clients
        .check_n(&2, 10)
        .expect("another key has all of its own");
}

#[test]
fn a_cost_above_the_burst_of_any_quota_is_refused_for_good() {
    let time = Clock::manual();
    let clients = keyed(
        &[Quota::per_second(10), Quota::per_hour(1_000).burst(3)],
        &time,
    );
    let refusal = clients.check_n(&1, 4).unwrap_err();
    assert_eq!(refusal.reason(), RateLimitedReason::CostAboveBurst);
    assert_eq!(refusal.quota().burst_size(), 3);
    assert_eq!(refusal.retry_after(), None);
    assert!(clients.is_empty(), "it left nothing behind");
}

#[test]
fn threads_that_bring_a_new_key_at_once_get_what_all_its_quotas_admit() {
    for quotas in [
        vec![Quota::per_hour(30), Quota::per_hour(20).fixed_window()],
        vec![
            Quota::per_hour(30),
            Quota::per_hour(25),
            Quota::per_hour(20),
        ],
    ] {
        for round in 0..20 {
            let clients = keyed(&quotas, &Clock::manual());
            let admitted: usize = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|_| scope.spawn(|| (0..10).filter(|_| clients.check(&7).is_ok()).count()))
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .sum()
            });
            assert_eq!(admitted, 20, "round {round}: the tightest decides, exactly");
            let left = clients.peek(&7).unwrap_err();
            assert_eq!(
                left.standings()[0].remaining(),
                10,
                "all or none were charged"
            );
        }
    }
}

#[test]
fn quotas_that_do_not_fit_are_refused_with_their_number() {
    let window = Quota::per_second(1).fixed_window();
    let five = (0..4).fold(KeyedRateLimiter::<u64>::builder(window), |builder, _| {
        builder.quota(window)
    });
    let error = five.build().unwrap_err();
    assert_eq!(error.field(), "quota");
    let log = KeyedRateLimiter::<u64>::builder(window).quota(Quota::per_second(1).sliding_log());
    assert_eq!(log.build().unwrap_err().field(), "algorithm");

    let clients = keyed(&[window, window], &Clock::manual());
    assert_eq!(clients.set_quota(window).unwrap_err().field(), "quota");
    let refusal = clients.check_own(&1, 1, &window).unwrap_err();
    assert_eq!(refusal.reason(), RateLimitedReason::QuotaMismatch);
}

#[test]
fn keys_of_several_quotas_are_let_go_when_all_are_fresh() {
    let time = Clock::manual();
    let clients = keyed(&[Quota::per_second(1), Quota::per_minute(5)], &time);
    clients.check(&1).unwrap();
    time.advance(11 * SECOND);
    assert_eq!(clients.sweep(), 0, "the minute still counts");
    time.advance(SECOND);
    assert_eq!(clients.sweep(), 1);
}

#[test]
fn waiting_calls_of_a_key_wait_for_all_its_quotas() {
    use tokio_test::{assert_pending, assert_ready, task};
    let time = Clock::manual();
    let clients = keyed(
        &[Quota::per_second(1), Quota::per_minute(2).burst(2)],
        &time,
    );
    clients.check(&1).unwrap();
    let mut second = task::spawn(clients.wait(&1, 60 * SECOND));
    let mut third = task::spawn(clients.wait(&1, 60 * SECOND));
    assert_pending!(second.poll());
    assert_pending!(third.poll());
    time.advance(SECOND);
    assert_ready!(second.poll()).unwrap();
    time.advance(28 * SECOND);
    assert_pending!(third.poll());
    time.advance(SECOND);
    let allowed = assert_ready!(third.poll()).unwrap();
    assert_eq!(
        allowed.waited(),
        30 * SECOND,
        "the minute gives one in 30 s"
    );
}

#[tokio::test]
async fn a_layer_takes_several_quotas_from_its_handle() {
    use tower::{Layer, ServiceExt, service_fn};
    use tower_sluice::RateLimitLayer;
    let clients = keyed(
        &[Quota::per_second(2), Quota::per_hour(3)],
        &Clock::manual(),
    );
    let layer = RateLimitLayer::keyed(clients.clone(), |key: &u64| *key);
    let service = layer.layer(service_fn(async |key: u64| Ok::<_, std::io::Error>(key)));
    for _ in 0..2 {
        service.clone().oneshot(1).await.unwrap();
    }
    let refused = service.clone().oneshot(1).await.unwrap_err();
    assert_eq!(refused.refused().unwrap().standings().len(), 2);
    service.clone().oneshot(2).await.unwrap();
}
