//! Costs known only afterwards, by key.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tower_sluice::clock::{Clock, ManualClock, Nanos};
use tower_sluice::rate_limit::{
    KeyedRateLimiter, Quota, RateLimited, RateLimitedReason, RateLimiter,
};

const SECOND: Duration = Duration::from_secs(1);

fn limiter(quotas: &[Quota], time: &ManualClock) -> KeyedRateLimiter<u64> {
    let builder = KeyedRateLimiter::builder(quotas[0]).clock(time);
    let more = quotas[1..].iter();
    let builder = more.fold(builder, |builder, quota| builder.quota(*quota));
    builder.build().unwrap()
}

fn remaining(clients: &KeyedRateLimiter<u64>, key: u64) -> u32 {
    match clients.peek(&key) {
        Ok(allowed) => allowed.remaining(),
        Err(refusal) => refusal.remaining(),
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Check(u64, u32),
    Reserve(u64, u32),
    /// Which of those open, and at what actual cost.
    Settle(usize, u32),
}

fn step() -> impl Strategy<Value = (Step, u64)> {
    let step = prop_oneof![
        2 => (0..3_u64, 0..6_u32).prop_map(|(key, cost)| Step::Check(key, cost)),
        3 => (0..3_u64, 0..9_u32).prop_map(|(key, cost)| Step::Reserve(key, cost)),
        3 => (0..8_usize, 0..12_u32).prop_map(|(which, cost)| Step::Settle(which, cost)),
    ];
    (step, 0..700_u64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn every_key_is_settled_as_with_a_limiter_of_its_own(
        limits in proptest::collection::vec((1..12_u32, 1..14_u32, 8..20_u32), 1..4),
        steps in proptest::collection::vec(step(), 1..100),
    ) {
        let quotas: Vec<Quota> = limits.into_iter().map(|(limit, seconds, burst)| {
            Quota::with_period(limit, seconds * SECOND).burst(burst)
        }).collect();
        // A debt under one quota is kept in whole nanoseconds, so it is as exact as those are.
        let whole = |quota: &Quota| quota.period().as_nanos().is_multiple_of(quota.limit().into());
        let may_owe = quotas.len() > 1 || whole(&quotas[0]);
        let time = Clock::manual();
        let clients = limiter(&quotas, &time);
        let own = || {
            let builder = RateLimiter::builder(quotas[0]).clock(&time);
            let more = quotas[1..].iter();
            more.fold(builder, |builder, quota| builder.quota(*quota)).build().unwrap()
        };
        let model: HashMap<u64, RateLimiter> = (0..3).map(|key| (key, own())).collect();
        let mut open = Vec::new();
        for (step, pause) in steps {
            time.advance(Duration::from_millis(pause));
            match step {
                Step::Check(key, cost) => {
                    let (ours, theirs) = (clients.check_n(&key, cost), model[&key].check_n(cost));
                    prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "key {}, cost {}", key, cost);
                }
                Step::Reserve(key, cost) => {
                    let (ours, theirs) = (clients.reserve(&key, cost), model[&key].reserve(cost));
                    prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "key {}, estimate {}", key, cost);
                    open.extend(ours.ok().zip(theirs.ok()));
                }
                Step::Settle(which, actual) if !open.is_empty() => {
                    let (ours, theirs) = open.swap_remove(which % open.len());
                    let most = if may_owe { u32::MAX } else { ours.estimate() };
                    let actual = actual.min(most);
                    ours.settle(actual);
                    theirs.settle(actual);
                }
                Step::Settle(..) => {}
            }
            for key in 0..3 {
                let ours = clients.peek(&key).map(|allowed| allowed.remaining());
                let theirs = model[&key].peek().map(|allowed| allowed.remaining());
                let wait = |refusal: RateLimited| refusal.retry_after();
                prop_assert_eq!(ours.map_err(wait), theirs.map_err(wait), "key {}", key);
            }
        }
    }
}

#[test]
fn a_dropped_reservation_leaves_no_trace() {
    for quota in [
        Quota::per_minute(10),
        Quota::with_period(7, 13 * SECOND).burst(10),
        Quota::per_minute(10).fixed_window(),
        Quota::per_minute(10).sliding_window(),
    ] {
        let time = Clock::manual();
        time.advance(SECOND);
        let clients = limiter(&[quota], &time);
        drop(clients.reserve(&1, 7).unwrap());
        assert!(clients.is_empty(), "{quota}: as if it had never come");
        let (a, b) = (
            clients.reserve(&1, 3).unwrap(),
            clients.reserve(&1, 4).unwrap(),
        );
        assert_eq!(remaining(&clients, 1), quota.burst_size() - 7);
        drop(a);
        assert_eq!(remaining(&clients, 1), quota.burst_size() - 4, "{quota}");
        b.settle(1);
        assert_eq!(remaining(&clients, 1), quota.burst_size() - 1, "{quota}");
    }
}

