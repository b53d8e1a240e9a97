/// What a keyed limiter does with a new key while it holds as many keys as it may, none of them
/// fresh.
///
/// Keys that have a place are not affected by either: they keep their counts and their limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenFull {
    /// All keys without a place share one state, under the limiter's quota: together they are
    /// admitted what one key would be. The default.
    #[default]
    Overflow,
    /// A key without a place is refused, for
    /// [`StoreFull`](crate::rate_limit::RateLimitedReason::StoreFull).
    Refuse,
}

/// How many keys a keyed limiter holds, and what has become of others, since it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyedStats {
    /// Keys held now.
    pub keys: usize,
    /// Memory held now, in bytes.
    pub bytes: usize,
    /// Keys let go because their state was worth no more than a fresh one.
    pub evicted: u64,
    /// Calls of new keys that found no place and were refused.
    pub refused_new: u64,
    /// Calls of new keys that found no place and were put on the shared state.
    pub overflowed: u64,
}
