use std::fmt;

use super::Admitted;

/// A call that was let through, and who will judge it.
pub(super) struct InFlight<C> {
    pub(super) permit: Admitted,
    pub(super) classifier: C,
}

impl<C> fmt::Debug for InFlight<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(&self.permit).finish()
    }
}

/// Records the call as a panicked one if it goes out of scope by unwinding.
///
/// It stands on the stack around the inner service's code and the classifier's. The permit's own
/// `Drop` cannot tell: a future that panicked is dropped later, and one dropped while another
/// unwinds did not panic.
pub(super) struct OnPanic<'a, C>(Option<&'a mut Option<InFlight<C>>>);

impl<'a, C> OnPanic<'a, C> {
    #[inline]
    pub(super) fn new(call: &'a mut Option<InFlight<C>>) -> Self {
        Self(Some(call))
    }

    /// The classifier, to be called under the guard too.
    #[inline]
    pub(super) fn classifier(&self) -> &C {
        let call = self.0.as_ref().and_then(|slot| slot.as_ref());
        &call.expect(POLLED_AGAIN).classifier
    }

    /// The guarded code went through; the call goes on.
    #[inline]
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }

    /// The guarded code went through; the call is the caller's to end.
    #[inline]
    pub(super) fn finish(mut self) -> InFlight<C> {
        let call = self.0.take().and_then(Option::take);
        call.expect(POLLED_AGAIN)
    }
}

impl<C> Drop for OnPanic<'_, C> {
    #[inline]
    fn drop(&mut self) {
        if let Some(call) = self.0.take().and_then(Option::take) {
            call.permit.panicked();
        }
    }
}

/// The message of a future that is polled after it completed.
pub(super) const POLLED_AGAIN: &str = "`ResponseFuture` polled after completion";
