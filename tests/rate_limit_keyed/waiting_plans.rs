//! What the turns of waiting calls are reckoned from.

use std::time::Duration;

use tokio_test::{assert_pending, assert_ready, task};
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{KeyedRateLimiter, Quota, RateLimitedReason};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_key_without_a_place_waits_for_the_turn_of_the_state_it_shares() {
    let time = Clock::manual();
    let quota = Quota::per_second(1);
    let clients = KeyedRateLimiter::<str>::builder(quota)
        .max_keys(1)
        .clock(&time)
        .build()
        .unwrap();
    clients.check("placed").unwrap();
    clients.check("shares").unwrap();
    time.advance(SECOND / 2);
    clients.check("placed").unwrap_err();
    let mut waiting = task::spawn(clients.wait("shares", 5 * SECOND));
    // That it returns is a point of its own: it does not look again and again until its time ends.
    assert_pending!(waiting.poll(), "the shared state is spent");
    let refusal = assert_ready!(task::spawn(clients.wait("shares", SECOND)).poll()).unwrap_err();
    assert_eq!(refusal.reason(), RateLimitedReason::WaitTooLong);
    assert_eq!(
        refusal.retry_after(),
        Some(SECOND * 3 / 2),
        "behind the one that waits"
    );
    time.advance(SECOND / 2);
    clients.check("placed").unwrap();
    assert!(waiting.is_woken(), "half a second was left");
    assert_ready!(waiting.poll()).unwrap();
}

#[test]
fn a_key_that_loses_its_place_while_calls_wait_goes_on_to_wait_for_the_shared_state() {
    let time = Clock::manual();
    let clients = KeyedRateLimiter::<str>::builder(Quota::per_second(1))
        .max_keys(1)
        .clock(&time)
        .build()
        .unwrap();
    clients.check("a").unwrap();
    let mut waiting = task::spawn(clients.wait("a", 5 * SECOND));
    assert_pending!(waiting.poll());
    time.advance(SECOND);
    clients.check("takes the place").unwrap();
    clients.check("takes what is shared").unwrap();
    assert_pending!(waiting.poll());
    time.advance(SECOND);
    assert_ready!(waiting.poll()).unwrap();
}

#[test]
fn those_turned_away_by_a_new_quota_delay_nobody_behind_them() {
    for quota in [Quota::per_second(1), Quota::per_second(1).fixed_window()] {
        let time = Clock::manual();
        let clients = KeyedRateLimiter::<str>::builder(quota)
            .clock(&time)
            .build()
            .unwrap();
        clients.check("a").unwrap();
        let [mut first, mut late, mut patient] = [2_000, 2_500, 12_000]
            .map(|most| task::spawn(clients.wait("a", Duration::from_millis(most))));
        for waiting in [&mut first, &mut late, &mut patient] {
            assert_pending!(waiting.poll());
        }
        let slow = Quota::with_period(1, 6 * SECOND);
        let slow = if quota == Quota::per_second(1) {
            slow
        } else {
            slow.fixed_window()
        };
        clients.set_quota(slow).unwrap();
        assert_pending!(first.poll(), "a second is left, as before");
        assert_ready!(late.poll()).unwrap_err();
        assert_pending!(patient.poll(), "its turn is after seven seconds");
        time.advance(SECOND);
        assert_ready!(first.poll()).unwrap();
        time.advance(6 * SECOND);
        assert_ready!(patient.poll()).unwrap();
    }
}
