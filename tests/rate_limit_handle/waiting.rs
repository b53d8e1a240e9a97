//! First come, first served.

use std::task::Poll;
use std::time::Duration;

use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{Acquire, Quota, RateLimitedReason, RateLimiter};

use super::{every_algorithm, manual, millis, secs};

type Waiting = task::Spawn<Acquire>;

fn waiting(limiter: &RateLimiter, cost: u32) -> Waiting {
    let mut waiting = task::spawn(limiter.wait_n(cost, secs(3_600)));
    assert_pending!(waiting.poll());
    waiting
}

#[test]
fn calls_are_served_in_the_order_they_came_over_all_clones() {
    for quota in every_algorithm(1, secs(1)) {
        let (limiter, time) = manual(quota);
        limiter.check().expect("the first");
        let mut calls: Vec<Waiting> = (0..5).map(|_| waiting(&limiter.clone(), 1)).collect();
        assert_eq!(limiter.snapshot().waiting(), 5);
        let mut order = Vec::new();
        for _ in 0..12 {
            time.advance(millis(500));
            for (number, call) in calls.iter_mut().enumerate() {
                if call.is_woken() && !order.contains(&number) && call.poll().is_ready() {
                    order.push(number);
                }
            }
        }
        assert_eq!(order, [0, 1, 2, 3, 4], "{quota}");
        assert_eq!(limiter.snapshot().waiting(), 0);
    }
}

#[test]
fn only_the_call_whose_turn_it_is_and_the_next_are_woken() {
    let (limiter, time) = manual(Quota::per_second(1));
    limiter.check().expect("the first");
    let mut calls: Vec<Waiting> = (0..50).map(|_| waiting(&limiter, 1)).collect();
    time.advance(secs(1));
    let woken = calls.iter().filter(|call| call.is_woken()).count();
    assert_eq!(woken, 1, "the head alone sleeps towards this instant");
    assert_ready_ok!(calls[0].poll());
    let woken = calls[1..].iter().filter(|call| call.is_woken()).count();
    assert_eq!(woken, 1, "and hands over to the next");
    assert!(calls[1].is_woken());
}

#[test]
fn all_whose_turn_has_come_are_served_by_whoever_notices() {
    let (limiter, time) = manual(Quota::per_second(3).fixed_window());
    limiter.check_n(3).expect("the window");
    let mut calls: Vec<Waiting> = (0..4).map(|_| waiting(&limiter, 1)).collect();
    time.advance(secs(1));
    assert_ready_ok!(calls[0].poll());
    assert_eq!(
        limiter.snapshot().waiting(),
        1,
        "three of four have been served"
    );
    assert!(calls[1].is_woken() && calls[2].is_woken(), "and hear of it");
    assert_ready_ok!(calls[2].poll());
    assert_ready_ok!(calls[1].poll());
    assert_pending!(calls[3].poll());
}

#[test]
fn a_newcomer_does_not_overtake_and_a_check_does() {
    let (limiter, time) = manual(Quota::per_second(1));
    limiter.check().expect("the first");
    let mut first = waiting(&limiter, 1);
    time.advance(secs(1));
    // The head's turn has come, though nobody has polled it yet.
    let mut newcomer = waiting(&limiter, 1);
    assert!(first.is_woken());
    assert_ready_ok!(first.poll());
    assert_pending!(newcomer.poll());

    time.advance(millis(999));
    assert!(limiter.check().is_err(), "nothing is there yet");
    time.advance(millis(1));
    assert!(
        limiter.check().is_ok(),
        "a check takes what is there, as documented"
    );
    assert!(newcomer.is_woken());
    assert_pending!(newcomer.poll());
    time.advance(secs(1));
    let allowed = assert_ready_ok!(newcomer.poll());
    assert_eq!(allowed.waited(), secs(2), "it waited once more");
}

#[test]
fn the_time_waited_is_told_and_is_zero_without_a_wait() {
    let (limiter, time) = manual(Quota::per_second(1));
    let mut at_once = task::spawn(limiter.wait(secs(1)));
    time.advance(millis(100));
    assert_eq!(assert_ready_ok!(at_once.poll()).waited(), Duration::ZERO);
    let mut later = waiting(&limiter, 1);
    time.advance(millis(900));
    assert_eq!(assert_ready_ok!(later.poll()).waited(), millis(900));
}

#[test]
fn a_wait_that_cannot_fit_is_refused_at_once_and_says_how_long_it_would_be() {
    let (limiter, _time) = manual(Quota::per_second(1));
    limiter.check().expect("the first");
    let _ahead = [waiting(&limiter, 1), waiting(&limiter, 1)];
    let mut call = task::spawn(limiter.wait(millis(2_999)));
    let refusal = assert_ready_err!(call.poll());
    assert_eq!(refusal.reason(), RateLimitedReason::WaitTooLong);
    assert_eq!(refusal.retry_after(), Some(secs(3)), "behind two others");
    assert_eq!(limiter.snapshot().waiting(), 2, "it took no place");
    let mut call = task::spawn(limiter.wait(secs(3)));
    assert_pending!(call.poll());
}

