use super::RateLimiter;
use super::decide::{Costed, Skipping, sealed};
use crate::clock::Clock;

/// A decider whose clock can still be set. Sealed.
pub trait Retime: sealed::Sealed {
    /// The clock, while nobody else has a handle to what it times.
    #[doc(hidden)]
    fn clock_mut(&mut self) -> Option<&mut Clock>;
}

impl Retime for RateLimiter {
    fn clock_mut(&mut self) -> Option<&mut Clock> {
        self.clock_mut()
    }
}

impl<D: Retime, F> Retime for Costed<D, F> {
    fn clock_mut(&mut self) -> Option<&mut Clock> {
        self.inner.clock_mut()
    }
}

impl<D: Retime, F> Retime for Skipping<D, F> {
    fn clock_mut(&mut self) -> Option<&mut Clock> {
        self.inner.clock_mut()
    }
}
