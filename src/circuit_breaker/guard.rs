use super::Admitted;

/// Records the call as a panicked one if it goes out of scope by unwinding.
///
/// It stands on the stack around the inner service's code and the classifier's. The permit's own
/// `Drop` cannot tell: a future that panicked is dropped later, and one dropped while another
/// unwinds did not panic.
pub(super) struct OnPanic<'a>(Option<&'a mut Option<Admitted>>);

impl<'a> OnPanic<'a> {
    #[inline]
    pub(super) fn new(permit: &'a mut Option<Admitted>) -> Self {
        Self(Some(permit))
    }

    /// The guarded code went through.
    #[inline]
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for OnPanic<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(permit) = self.0.take().and_then(Option::take) {
            permit.panicked();
        }
    }
}
