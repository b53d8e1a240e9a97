use std::fmt;
use std::time::Duration;

use super::Algorithm;
use crate::ConfigError;
use crate::clock::Nanos;

/// The longest a quota may take to fill from empty: what keeps every sum of the pure cores inside
/// 63 bits, the 64th being GCRA's mark of debt.
const LONGEST_FILL: Duration = Duration::from_secs(36 * 365 * 86_400);

const RATE: &str = "from 1 to one per nanosecond of the period";
const PERIOD: &str = "from 1 ns to 36 years (of 365 days)";
const BURST: &str = "1 or more, and no more than refills in 36 years (of 365 days)";
pub(super) const BURST_OF_WINDOW: &str = "left out with a window: its burst is its limit";

/// How many calls in how long, at which burst, counted by which [`Algorithm`]. A small value.
///
/// A quota of `limit` per `period` is by default a [GCRA](Algorithm::Gcra) quota whose burst is
/// its limit: a caller that was idle may make `limit` calls at once, then one each
/// `period / limit`.
///
/// | what | range | default |
/// |---|---|---|
/// | `limit` | 1 to `u32::MAX`, and at most one per nanosecond | |
/// | `period` | 1 ns to 36 years | |
/// | [`burst`](Self::burst) | 1 to `u32::MAX`; refilled within 36 years | `limit` |
///
/// Each short form panics where its `try_` form returns an error, with the same text.
///
/// ```
/// use std::time::Duration;
/// use tower_sluice::rate_limit::Quota;
///
/// let quota = Quota::per_second(100).burst(20);
/// assert_eq!(quota.to_string(), "100 per 1s, burst 20");
/// assert_eq!(quota.interval(), Duration::from_millis(10));
///
/// let error = Quota::try_per_second(1_000_000_001).unwrap_err();
/// assert_eq!(error.allowed(), "from 1 to one per nanosecond of the period");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    /// The period in nanoseconds, which is below 2^60, and above it the algorithm and whether
    /// windows are aligned. Two words in all: every decision carries a copy.
    pub(super) period: u64,
    /// Limit and burst.
    pub(super) sizes: u64,
}

pub(super) const PERIOD_BITS: u32 = 60;
pub(super) const ALIGNED_BIT: u64 = 1 << 63;

impl Quota {
    /// `limit` calls per second.
    ///
    /// # Panics
    ///
    /// Where [`try_per_second`](Self::try_per_second) fails.
    #[track_caller]
    pub fn per_second(limit: u32) -> Self {
        or_panic(Self::try_per_second(limit))
    }

    /// `limit` calls per minute.
    ///
    /// # Panics
    ///
    /// Where [`try_per_minute`](Self::try_per_minute) fails.
    #[track_caller]
    pub fn per_minute(limit: u32) -> Self {
        or_panic(Self::try_per_minute(limit))
    }

    /// `limit` calls per hour.
    ///
    /// # Panics
    ///
    /// Where [`try_per_hour`](Self::try_per_hour) fails.
    #[track_caller]
    pub fn per_hour(limit: u32) -> Self {
        or_panic(Self::try_per_hour(limit))
    }

