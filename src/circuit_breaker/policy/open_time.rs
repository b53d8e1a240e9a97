use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::circuit_breaker::TransitionReason;
use crate::clock::Nanos;

const MILLION: u64 = 1_000_000;

/// How long the circuit stays open before a probe is due.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OpenTime {
    Growing(Growing),
    Function(OpenTimeFn),
}

/// `initial`, times `factor` for each failed recovery, at most `cap`, give or take `jitter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growing {
    pub(super) initial: Duration,
    /// Millionths.
    pub(super) factor: u64,
    pub(super) cap: Duration,
    /// Millionths.
    pub(super) jitter: u64,
}

impl Growing {
    pub(super) fn initial(&self) -> Duration {
        self.initial
    }

    /// Whether the longest open time, jitter and all, is one that ends.
    pub(super) fn ends(&self) -> bool {
        let longest = Nanos::saturating(self.cap).as_u64();
        let spread = self.spread(longest);
        longest
            .checked_add(spread)
            .is_some_and(|end| end < u64::MAX)
    }

    /// The open time before jitter that follows one of `last` (`None`: the first).
    pub(crate) fn next(&self, last: Option<Duration>) -> Duration {
        let Some(last) = last else {
            return self.initial;
        };
        let nanos = u128::from(Nanos::saturating(last).as_u64());
        let grown = nanos * u128::from(self.factor) / u128::from(MILLION);
        let grown = u64::try_from(grown).map_or(Duration::MAX, Duration::from_nanos);
        // The policy may have been changed since `last`, so it may lie outside of both bounds.
        grown.clamp(self.initial, self.cap)
    }

    /// `base` moved by a share of at most `jitter` either way, drawn from `seed` alone: asking
    /// twice gives the same answer, so a reader can tell what a transition will do.
    pub(crate) fn jittered(&self, base: Duration, seed: u64) -> Duration {
        let nanos = Nanos::saturating(base).as_u64();
        if self.jitter == 0 || nanos == u64::MAX {
            return base;
        }
        let spread = self.spread(nanos);
        let drawn = fastrand::Rng::with_seed(seed).u64(0..=spread.saturating_mul(2));
        Duration::from_nanos((nanos - spread).saturating_add(drawn))
    }

    /// The most that jitter moves `nanos`; below it, as jitter is below one.
    fn spread(&self, nanos: u64) -> u64 {
        (u128::from(nanos) * u128::from(self.jitter) / u128::from(MILLION)) as u64
    }
}

/// The user's own open time; equal to its clones only.
#[derive(Clone)]
pub(crate) struct OpenTimeFn(Arc<dyn Fn(u32, TransitionReason) -> Duration + Send + Sync>);

impl OpenTimeFn {
    pub(super) fn new(
        f: impl Fn(u32, TransitionReason) -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(f))
    }

    pub(crate) fn call(&self, trips: u32, reason: TransitionReason) -> Duration {
        (self.0)(trips, reason)
    }
}

impl PartialEq for OpenTimeFn {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for OpenTimeFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fn")
    }
}
