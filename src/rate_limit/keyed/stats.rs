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
    /// Calls that shadow mode let through although they would have been refused.
    pub held_back: u64,
}
