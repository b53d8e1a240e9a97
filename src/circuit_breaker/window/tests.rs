use std::time::Duration;

use proptest::prelude::*;

use super::{CountWindow, Landed, Mark, Tally, TimeWindow, Windows};
use crate::circuit_breaker::CircuitPolicy;
use crate::circuit_breaker::policy::Counts;
use crate::clock::Nanos;

fn tally() -> impl Strategy<Value = Tally> {
    (any::<bool>(), any::<bool>()).prop_map(|(failed, slow)| Tally { failed, slow })
}

fn sum<'a>(calls: impl IntoIterator<Item = &'a Tally>) -> Counts {
    let mut counts = Counts::default();
    calls.into_iter().for_each(|call| counts.add(*call));
    counts
}

proptest! {
    #[test]
    fn the_ring_holds_the_last_calls_and_nothing_else(
        capacity in 1..100_u32,
        calls in prop::collection::vec(tally(), 0..300),
    ) {
        let mut ring = CountWindow::new(capacity);
        for (at, call) in calls.iter().enumerate() {
            ring.add(*call);
            let first = (at + 1).saturating_sub(capacity as usize);
            prop_assert_eq!(ring.total(), sum(&calls[first..=at]));
        }
        ring.clear();
        calls.iter().for_each(|call| ring.add(*call));
        let first = calls.len().saturating_sub(capacity as usize);
        prop_assert_eq!(ring.total(), sum(&calls[first..]), "as if it were new");
    }

    #[test]
    fn ten_buckets_hold_what_was_counted_in_them_whatever_the_clock_does(
        window in 1..2_000_u64,
        steps in prop::collection::vec((-300..900_i64, tally()), 0..100),
    ) {
        let mut buckets = TimeWindow::new(Nanos::new(window));
        let (mut now, mut newest) = (0_u64, 0);
        let mut calls = Vec::new();
        for (step, call) in steps {
            now = now.saturating_add_signed(step);
            newest = newest.max(now / window.div_ceil(10));
            buckets.roll(buckets.tick_at(Nanos::new(now)));
            buckets.add(call);
            calls.push((newest, call));
            let live = calls.iter().filter(|(tick, _)| tick + 10 > newest);
            prop_assert_eq!(buckets.total_at(newest), sum(live.map(|(_, call)| call)));
        }
        prop_assert_eq!(buckets.total_at(newest + 10), Counts::default(), "idle for all of it");
    }
}

#[test]
fn an_event_on_an_edge_belongs_to_the_bucket_that_begins_there() {
    let mut window = TimeWindow::new(Nanos::new(100));
    window.add(Tally::default());
    assert!(!window.is_past(Nanos::new(9)) && window.is_past(Nanos::new(10)));
    assert_eq!(window.total_at(window.tick_at(Nanos::new(99))).calls, 1);
    assert_eq!(window.total_at(window.tick_at(Nanos::new(100))).calls, 0);
}

#[test]
fn the_end_of_time_is_a_bucket_like_another() {
    let mut window = TimeWindow::new(Nanos::MAX);
    for now in [Nanos::new(1), Nanos::MAX, Nanos::MAX] {
        window.roll(window.tick_at(now));
        window.add(Tally::default());
    }
    assert_eq!(window.total_at(window.tick_at(Nanos::MAX)).calls, 3);
}

fn timed() -> Windows {
    let windows = Windows::new();
    let policy = CircuitPolicy::builder().failure_rate(1.0);
    let policy = policy.window(Duration::from_secs(10)).build().unwrap();
    windows.fit(&policy, true, Some(0));
    windows
}

fn at(seconds: u64) -> Mark {
    Mark {
        epoch: 0,
        tally: Tally::default(),
        ended: Nanos::from(Duration::from_secs(seconds)),
        elapsed: Some(Duration::from_secs(seconds)),
    }
}

#[test]
fn stripes_are_summed_at_the_latest_time_any_of_them_has_seen() {
    let windows = timed();
    assert_eq!(windows.mark_stripe_of(0, at(5)), Landed::Yes);
    assert_eq!(windows.mark_stripe_of(1, at(30)), Landed::Yes);
    for now in [0, 5, 30] {
        let now = Nanos::from(Duration::from_secs(now));
        assert_eq!(windows.counts(now).calls, 1, "the first is long over");
    }
    assert_eq!(windows.last_elapsed(), Some(Duration::from_secs(30)));
}

/// The clock went back between the two: what is counted now is seen now.
#[test]
fn a_stripe_counts_what_ends_before_the_latest_time_of_another_at_that_time() {
    for first in [None, Some(at(5))] {
        let windows = timed();
        first.map(|mark| windows.mark_stripe_of(1, mark));
        windows.mark_stripe_of(0, at(1_000));
        windows.mark_stripe_of(1, at(5));
        windows.mark_stripe_of(1, at(7));
        let now = Nanos::from(Duration::from_secs(7));
        assert_eq!(windows.counts(now).calls, 3, "{first:?} came before");
    }
}

#[test]
fn a_mark_of_another_epoch_lands_nowhere_but_its_time_is_kept() {
    let windows = timed();
    windows.restart(Some(2));
    assert_eq!(windows.mark_stripe_of(0, at(1)), Landed::Late);
    assert_eq!(windows.mark_ring(at(1)), Landed::Late);
    assert_eq!(windows.counts(Nanos::ZERO), Counts::default());
    assert_eq!(windows.last_elapsed(), Some(Duration::from_secs(1)));
}
