//! Waiting for the turn of a key.

use std::time::Duration;

use tokio_test::{assert_pending, assert_ready, task};
use tower_sluice::clock::{Clock, ManualClock, Nanos};
use tower_sluice::rate_limit::{KeyedRateLimiter, Quota, RateLimitedReason};

const SECOND: Duration = Duration::from_secs(1);

fn limiter(quota: Quota, time: &ManualClock) -> KeyedRateLimiter<str> {
    KeyedRateLimiter::builder(quota)
        .clock(time)
        .build()
        .unwrap()
}

#[test]
fn waiting_calls_of_a_key_are_served_in_order_and_other_keys_do_not_wait_for_them() {
    let time = Clock::manual();
    let clients = limiter(Quota::per_second(1), &time);
    clients.check("a").unwrap();
    let mut first = task::spawn(clients.wait("a", 10 * SECOND));
    let mut second = task::spawn(clients.wait("a", 10 * SECOND));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    assert_ready!(task::spawn(clients.wait("b", SECOND)).poll()).unwrap();
    time.advance(SECOND);
    assert!(first.is_woken(), "its time has come");
    let allowed = assert_ready!(first.poll()).unwrap();
    assert_eq!(allowed.waited(), SECOND);
    assert!(second.is_woken(), "the next is told it is first");
    assert_pending!(second.poll());
    time.advance(SECOND);
    assert!(second.is_woken());
    assert_eq!(assert_ready!(second.poll()).unwrap().waited(), 2 * SECOND);
    assert_eq!(clients.waiting(), 0);
}

#[test]
fn at_the_end_of_time_a_wait_is_refused() {
    let time = Clock::manual();
    let clients = limiter(Quota::per_second(1), &time);
    clients.check("a").unwrap();
    let mut first = task::spawn(clients.wait("a", Duration::MAX));
    let mut second = task::spawn(clients.wait("a", Duration::MAX));
    assert_pending!(first.poll());
    time.set(Nanos::MAX);
    clients.check("a").unwrap();
    // That it returns is the point: no later instant is left to sleep until.
    assert!(assert_ready!(second.poll()).is_err());
    assert!(assert_ready!(first.poll()).is_err());
}

#[test]
fn a_call_admitted_at_once_and_never_polled_gives_its_turn_back() {
    let quota = Quota::per_second(3);
    for quota in [quota, quota.fixed_window(), quota.sliding_window()] {
        let time = Clock::manual();
        let clients = limiter(quota, &time);
        drop(clients.wait_n("new", 2, SECOND));
        assert!(clients.is_empty(), "{quota}: as if it had never come");

        clients.check("a").unwrap();
        let never_polled = clients.wait_n("a", 2, SECOND);
        let mut next = task::spawn(clients.wait("a", 10 * SECOND));
        assert_pending!(next.poll());
        drop(never_polled);
        assert!(next.is_woken(), "{quota}: its turn went to the next");
        assert_ready!(next.poll()).unwrap();
        assert_eq!(clients.peek("a").unwrap().remaining(), 1, "{quota}");

        let never_polled = clients.wait("a", SECOND);
        time.advance(2 * SECOND);
        clients.check("a").unwrap();
        let left = clients.peek("a").unwrap().remaining();
        drop(never_polled);
        let now_left = clients.peek("a").unwrap().remaining();
        assert_eq!(now_left, left, "{quota}: not after another charge");
    }
}

#[test]
fn h25_a_wait_that_cannot_fit_is_refused_at_once_and_takes_nothing() {
    let time = Clock::manual();
    let clients = limiter(Quota::per_second(1).burst(5), &time);
    clients.check_n("a", 5).unwrap();
    let refusal =
        assert_ready!(task::spawn(clients.wait_n("a", 5, 3 * SECOND)).poll()).unwrap_err();
    assert_eq!(refusal.reason(), RateLimitedReason::WaitTooLong);
    assert_eq!(refusal.retry_after(), Some(5 * SECOND));
    let refusal =
        assert_ready!(task::spawn(clients.wait_n("a", 6, 3 * SECOND)).poll()).unwrap_err();
    assert_eq!(refusal.reason(), RateLimitedReason::CostAboveBurst);
    assert_eq!(refusal.retry_after(), None, "for good");
    let mut small = task::spawn(clients.wait("a", 3 * SECOND));
    assert_pending!(small.poll());
    let refusal =
        assert_ready!(task::spawn(clients.wait_n("a", 6, 3 * SECOND)).poll()).unwrap_err();
    assert_eq!(
        refusal.reason(),
        RateLimitedReason::CostAboveBurst,
        "also behind others"
    );
    time.advance(SECOND);
    assert_ready!(small.poll()).unwrap();
}

