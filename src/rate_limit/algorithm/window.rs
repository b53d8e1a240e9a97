use crate::clock::Nanos;
use crate::rate_limit::Quota;

/// The edges of counted windows, and the numbers of their quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edges {
    pub(super) quota: Quota,
    pub(super) period: u64,
    pub(super) limit: u64,
}

impl Edges {
    pub(super) fn new(quota: Quota) -> Self {
        Self {
            quota,
            period: quota.period_nanos(),
            limit: u64::from(quota.limit()),
        }
    }

    /// The time as a plain number. It stands still some periods before its end (584 years), so
    /// that the sums of a window never overflow and the last window never ends.
    pub(super) fn clamp(&self, now: Nanos) -> u64 {
        now.as_u64().min(self.last())
    }

    fn last(&self) -> u64 {
        u64::MAX - 4 * self.period
    }

    /// The instant at which the time is `at`; it never comes where time stands still before.
    pub(super) fn instant(&self, at: u64) -> Nanos {
        if at > self.last() {
            Nanos::MAX
        } else {
            Nanos::new(at)
        }
    }

    /// The end of the window that starts with a call at `now`.
    pub(super) fn end_of_window_from(&self, now: u64) -> u64 {
        let start = if self.quota.is_aligned() {
            now - now % self.period
        } else {
            now
        };
        start + self.period
    }

    /// From `now` to `end`; no longer than a period even where the clock went back.
    pub(super) fn until_end(&self, now: u64, end: u64) -> u64 {
        end.saturating_sub(now).min(self.period)
    }

    /// An instant that must have passed for a window to end at `end`.
    pub(super) fn seen(&self, end: u64) -> Nanos {
        Nanos::new(end.saturating_sub(self.period))
    }
}
