use std::hash::{Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

use super::Nanos;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The instant that readings are counted from.
///
/// Deliberately goes by the parts that an instant hands to a hasher, and not by
/// `duration_since`, which costs as much again as reading the clock and is called twice in a
/// breaker's call. No one promises what is hashed, so [`Anchor::at`] tries whether it is seconds
/// and nanoseconds; where it is not, and for spans that do not fit, `duration_since` it is.
#[derive(Clone)]
pub(super) struct Anchor {
    at: Instant,
    parts: Parts,
    /// Spans below so many seconds are told from the parts: all that fit, or none.
    by_parts_below: u64,
}

impl Anchor {
    pub(super) fn at(at: Instant) -> Self {
        let mut anchor = Self {
            at,
            parts: Parts::of(at),
            by_parts_below: u64::MAX / NANOS_PER_SEC,
        };
        if !anchor.tells_time() {
            anchor.by_parts_below = 0;
        }
        anchor
    }

    /// Whether the parts tell of later instants how much later they are.
    fn tells_time(&self) -> bool {
        // One nanosecond and one less than a second: one of them, or neither, ends a second.
        [
            1,
            NANOS_PER_SEC - 1,
            NANOS_PER_SEC,
            3_600 * NANOS_PER_SEC + 7,
        ]
        .iter()
        .all(|&step| {
            let later = self.at.checked_add(Duration::from_nanos(step));
            later.is_some_and(|later| {
                Parts::of(later).nanos < NANOS_PER_SEC && self.until(later) == Nanos::new(step)
            })
        })
    }

    /// The time from here to `now`; none where that is earlier.
    #[inline]
    pub(super) fn until(&self, now: Instant) -> Nanos {
        let now_parts = Parts::of(now);
        // Where `now` is earlier by a second or more this is a huge number.
        let seconds = now_parts.seconds.wrapping_sub(self.parts.seconds);
        if seconds >= self.by_parts_below {
            return self.by_difference(now);
        }
        let nanos = seconds * NANOS_PER_SEC + now_parts.nanos;
        Nanos::new(nanos.saturating_sub(self.parts.nanos))
    }

    #[cold]
    fn by_difference(&self, now: Instant) -> Nanos {
        now.checked_duration_since(self.at)
            .map_or(Nanos::ZERO, Nanos::saturating)
    }
}

/// What an instant hashes, as far as it is a number of seconds and one of nanoseconds.
#[derive(Clone, Copy, Default)]
struct Parts {
    seconds: u64,
    nanos: u64,
}

impl Parts {
    #[inline]
    fn of(instant: Instant) -> Self {
        let mut parts = Self::default();
        instant.hash(&mut parts);
        parts
    }
}

/// The seconds have 64 bits everywhere, signed or not, and the nanoseconds 32.
impl Hasher for Parts {
    #[inline]
    fn write_u64(&mut self, seconds: u64) {
        self.seconds = seconds;
    }

    #[inline]
    fn write_i64(&mut self, seconds: i64) {
        self.seconds = seconds as u64;
    }

    #[inline]
    fn write_u32(&mut self, nanos: u32) {
        self.nanos = u64::from(nanos);
    }

    /// Something else: not taken, and so found out by the trial.
    fn write(&mut self, _bytes: &[u8]) {}

    fn finish(&self) -> u64 {
        self.seconds
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some_time(nanos: u64) -> Instant {
        Instant::now() + Duration::from_nanos(nanos)
    }

    #[test]
    fn this_platform_hashes_seconds_and_nanoseconds() {
        assert!(
            Anchor::at(Instant::now()).by_parts_below > 0,
            "else every reading takes the long way, and the recorded costs are wrong"
        );
    }

    proptest! {
        #[test]
        fn parts_tell_what_the_difference_tells_forward_and_backward(
            first in 0..4 * NANOS_PER_SEC,
            second in prop_oneof![0..4 * NANOS_PER_SEC, any::<u64>().prop_map(|n| n / 4)],
        ) {
            let base = some_time(0);
            let [first, second] = [first, second].map(|nanos| base + Duration::from_nanos(nanos));
            for (from, to) in [(first, second), (second, first), (first, first)] {
                let anchor = Anchor::at(from);
                prop_assert_eq!(anchor.until(to), anchor.by_difference(to));
            }
        }
    }

    #[test]
    fn spans_that_fit_no_word_stop_at_the_end_of_time_and_those_that_just_do_are_exact() {
        let at = some_time(0);
        let anchor = Anchor::at(at);
        let most = Duration::from_nanos(u64::MAX);
        for (span, nanos) in [
            (most, u64::MAX),
            (most - Duration::from_nanos(1), u64::MAX - 1),
            (most + Duration::from_nanos(1), u64::MAX),
            (Duration::from_secs(u64::MAX / NANOS_PER_SEC) * 3, u64::MAX),
        ] {
            let later = at.checked_add(span).expect("an instant so late");
            assert_eq!(anchor.until(later), Nanos::new(nanos), "{span:?}");
        }
    }

    #[test]
    fn an_instant_whose_parts_are_not_understood_is_told_by_difference() {
        let at = some_time(5);
        let mut anchor = Anchor {
            parts: Parts::default(),
            ..Anchor::at(at)
        };
        assert!(
            !anchor.tells_time(),
            "parts that are not its own are found out"
        );
        anchor.by_parts_below = 0;
        assert_eq!(anchor.until(at + Duration::from_nanos(9)), Nanos::new(9));
    }
}