#[test]
fn h48_keyed_a_cancelled_waiter_gives_its_place_and_tokens_to_the_next() {
    let time = Clock::manual();
    let clients = limiter(Quota::per_second(2).burst(10), &time);
    clients.check_n("a", 10).unwrap();
    let mut large = task::spawn(clients.wait_n("a", 10, 60 * SECOND));
    let mut small = task::spawn(clients.wait("a", 60 * SECOND));
    assert_pending!(large.poll());
    assert_pending!(small.poll());
    drop(large);
    assert!(small.is_woken(), "it is first now");
    assert_pending!(small.poll());
    time.advance(SECOND / 2);
    assert_ready!(small.poll()).unwrap();

    let many: Vec<_> = (0..1_000)
        .map(|_| clients.wait("a", 1_000 * SECOND))
        .collect();
    assert_eq!(clients.waiting(), 1_000);
    drop(many);
    assert_eq!(clients.waiting(), 0);
    time.advance(SECOND);
    let admitted = (0..10).filter(|_| clients.check("a").is_ok()).count();
    assert_eq!(admitted, 2, "calls go on at the full rate");
}

#[test]
fn h46_keyed_waiting_calls_are_asked_again_when_the_quota_changes() {
    let time = Clock::manual();
    let clients = limiter(Quota::per_minute(1), &time);
    clients.check("a").unwrap();
    let mut call = task::spawn(clients.wait("a", 60 * SECOND));
    assert_pending!(call.poll());
    clients.set_quota(Quota::per_second(50).burst(1)).unwrap();
    assert!(call.is_woken(), "it does not sleep out the old wait");
    assert_pending!(call.poll());
    time.advance(SECOND / 50);
    assert!(call.is_woken());
    assert_ready!(call.poll()).unwrap();
}

#[test]
fn a_call_that_does_not_wait_may_get_in_between_and_the_waiting_one_keeps_to_its_limit() {
    let time = Clock::manual();
    let clients = limiter(Quota::per_second(1), &time);
    clients.check("a").unwrap();
    let mut call = task::spawn(clients.wait("a", SECOND * 5 / 2));
    assert_pending!(call.poll());
    time.advance(SECOND);
    clients.check("a").expect("an unfair caller is first");
    assert_pending!(call.poll());
    time.advance(SECOND);
    clients.check("a").expect("and again");
    assert_pending!(call.poll());
    time.advance(SECOND / 2);
    let refusal = assert_ready!(call.poll()).unwrap_err();
    assert_eq!(
        refusal.reason(),
        RateLimitedReason::WaitTooLong,
        "its turn would be at 3 s"
    );
    assert_eq!(clients.waiting(), 0);
}

#[test]
fn a_call_at_the_head_that_nobody_polls_holds_up_no_other_of_its_key() {
    let time = Clock::manual();
    let clients = limiter(Quota::per_second(1), &time);
    clients.check("a").unwrap();
    let head = clients.wait("a", 60 * SECOND);
    let mut second = task::spawn(clients.wait("a", 60 * SECOND));
    let mut third = task::spawn(clients.wait("a", 60 * SECOND));
    assert_pending!(second.poll());
    assert_pending!(third.poll());
    time.advance(2 * SECOND);
    assert_pending!(second.poll());
    clients
        .check("a")
        .expect_err("the head was served in its place, though it has not heard");
    time.advance(SECOND);
    assert_ready!(second.poll()).unwrap();
    drop(head);
    time.advance(SECOND);
    assert!(third.is_woken());
    assert_ready!(third.poll()).unwrap();
    assert_eq!(clients.waiting(), 0);
}

