use std::fmt;
use std::time::Duration;

use super::permit::is_plain;
use super::{Admitted, Outcome};

/// The call that a response future carries, until it ends: then it is taken out, so that a future
/// that ended is dropped with one look.
pub(crate) struct InFlight(Option<Admitted>);

impl InFlight {
    #[inline]
    pub(super) fn new(call: Admitted) -> Self {
        Self(Some(call))
    }

    /// Records `outcome`; `retry_after` is what the upstream asked for, if anything.
    #[inline]
    pub(super) fn end(&mut self, outcome: Outcome, retry_after: Option<Duration>) {
        let Some(call) = &mut self.0 else {
            return;
        };
        if is_plain(outcome, retry_after) && call.succeed_at_once().is_some() {
            // Where it is: taken out it would be moved.
            self.0 = None;
        } else if let Some(call) = self.take() {
            call.end(outcome, retry_after);
        }
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Admitted> {
        self.0.take()
    }
}

impl Drop for InFlight {
    #[inline]
    fn drop(&mut self) {
        if let Some(call) = self.take() {
            cancel(call);
        }
    }
}

/// By the permit's own drop.
#[cold]
#[inline(never)]
fn cancel(call: Admitted) {
    drop(call);
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