    /// `limit` calls per `period`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_sluice::rate_limit::Quota;
    ///
    /// let daily = Quota::with_period(10_000, Duration::from_secs(86_400));
    /// assert_eq!(daily.limit(), 10_000);
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_with_period`](Self::try_with_period) fails.
    #[track_caller]
    pub fn with_period(limit: u32, period: Duration) -> Self {
        or_panic(Self::try_with_period(limit, period))
    }

    /// `limit` calls per second, or an error that names the field out of range.
    ///
    /// # Errors
    ///
    /// Where `limit` is 0 or above 1,000,000,000.
    pub fn try_per_second(limit: u32) -> Result<Self, ConfigError> {
        Self::try_with_period(limit, Duration::from_secs(1))
    }

    /// `limit` calls per minute, or an error that names the field out of range.
    ///
    /// # Errors
    ///
    /// Where `limit` is 0.
    pub fn try_per_minute(limit: u32) -> Result<Self, ConfigError> {
        Self::try_with_period(limit, Duration::from_secs(60))
    }

    /// `limit` calls per hour, or an error that names the field out of range.
    ///
    /// # Errors
    ///
    /// Where `limit` is 0.
    pub fn try_per_hour(limit: u32) -> Result<Self, ConfigError> {
        Self::try_with_period(limit, Duration::from_secs(3_600))
    }

    /// `limit` calls per `period`, or an error that names the field out of range.
    ///
    /// # Errors
    ///
    /// Where `limit` is 0 or more than one per nanosecond of `period`, or `period` is 0 or above
    /// 36 years.
    pub fn try_with_period(limit: u32, period: Duration) -> Result<Self, ConfigError> {
        if period.is_zero() || period > LONGEST_FILL {
            return Err(ConfigError::new("period", period, PERIOD));
        }
        let period = Nanos::saturating(period).as_u64();
        if limit == 0 || u64::from(limit) > period {
            return Err(ConfigError::new("limit", limit, RATE));
        }
        Ok(Self { period, sizes: 0 }.with_sizes(limit, limit))
    }

    /// Sets how many calls may be made at once after an idle spell (default: the limit).
    ///
    /// At most `burst + limit × t / period` calls are admitted in any span `t`, so a large burst
    /// lets up to `burst + limit` through in one period; a burst of 1 spaces calls evenly.
    ///
    /// # Panics
    ///
    /// Where [`try_burst`](Self::try_burst) fails.
    #[track_caller]
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        or_panic(self.try_burst(burst))
    }

    /// Sets the burst, or returns an error that names it.
    ///
    /// # Errors
    ///
    /// Where `burst` is 0 or would take more than 36 years to refill, or the quota counts by
    /// window.
    pub fn try_burst(self, burst: u32) -> Result<Self, ConfigError> {
        if self.algorithm() != Algorithm::Gcra {
            return Err(ConfigError::new("burst", burst, BURST_OF_WINDOW));
        }
        let fill = u128::from(burst) * self.period().as_nanos() / u128::from(self.limit());
        if burst == 0 || fill > LONGEST_FILL.as_nanos() {
            return Err(ConfigError::new("burst", burst, BURST));
        }
        Ok(self.with_sizes(self.limit(), burst))
    }

    /// How many calls are admitted per [`period`](Self::period).
    pub fn limit(&self) -> u32 {
        (self.sizes >> 32) as u32
    }

    /// The period that [`limit`](Self::limit) is counted in.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_nanos())
    }

    /// How many calls may be made at once: the highest cost that is ever admitted.
    #[inline]
    pub fn burst_size(&self) -> u32 {
        self.sizes as u32
    }

    /// The time in which one call is earned, `period / limit`, cut to whole nanoseconds.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.period_nanos() / u64::from(self.limit()))
    }

    /// How the calls are counted.
    pub fn algorithm(&self) -> Algorithm {
        const KINDS: [Algorithm; 4] = [
            Algorithm::Gcra,
            Algorithm::FixedWindow,
            Algorithm::SlidingWindow,
            Algorithm::SlidingLog,
        ];
        KINDS[(self.period >> PERIOD_BITS) as usize & 3]
    }

    /// Whether window edges stand at whole periods of the clock.
    pub fn is_aligned(&self) -> bool {
        self.period & ALIGNED_BIT != 0
    }

    #[inline]
    pub(crate) fn period_nanos(&self) -> u64 {
        self.period & ((1 << PERIOD_BITS) - 1)
    }

    fn with_sizes(self, limit: u32, burst: u32) -> Self {
        Self {
            sizes: u64::from(limit) << 32 | u64::from(burst),
            ..self
        }
    }

    /// The words that a live limiter keeps of its quota.
    #[inline]
    pub(crate) fn to_words(self) -> [u64; 2] {
        [self.period, self.sizes]
    }

    /// The quota of those words.
    #[inline]
    pub(crate) fn from_words([period, sizes]: [u64; 2]) -> Self {
        Self { period, sizes }
    }
}

#[track_caller]
pub(super) fn or_panic(quota: Result<Quota, ConfigError>) -> Quota {
    match quota {
        Ok(quota) => quota,
        Err(error) => panic!("{error}"),
    }
}

/// In words: `100 per 1s, burst 20`, or `5 per 60s, fixed window`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} per {:?}", self.limit(), self.period())?;
        match self.algorithm() {
            Algorithm::Gcra => write!(f, ", burst {}", self.burst_size())?,
            window => write!(f, ", {window}")?,
        }
        if self.is_aligned() {
            f.write_str(", aligned")?;
        }
        Ok(())
    }
}

/// As [`Display`](fmt::Display), and the interval: `100 per 1s, burst 20, one every 10ms`.
impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}, one every {:?}", self.interval())
    }
}
