//! What a refused caller is told.

use std::fmt;
use std::time::Duration;

use crate::Name;
use crate::clock::Nanos;
use crate::reject::{Cause, Refusal, RefusalKind, refusal_sealed};

/// A call refused by an open circuit. It never reached the inner service.
#[derive(Clone, PartialEq, Eq)]
pub struct CircuitOpen {
    name: Name,
    reason: CircuitOpenReason,
    /// A length of time; the end of time where none is known. One word, and no division by a
    /// thousand million before someone asks.
    left: Nanos,
    cause: Cause,
}

/// Why a circuit refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CircuitOpenReason {
    /// It tripped, and its open time is not over.
    Open,
    /// It is half-open and all its probes are out.
    ProbesOut,
    /// An operator forced it open.
    Forced,
    /// A probe is due, but the inner service of this instance was not ready for it.
    NotReady,
    /// It closed a short time ago, and the admitted share is still growing.
    RampingUp,
    /// The key has no breaker yet, and the registry is full and set to refuse such keys.
    RegistryFull,
}

impl CircuitOpen {
    /// `left` is the length of time until a call can be admitted, where it is known.
    #[inline]
    pub(crate) fn new(name: Name, reason: CircuitOpenReason, left: Option<Nanos>) -> Self {
        Self {
            name,
            reason,
            left: left.unwrap_or(Nanos::MAX),
            cause: Cause::default(),
        }
    }

    /// The breaker's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why the call was refused.
    pub fn reason(&self) -> CircuitOpenReason {
        self.reason
    }

    /// The time left, from the moment of refusal, until a call can be admitted. `None` where no
    /// time is known.
    pub fn retry_after(&self) -> Option<Duration> {
        (self.left < Nanos::MAX).then(|| self.left.into())
    }
}

impl refusal_sealed::Sealed for CircuitOpen {}

impl Refusal for CircuitOpen {
    fn name(&self) -> Option<&str> {
        Some(self.name())
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after()
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Unavailable
    }
}

impl fmt::Debug for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitOpen")
            .field("name", &self.name)
            .field("reason", &self.reason)
            .field("retry_after", &self.retry_after())
            .finish()
    }
}

impl fmt::Display for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "circuit {} is open", self.name)?;
        match self.retry_after() {
            Some(wait) => write!(f, ", retry after {wait:?}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CircuitOpen {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source(self)
    }
}
