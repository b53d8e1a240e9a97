/// What a bounded store does with a new key while it holds as many keys as it may and none of
/// them can go.
///
/// Keys that have a place are not affected by either: they keep their state. A full store is
/// never silently unlimited, and never forgets a key to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenFull {
    /// All keys without a place share one state: together they get what one key would. The
    /// default.
    #[default]
    Overflow,
    /// A key without a place is refused.
    Refuse,
}