#[test]
fn what_costs_more_than_estimated_is_a_debt_and_its_wait_is_exact() {
    for quota in [
        Quota::per_second(1).burst(10),
        Quota::with_period(7, 13 * SECOND).burst(10),
        Quota::with_period(10, 10 * SECOND).fixed_window(),
    ] {
        let time = Clock::manual();
        time.advance(SECOND);
        let clients = limiter(&[quota], &time);
        clients.reserve(&1, 10).unwrap().settle(25);
        assert_eq!(remaining(&clients, 1), 0);
        assert!(
            clients.check_n(&1, 0).is_err(),
            "{quota}: nothing, while in debt"
        );
        let wait = clients.check(&1).unwrap_err().retry_after().unwrap();
        assert!(wait >= 15 * quota.interval(), "{quota}: {wait:?}");
        assert_eq!(clients.sweep(), 0, "{quota}: a debt is not forgotten");
        time.advance(wait - Duration::from_nanos(1));
        assert!(
            clients.check(&1).is_err(),
            "{quota}: not a nanosecond earlier"
        );
        time.advance(Duration::from_nanos(1));
        clients.check(&1).unwrap();
    }
}

#[test]
fn a_waiting_call_waits_out_the_debt_of_its_key() {
    use tokio_test::{assert_pending, assert_ready, task};
    let time = Clock::manual();
    let clients = limiter(&[Quota::per_second(1).burst(10)], &time);
    clients.reserve(&1, 10).unwrap().settle(25);
    let refusal = assert_ready!(task::spawn(clients.wait(&1, 15 * SECOND)).poll()).unwrap_err();
    assert_eq!(refusal.reason(), RateLimitedReason::WaitTooLong);
    let mut call = task::spawn(clients.wait(&1, 16 * SECOND));
    assert_pending!(call.poll());
    time.advance(16 * SECOND);
    assert_ready!(call.poll()).unwrap();
}

#[test]
fn nothing_comes_back_once_the_entry_has_turned_over() {
    type Turn = fn(&KeyedRateLimiter<u64>, &ManualClock);
    let swept: Turn = |clients, time| {
        time.advance(20 * SECOND);
        assert_eq!(clients.sweep(), 1);
    };
    let reset: Turn = |clients, _| assert!(clients.reset(&1));
    let swept_and_back: Turn = |clients, time| {
        time.advance(20 * SECOND);
        assert_eq!(clients.sweep(), 1);
        time.set(Nanos::from(SECOND));
    };
    for quota in [
        Quota::per_second(1).burst(10),
        Quota::with_period(10, 10 * SECOND).fixed_window(),
        Quota::with_period(10, 10 * SECOND).sliding_window(),
    ] {
        for (name, turn) in [("swept", swept), ("reset", reset), ("back", swept_and_back)] {
            let time = Clock::manual();
            time.advance(SECOND);
            let clients = limiter(&[quota], &time);
            let old = clients.reserve(&1, 9).unwrap();
            turn(&clients, &time);
            clients.check_n(&1, 10).unwrap();
            drop(old);
            let admitted = (0..10).filter(|_| clients.check(&1).is_ok()).count();
            assert_eq!(
                admitted, 0,
                "{quota}, {name}: what the new entry spent stays spent"
            );
        }
    }
}

#[test]
fn nothing_comes_back_once_the_quota_was_replaced() {
    let time = Clock::manual();
    let clients = limiter(&[Quota::per_minute(10)], &time);
    let old = clients.reserve(&1, 10).unwrap();
    clients.set_quota(Quota::per_minute(10)).unwrap();
    drop(old);
    assert_eq!(
        remaining(&clients, 1),
        10,
        "the same quota again changes nothing"
    );
    let old = clients.reserve(&1, 10).unwrap();
    clients.set_quota(Quota::per_minute(20)).unwrap();
    drop(old);
    assert!(clients.check(&1).is_err(), "it was of another quota");
}

#[test]
fn keys_without_a_place_get_nothing_back_from_the_state_they_share() {
    let time = Clock::manual();
    let builder = KeyedRateLimiter::<u64>::builder(Quota::per_minute(10));
    let clients = builder.max_keys(1).clock(&time).build().unwrap();
    clients.check(&1).unwrap();
    drop(clients.reserve(&2, 4).unwrap());
    assert_eq!(clients.check(&3).unwrap().remaining(), 5, "four stay spent");
    clients.reserve(&4, 1).unwrap().settle(100);
    assert!(
        clients.check(&5).is_err(),
        "and more than estimated is charged to it"
    );
}

#[test]
fn what_comes_back_wakes_the_next_waiting_call() {
    use tokio_test::{assert_pending, assert_ready, task};
    let time = Clock::manual();
    let clients = limiter(&[Quota::per_minute(2)], &time);
    let call = clients.reserve(&1, 2).unwrap();
    let mut next = task::spawn(clients.wait(&1, 60 * SECOND));
    assert_pending!(next.poll());
    call.settle(1);
    assert!(next.is_woken());
    assert_ready!(next.poll()).unwrap();
    assert_eq!(clients.waiting(), 0);
}

#[test]
fn threads_that_reserve_and_settle_never_spend_more_than_there_is() {
    for round in 0..20 {
        let clients = limiter(&[Quota::per_hour(100)], &Clock::manual());
        let spent: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4_u32)
                .map(|thread| {
                    let clients = &clients;
                    scope.spawn(move || {
                        let mut spent = 0;
                        for n in 0..50_u32 {
                            if let Ok(call) = clients.reserve(&1, 10) {
                                let actual = (n + thread) % 4;
                                call.settle(actual);
                                spent += actual;
                            }
                            spent += u32::from(n % 8 == 0 && clients.check(&1).is_ok());
                        }
                        spent
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert!(spent <= 100, "round {round}: {spent} spent of 100");
        assert_eq!(
            remaining(&clients, 1),
            100 - spent,
            "round {round}: what is left is the rest"
        );
    }
}
