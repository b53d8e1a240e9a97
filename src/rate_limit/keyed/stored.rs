use std::fmt::Debug;
use std::hash::Hash;

use super::hasher::{Fingerprint, KeyHasher};

/// A form of key that a store keeps: `u64`, `[u64; 2]` or [`Fingerprint`]. Sealed.
pub trait StoredKey:
    Copy + Eq + Hash + Default + Debug + Send + Sync + 'static + sealed::Sealed
{
    /// Where the key lies: 64 bits that no caller can choose.
    #[doc(hidden)]
    fn place(self, hasher: &KeyHasher) -> u64;
}

impl StoredKey for u64 {
    #[inline]
    fn place(self, hasher: &KeyHasher) -> u64 {
        hasher.place(&[self])
    }
}

impl StoredKey for [u64; 2] {
    #[inline]
    fn place(self, hasher: &KeyHasher) -> u64 {
        hasher.place(&self)
    }
}

impl StoredKey for Fingerprint {
    #[inline]
    fn place(self, _hasher: &KeyHasher) -> u64 {
        // Already the output of a keyed hash; hashing it again would buy nothing.
        self.low()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for [u64; 2] {}
    impl Sealed for super::Fingerprint {}
}
