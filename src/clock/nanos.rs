use std::fmt;
use std::time::Duration;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Nanoseconds since the clock's own beginning.
///
/// Sums and differences saturate: they stop at [`Nanos::MAX`] (584 years) and at [`Nanos::ZERO`].
///
/// ```
/// use std::time::Duration;
/// use tower_sluice::clock::Nanos;
///
/// let now = Nanos::from(Duration::from_millis(3));
/// assert_eq!(now.as_u64(), 3_000_000);
/// assert_eq!(Nanos::ZERO.since(now), Duration::ZERO, "a backward reading is no time at all");
/// assert_eq!(Nanos::MAX.plus(Duration::MAX), Nanos::MAX);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// The clock's beginning.
    pub const ZERO: Self = Self(0);
    /// The end of time; what never comes stands here.
    pub const MAX: Self = Self(u64::MAX);

    /// Makes a reading from a plain count of nanoseconds.
    pub const fn new(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The plain count of nanoseconds.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The length of `duration` in nanoseconds, at most [`u64::MAX`].
    #[inline]
    pub const fn saturating(duration: Duration) -> Self {
        // Seconds and nanoseconds apart: `Duration::as_nanos` multiplies in 128 bits, which
        // costs half as much again as reading the clock. One comparison is cheaper than a
        // saturating product and a saturating sum; with 68 years, it is a single instruction.
        let seconds = duration.as_secs();
        if seconds > i32::MAX as u64 {
            return Self::saturating_by_parts(duration);
        }
        Self(seconds * NANOS_PER_SEC + duration.subsec_nanos() as u64)
    }

    #[cold]
    const fn saturating_by_parts(duration: Duration) -> Self {
        let seconds = duration.as_secs().saturating_mul(NANOS_PER_SEC);
        Self(seconds.saturating_add(duration.subsec_nanos() as u64))
    }

    /// This reading moved on by `duration`; stops at [`Nanos::MAX`].
    #[inline]
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(Self::saturating(duration).0))
    }

    /// How long it is from this reading to `deadline`; `None` from `deadline` on. In one word: a
    /// [`Duration`] costs a division.
    #[inline]
    pub(crate) fn left_until(self, deadline: Self) -> Option<Self> {
        (self < deadline).then(|| Self(deadline.0 - self.0))
    }

    /// The time from `earlier` to this reading; zero where `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for Nanos {
    #[inline]
    fn from(since_beginning: Duration) -> Self {
        Self::saturating(since_beginning)
    }
}

impl From<Nanos> for Duration {
    #[inline]
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Duration::from_nanos(self.0), f)
    }
}