#[test]
fn no_more_than_max_waiters_wait() {
    let time = Clock::manual();
    let limiter = RateLimiter::builder(Quota::per_second(1))
        .clock(&time)
        .max_waiters(2)
        .build()
        .expect("valid");
    limiter.check().expect("the first");
    let first = waiting(&limiter, 1);
    let _second = waiting(&limiter, 1);
    let mut third = task::spawn(limiter.wait(secs(3_600)));
    let refusal = assert_ready_err!(third.poll());
    assert_eq!(refusal.reason(), RateLimitedReason::QueueFull);
    assert_eq!(
        refusal.retry_after(),
        Some(secs(3)),
        "when its turn would have been"
    );
    drop(first);
    let _third = waiting(&limiter, 1);
}

#[test]
fn a_call_served_without_hearing_of_it_gives_its_turn_back() {
    let (limiter, time) = manual(Quota::per_second(1));
    limiter.check().expect("the first");
    let first = waiting(&limiter, 1);
    let mut second = waiting(&limiter, 1);
    time.advance(secs(1));
    // A newcomer serves the first, which has not been polled since.
    let third = waiting(&limiter, 1);
    assert_eq!(
        limiter.snapshot().waiting(),
        2,
        "the first is no longer waiting"
    );
    drop(first);
    assert!(second.is_woken(), "its turn went to the next");
    assert_ready_ok!(second.poll());
    drop(third);
    assert_eq!(limiter.snapshot().waiting(), 0);
}

#[test]
fn a_call_admitted_at_once_and_never_polled_gives_its_turn_back() {
    for quota in every_algorithm(3, secs(1)) {
        let (limiter, _time) = manual(quota);
        drop(limiter.wait_n(2, secs(1)));
        assert_eq!(limiter.snapshot().remaining(), 3, "{quota}");
    }
}

#[test]
fn two_turns_at_the_deadline_itself_are_served_in_either_order_of_polling() {
    let (limiter, time) = manual(Quota::per_second(2).fixed_window());
    limiter.check_n(2).expect("the window");
    let mut calls: Vec<_> = (0..2).map(|_| task::spawn(limiter.wait(secs(1)))).collect();
    for call in &mut calls {
        assert_pending!(call.poll());
    }
    time.advance(secs(1));
    assert_ready_ok!(calls[1].poll());
    assert_ready_ok!(calls[0].poll());
}

#[test]
fn a_turn_that_came_in_time_counts_however_late_it_is_noticed() {
    let (limiter, time) = manual(Quota::per_second(1));
    limiter.check().expect("the first");
    let mut in_time = task::spawn(limiter.wait(secs(1)));
    assert_pending!(in_time.poll());
    time.advance(millis(1_700));
    assert_ready_ok!(in_time.poll());

    let mut overtaken = task::spawn(limiter.wait(secs(1)));
    assert_pending!(overtaken.poll());
    time.advance(secs(1));
    limiter.check().expect("an outside caller takes its turn");
    let refusal = assert_ready_err!(overtaken.poll());
    assert_eq!(
        refusal.reason(),
        RateLimitedReason::WaitTooLong,
        "the wait is bounded"
    );
}

#[test]
fn waiting_for_ever_is_allowed() {
    let (limiter, time) = manual(Quota::per_second(1));
    limiter.check().expect("the first");
    let mut call = task::spawn(limiter.wait(Duration::MAX));
    assert_pending!(call.poll());
    time.advance(secs(1));
    assert_ready_ok!(call.poll());
}

#[test]
fn several_quotas_are_waited_for_together() {
    let time = Clock::manual();
    let limiter = RateLimiter::builder(Quota::per_second(1).burst(5))
        .quota(Quota::with_period(2, secs(10)).fixed_window())
        .clock(&time)
        .build()
        .expect("valid");
    limiter.check_n(2).expect("the window");
    let mut call = waiting(&limiter, 1);
    time.advance(secs(9));
    assert!(!call.is_woken(), "the bucket alone does not do");
    time.advance(secs(1));
    assert!(call.is_woken());
    assert_ready_ok!(call.poll());
}

#[test]
#[should_panic(expected = "polled after it was ready")]
fn a_finished_wait_takes_no_second_call() {
    let (limiter, _time) = manual(Quota::per_second(5));
    let mut call = task::spawn(limiter.wait(secs(1)));
    let Poll::Ready(_) = call.poll() else { return };
    let _ = call.poll();
}
