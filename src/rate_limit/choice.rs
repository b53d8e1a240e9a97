//! The choice of an algorithm.

use super::quota::{ALIGNED_BIT, BURST_OF_WINDOW, PERIOD_BITS, or_panic};
use super::{Algorithm, Quota};
use crate::ConfigError;

/// The most calls a sliding log keeps: 16 bytes each, so 1 MiB when full.
const LONGEST_LOG: u32 = 65_536;

const LOG: &str = "from 1 to 65,536 with a sliding log, which keeps 16 bytes a call";
const ONE_ALGORITHM: &str = "chosen once";
const ALIGNED: &str = "left out: only fixed and sliding windows have edges to align";

impl Quota {
    /// Counts by [fixed window](Algorithm::FixedWindow).
    ///
    /// # Panics
    ///
    /// Where [`try_fixed_window`](Self::try_fixed_window) fails.
    #[track_caller]
    #[must_use]
    pub fn fixed_window(self) -> Self {
        or_panic(self.try_fixed_window())
    }

    /// Counts by fixed window, or returns an error that names what does not fit.
    ///
    /// # Errors
    ///
    /// Where a burst other than the limit, or another algorithm, was chosen before.
    pub fn try_fixed_window(self) -> Result<Self, ConfigError> {
        self.counted_by(Algorithm::FixedWindow)
    }

    /// Counts by [sliding window](Algorithm::SlidingWindow).
    ///
    /// # Panics
    ///
    /// Where [`try_sliding_window`](Self::try_sliding_window) fails.
    #[track_caller]
    #[must_use]
    pub fn sliding_window(self) -> Self {
        or_panic(self.try_sliding_window())
    }

    /// Counts by sliding window, or returns an error that names what does not fit.
    ///
    /// # Errors
    ///
    /// Where a burst other than the limit, or another algorithm, was chosen before.
    pub fn try_sliding_window(self) -> Result<Self, ConfigError> {
        self.counted_by(Algorithm::SlidingWindow)
    }

    /// Counts by [sliding log](Algorithm::SlidingLog).
    ///
    /// # Panics
    ///
    /// Where [`try_sliding_log`](Self::try_sliding_log) fails.
    #[track_caller]
    #[must_use]
    pub fn sliding_log(self) -> Self {
        or_panic(self.try_sliding_log())
    }

    /// Counts by sliding log, or returns an error that names what does not fit.
    ///
    /// # Errors
    ///
    /// Where `limit` is above 65,536 (a log keeps 16 bytes a call, so 1 MiB there), or a burst
    /// other than the limit, or another algorithm, was chosen before.
    pub fn try_sliding_log(self) -> Result<Self, ConfigError> {
        if self.limit() > LONGEST_LOG {
            return Err(ConfigError::new("limit", self.limit(), LOG));
        }
        self.counted_by(Algorithm::SlidingLog)
    }

    /// Puts window edges at whole periods of the clock, instead of at the first call: every key
    /// of a keyed limiter then turns over at the same instant.
    ///
    /// # Panics
    ///
    /// Where [`try_aligned`](Self::try_aligned) fails.
    #[track_caller]
    #[must_use]
    pub fn aligned(self) -> Self {
        or_panic(self.try_aligned())
    }

    /// Puts window edges at whole periods of the clock, or returns an error that names what does
    /// not fit.
    ///
    /// # Errors
    ///
    /// Where the algorithm has no window edges.
    pub fn try_aligned(self) -> Result<Self, ConfigError> {
        match self.algorithm() {
            Algorithm::FixedWindow | Algorithm::SlidingWindow => Ok(Self {
                period: self.period | ALIGNED_BIT,
                ..self
            }),
            algorithm @ (Algorithm::Gcra | Algorithm::SlidingLog) => {
                Err(ConfigError::new("aligned", algorithm, ALIGNED))
            }
        }
    }

    fn counted_by(self, algorithm: Algorithm) -> Result<Self, ConfigError> {
        if self.algorithm() != Algorithm::Gcra && self.algorithm() != algorithm {
            return Err(ConfigError::new("algorithm", algorithm, ONE_ALGORITHM));
        }
        if self.burst_size() != self.limit() {
            return Err(ConfigError::new(
                "burst",
                self.burst_size(),
                BURST_OF_WINDOW,
            ));
        }
        let period = self.period | (algorithm as u64) << PERIOD_BITS;
        Ok(Self { period, ..self })
    }
}
