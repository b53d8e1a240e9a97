//! The primitives of every shared type: the real ones, or loom's under `--cfg sluice_loom`.
//!
//! Modelled types take their atomics and locks from here and from nowhere else; one taken from
//! `std` would be invisible to loom and its interleavings never tried.

#[cfg(not(sluice_loom))]
mod short;

#[cfg(not(sluice_loom))]
mod real {
    pub(crate) use super::short::ShortMutex;
    pub(crate) use parking_lot::{Mutex, MutexGuard};
    pub(crate) use std::sync::Arc;
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
}

#[cfg(sluice_loom)]
mod modelled {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Arc, MutexGuard};

    /// A lock is a lock to loom, however its waiters pass the time.
    pub(crate) type ShortMutex<T> = Mutex<T>;

    /// loom's lock with the face of parking_lot's: no poisoning.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }
}

#[cfg(sluice_loom)]
#[allow(unused_imports)] // one list for both builds; not every model needs every primitive
pub(crate) use modelled::*;
#[cfg(not(sluice_loom))]
#[allow(unused_imports)] // as above
pub(crate) use real::*;