#[test]
fn what_a_served_call_never_heard_of_goes_to_those_behind_it() {
    let time = Clock::manual();
    let clients = limiter(Quota::per_second(1), &time);
    clients.check("a").unwrap();
    let head = clients.wait("a", 60 * SECOND);
    let mut second = task::spawn(clients.wait("a", 60 * SECOND));
    assert_pending!(second.poll());
    time.advance(SECOND);
    assert_pending!(second.poll());
    drop(head);
    assert!(second.is_woken(), "a second's call has come back");
    assert_ready!(second.poll()).unwrap();
}

#[test]
fn a_queue_without_places_is_refused_as_a_setting() {
    let builder = KeyedRateLimiter::<u32>::builder(Quota::per_second(1));
    let error = builder.max_waiters(0).build().unwrap_err();
    assert_eq!(error.field(), "max_waiters");
}

#[test]
fn no_more_calls_wait_than_may() {
    let time = Clock::manual();
    let clients = KeyedRateLimiter::<u32>::builder(Quota::per_second(1))
        .max_waiters(2)
        .clock(&time)
        .build()
        .unwrap();
    for key in 0..3 {
        clients.check(&key).unwrap();
    }
    let one = clients.wait(&0, 60 * SECOND);
    let _two = clients.wait(&1, 60 * SECOND);
    let refusal = assert_ready!(task::spawn(clients.wait(&2, 60 * SECOND)).poll()).unwrap_err();
    assert_eq!(refusal.reason(), RateLimitedReason::QueueFull);
    drop(one);
    assert_pending!(task::spawn(clients.wait(&2, 60 * SECOND)).poll());
}

#[test]
fn h68_keyed_waiters_pass_in_the_window_they_were_booked_for() {
    let time = Clock::manual();
    let quota = Quota::with_period(3, 10 * SECOND).fixed_window();
    for (most, booked) in [(12, 6), (25, 9)] {
        let clients = limiter(quota, &time);
        let mut calls: Vec<_> = (0..9)
            .map(|_| task::spawn(clients.wait("a", most * SECOND)))
            .collect();
        let mut admitted = Vec::new();
        for second in 0..30 {
            calls.retain_mut(|call| match call.poll() {
                std::task::Poll::Pending => true,
                std::task::Poll::Ready(decided) => {
                    if decided.is_ok() {
                        admitted.push(second);
                    }
                    false
                }
            });
            time.advance(SECOND);
        }
        let expected = [0, 0, 0, 10, 10, 10, 20, 20, 20];
        assert_eq!(admitted, expected[..booked], "willing to wait {most} s");
    }
}

#[tokio::test(start_paused = true)]
async fn h60_keyed_waiters_never_pass_without_a_token() {
    for quota in [
        Quota::per_second(2),
        Quota::per_second(2).fixed_window(),
        Quota::per_second(2).sliding_window(),
    ] {
        let clients = KeyedRateLimiter::<str>::new(quota);
        let start = tokio::time::Instant::now();
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let clients = clients.clone();
            calls.spawn(async move {
                clients
                    .wait("a", 10 * SECOND)
                    .await
                    .map(|_| start.elapsed())
            });
        }
        let mut times: Vec<_> = calls.join_all().await.into_iter().flatten().collect();
        times.sort();
        assert!(times.len() >= 18, "{} of 20 under {quota}", times.len());
        for (n, at) in times.iter().enumerate() {
            let most = match quota.to_string().as_str() {
                "2 per 1s, burst 2" => 2 + (2.0 * at.as_secs_f64()) as usize,
                _ => 2 + 2 * (at.as_secs_f64() as usize + 1),
            };
            assert!(n < most, "{n} admitted by {at:?} under {quota}");
        }
    }
}

#[tokio::test]
async fn h48_keyed_waiters_on_threads_are_all_served_or_gone() {
    let time = Clock::manual();
    let clients = limiter(Quota::per_second(1_000).burst(1), &time);
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|thread| {
                let clients = clients.clone();
                scope.spawn(move || {
                    for n in 0..50 {
                        let mut call = task::spawn(clients.wait("a", 3_600 * SECOND));
                        if call.poll().is_ready() || (n + thread) % 3 == 0 {
                            continue;
                        }
                        while call.poll().is_pending() {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        while callers.iter().any(|caller| !caller.is_finished()) {
            time.advance(Duration::from_millis(1));
            std::thread::yield_now();
        }
    });
    assert_eq!(clients.waiting(), 0, "no place was lost");
    time.advance(SECOND);
    assert!(clients.check("a").is_ok());
}
