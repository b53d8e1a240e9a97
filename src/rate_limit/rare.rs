//! What only few values carry.

/// A box or nothing, in one word, that costs a value without it one comparison to drop: the
/// compiler's own code for a box is a call, made whether there is a box or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rare<T>(Option<Box<T>>);

impl<T> Rare<T> {
    pub(super) const NONE: Self = Self(None);

    pub(super) fn new(value: T) -> Self {
        Self(Some(Box::new(value)))
    }

    #[inline]
    pub(super) fn as_deref(&self) -> Option<&T> {
        self.0.as_deref()
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<Box<T>> {
        self.0.take()
    }
}

impl<T: Default> Rare<T> {
    pub(super) fn get_or_default(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T> From<Option<Box<T>>> for Rare<T> {
    #[inline]
    fn from(boxed: Option<Box<T>>) -> Self {
        Self(boxed)
    }
}

impl<T> Drop for Rare<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(boxed) = self.0.take() {
            drop_apart(boxed);
        }
    }
}

#[cold]
#[inline(never)]
fn drop_apart<T>(boxed: Box<T>) {
    drop(boxed);
}
