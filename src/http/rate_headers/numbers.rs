use std::time::Duration;

use crate::rate_limit::{Algorithm, Standing};

/// Where a caller stands with one quota, in the terms of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The most that can be had at once: the burst.
    pub(super) limit: u32,
    /// The time in which an empty quota refills to `limit`.
    pub(super) window: Duration,
    /// What can be had now.
    pub(super) remaining: u32,
    /// Time in which no more than `remaining` can be had.
    pub(super) more: Duration,
    /// Time until `limit` can be had again.
    pub(super) reset: Duration,
}

impl Numbers {
    pub(super) fn of(standing: &Standing) -> Self {
        let quota = standing.quota();
        let (limit, remaining) = (quota.burst_size(), standing.remaining());
        let reset = standing.reset_after();
        let (window, more) = if quota.algorithm() == Algorithm::Gcra {
            let refill = |calls| refill(quota.period(), quota.limit(), calls);
            // All that is missing comes back at an even pace, and the last of it at `reset`.
            let after_the_next = limit.saturating_sub(remaining).saturating_sub(1);
            (refill(limit), reset.saturating_sub(refill(after_the_next)))
        } else {
            (quota.period(), reset)
        };
        Self {
            limit,
            window,
            remaining,
            more,
            reset,
        }
    }
}

/// The time in which `calls` are earned, rounded down.
fn refill(period: Duration, limit: u32, calls: u32) -> Duration {
    let nanos = period.as_nanos() * u128::from(calls) / u128::from(limit);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Whole seconds, rounded up; unlike a wait, 0 is a fair answer.
pub(super) fn whole(time: Duration) -> u64 {
    let up = u64::from(time.subsec_nanos() > 0);
    time.as_secs().saturating_add(up)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Clock;
    use crate::rate_limit::{Quota, RateLimiter};

    fn limiter(quota: Quota) -> (RateLimiter, crate::clock::ManualClock) {
        let clock = Clock::manual();
        let limiter = RateLimiter::builder(quota).clock(clock.clone()).build();
        (limiter.expect("a valid quota"), clock)
    }

    #[test]
    fn a_quota_that_refills_evenly_says_when_the_next_call_comes_back() {
        let quota = Quota::per_second(10).burst(20);
        let (limiter, clock) = limiter(quota);
        limiter.check_n(4).expect("within the burst");
        clock.advance(Duration::from_millis(30));
        let allowed = limiter.check().expect("within the burst");
        assert_eq!(
            Numbers::of(&allowed.standings()[0]),
            Numbers {
                limit: 20,
                window: Duration::from_secs(2),
                remaining: 15,
                more: Duration::from_millis(70),
                reset: Duration::from_millis(470),
            }
        );
    }

    #[test]
    fn a_fixed_window_says_when_it_ends() {
        let (limiter, clock) = limiter(Quota::per_minute(5).fixed_window());
        limiter.check().expect("the first");
        clock.advance(Duration::from_secs(20));
        let allowed = limiter.check().expect("the second");
        let left = Duration::from_secs(40);
        assert_eq!(
            Numbers::of(&allowed.standings()[0]),
            Numbers {
                limit: 5,
                window: Duration::from_secs(60),
                remaining: 3,
                more: left,
                reset: left,
            }
        );
    }

    proptest! {
        #[test]
        fn nothing_more_can_be_had_before_the_time_told(
            limit in 1_u32..50,
            period_ms in 1_u64..5_000,
            burst in 1_u32..50,
            steps in prop::collection::vec((0_u64..400, 1_u32..4), 1..20),
        ) {
            let period = Duration::from_millis(period_ms);
            let (limiter, clock) = limiter(Quota::with_period(limit, period).burst(burst));
            for (millis, cost) in steps {
                clock.advance(Duration::from_millis(millis));
                let Ok(allowed) = limiter.check_n(cost) else { continue };
                let numbers = Numbers::of(&allowed.standings()[0]);
                prop_assert!(numbers.remaining <= numbers.limit);
                prop_assert!(numbers.more <= numbers.reset);
                prop_assert!(numbers.reset <= numbers.window + Duration::from_nanos(1));
                clock.advance(numbers.more.saturating_sub(Duration::from_nanos(2)));
                let early = limiter.peek_n(0).map_or(0, |peeked| peeked.remaining());
                prop_assert!(early <= numbers.remaining, "{early} before the time told");
                clock.advance(Duration::from_nanos(4));
                let due = limiter.peek_n(0).map_or(0, |peeked| peeked.remaining());
                prop_assert!(due > numbers.remaining, "{due} after the time told");
            }
        }
    }
}
