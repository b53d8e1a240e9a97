use super::Tally;
use crate::circuit_breaker::policy::Counts;
use crate::clock::Nanos;

/// Fine enough that a tenth of the window is all that leaves at once, few enough to share two
/// cache lines with their totals.
const BUCKETS: usize = 10;

/// Counts over the last ten buckets of time, the newest of which is filling.
///
/// A bucket holds the events from its edge up to, not including, the next edge; edges are whole
/// multiples of the width since the clock's beginning, so fractions never drift. An event read at
/// an earlier time than the newest bucket counts in the newest: time moves on only.
#[derive(Clone, Debug)]
pub(crate) struct TimeWindow {
    width: u64,
    /// The newest bucket's number, its place, and where it ends.
    tick: u64,
    place: usize,
    ends: u64,
    buckets: [Bucket; BUCKETS],
    total: Counts,
}

/// 32 bits each; a bucket that is full of calls takes no more, which keeps its shares.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    calls: u32,
    failures: u32,
    slow: u32,
}

impl TimeWindow {
    /// Buckets of a tenth of `window`, rounded up to a nanosecond.
    pub(crate) fn new(window: Nanos) -> Self {
        let width = window.as_u64().div_ceil(BUCKETS as u64).max(1);
        Self {
            width,
            tick: 0,
            place: 0,
            ends: width,
            buckets: [Bucket::default(); BUCKETS],
            total: Counts::default(),
        }
    }

    /// The same, with `now` in its newest bucket.
    pub(crate) fn begun_at(window: Nanos, now: Nanos) -> Self {
        let mut begun = Self::new(window);
        begun.roll(begun.tick_at(now));
        begun
    }

    pub(crate) fn width(&self) -> u64 {
        self.width
    }

    /// The number of the bucket that `now` falls in.
    pub(crate) fn tick_at(&self, now: Nanos) -> u64 {
        now.as_u64() / self.width
    }

    /// Whether `now` falls past the newest bucket.
    #[inline]
    pub(crate) fn is_past(&self, now: Nanos) -> bool {
        now.as_u64() >= self.ends
    }

    /// Counts one call in the newest bucket.
    #[inline]
    pub(crate) fn add(&mut self, tally: Tally) {
        let bucket = &mut self.buckets[self.place];
        if bucket.calls == u32::MAX {
            return;
        }
        bucket.calls += 1;
        self.total.calls += 1;
        // Nothing more for the one kind that comes by the million.
        if tally.is_failing() {
            bucket.failures += u32::from(tally.failed);
            bucket.slow += u32::from(tally.slow);
            self.total.failures += u64::from(tally.failed);
            self.total.slow += u64::from(tally.slow);
        }
    }

    /// Makes `tick` the newest bucket, if it is newer, and forgets what is then too old: by whole
    /// steps, at most once round the ring however long nothing came.
    pub(crate) fn roll(&mut self, tick: u64) {
        let steps = tick.saturating_sub(self.tick).min(BUCKETS as u64);
        for step in 1..=steps {
            let oldest = (self.tick.wrapping_add(step) % BUCKETS as u64) as usize;
            let gone = std::mem::take(&mut self.buckets[oldest]);
            self.total.calls -= u64::from(gone.calls);
            self.total.failures -= u64::from(gone.failures);
            self.total.slow -= u64::from(gone.slow);
        }
        if steps > 0 {
            self.tick = tick;
            self.place = (tick % BUCKETS as u64) as usize;
            self.ends = tick.saturating_add(1).saturating_mul(self.width);
        }
    }

    /// What the ten buckets up to `tick`, or to the newest if that is later, hold. Changes
    /// nothing.
    pub(crate) fn total_at(&self, tick: u64) -> Counts {
        if tick <= self.tick {
            return self.total;
        }
        let mut seen = self.clone();
        seen.roll(tick);
        seen.total
    }

    pub(crate) fn clear(&mut self) {
        self.buckets = [Bucket::default(); BUCKETS];
        self.total = Counts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_full_of_calls_takes_no_more_and_so_keeps_its_shares() {
        let mut window = TimeWindow::new(Nanos::new(10));
        window.buckets[0].calls = u32::MAX;
        window.add(Tally {
            failed: true,
            slow: true,
        });
        assert_eq!(window.total_at(0), Counts::default());
        assert_eq!(window.buckets[0].failures, 0);
    }
}
