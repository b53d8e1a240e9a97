use std::time::Duration;

/// Where a caller stands with one quota, as headers tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct Standing {
    /// The most that can be had at once: the burst.
    pub(in crate::http) limit: u32,
    /// The time in which an empty quota refills to `limit`.
    pub(in crate::http) window: Duration,
    /// What can be had now.
    pub(in crate::http) remaining: u32,
    /// Time until more than `remaining` can be had.
    pub(in crate::http) more: Duration,
    /// Time until `limit` can be had again.
    pub(in crate::http) reset: Duration,
}

/// Whole seconds, rounded up; unlike a wait, 0 is a fair answer.
pub(in crate::http) fn whole(time: Duration) -> u64 {
    let up = u64::from(time.subsec_nanos() > 0);
    time.as_secs().saturating_add(up)
}
