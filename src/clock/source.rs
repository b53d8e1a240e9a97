use std::fmt;

use tokio::time::Instant;

use super::anchor::Anchor;
use super::{ManualClock, Nanos, Sleep};

/// What a handle reads the time from. Small and cheap to clone; clones share one beginning.
///
/// | clock | reading costs | paused time | sleeping needs |
/// |---|---|---|---|
/// | [`Clock::tokio`] (default) | one `Instant` | obeyed | a tokio runtime |
/// | [`Clock::manual`] | a load | its own | nothing |
/// | `Clock::tsc` (feature `quanta`) | a counter | ignored | a tokio runtime |
///
/// Reading never needs a runtime; only waiting does.
#[derive(Clone)]
pub struct Clock(pub(super) Source);

// The tag as a byte of its own: one folded into a variant's fields takes longer to tell apart than
// the decision that wants the time.
#[derive(Clone)]
#[repr(u8)]
pub(super) enum Source {
    Tokio(Anchor),
    Manual(ManualClock),
    #[cfg(feature = "quanta")]
    Tsc(super::tsc::Tsc),
}

impl Clock {
    /// Follows `tokio::time::Instant`: monotonic, moved by `tokio::time::pause` and `advance`.
    pub fn tokio() -> Self {
        Self(Source::Tokio(Anchor::at(Instant::now())))
    }

    /// Makes a clock that stands still until it is moved, for tests and simulations.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_sluice::clock::{Clock, Nanos};
    ///
    /// let time = Clock::manual();
    /// let clock = Clock::from(&time);
    /// time.advance(Duration::from_secs(60));
    /// assert_eq!(clock.now(), Nanos::from(Duration::from_secs(60)));
    /// ```
    pub fn manual() -> ManualClock {
        ManualClock::new()
    }

    /// Reads the time. Never before [`Nanos::ZERO`], whatever the source does.
    #[inline]
    pub fn now(&self) -> Nanos {
        match &self.0 {
            Source::Tokio(anchor) => anchor.until(Instant::now()),
            Source::Manual(manual) => manual.now(),
            #[cfg(feature = "quanta")]
            Source::Tsc(tsc) => tsc.now(),
        }
    }

    /// Sleeps until the clock reads `deadline` or later.
    pub(crate) fn sleep_until(&self, deadline: Nanos) -> Sleep {
        Sleep::until(self, deadline)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::tokio()
    }
}

impl From<ManualClock> for Clock {
    fn from(manual: ManualClock) -> Self {
        Self(Source::Manual(manual))
    }
}

impl From<&ManualClock> for Clock {
    fn from(manual: &ManualClock) -> Self {
        Self::from(manual.clone())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Source::Tokio(_) => "tokio",
            Source::Manual(_) => "manual",
            #[cfg(feature = "quanta")]
            Source::Tsc(_) => "tsc",
        };
        write!(f, "Clock({kind}, {:?})", self.now())
    }
}
