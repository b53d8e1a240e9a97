use super::in_flight::InFlight;

/// Records the call as a panicked one if it goes out of scope by unwinding.
///
/// It stands on the stack around the inner service's code and the classifier's. The permit's own
/// `Drop` cannot tell: a future that panicked is dropped later, and one dropped while another
/// unwinds did not panic.
pub(crate) struct OnPanic<'a>(Option<&'a mut InFlight>);

impl<'a> OnPanic<'a> {
    #[inline]
    pub(crate) fn new(call: &'a mut InFlight) -> Self {
        Self(Some(call))
    }

    /// The guarded code went through.
    #[inline]
    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for OnPanic<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(call) = self.0.take().and_then(InFlight::take) {
            call.panicked();
        }
    }
}
