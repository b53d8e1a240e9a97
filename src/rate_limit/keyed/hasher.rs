use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use siphasher::sip128::{Hasher128, SipHasher13};

/// The secret of one store, from which it makes fingerprints and places.
///
/// Drawn from the operating system's randomness once per store, so that nobody outside can choose
/// keys that share a fingerprint or crowd one place.
pub struct KeyHasher {
    fingerprints: SipHasher13,
    places: u64,
    /// Drawn for this store too, and kept here, where a decision has it at hand.
    seed: SharedSeed,
}

/// A 128-bit keyed hash that stands for a key: SipHash-1-3-128 under the store's own secret.
///
/// Two keys with one fingerprint would share one limit. Among `n` keys in a store the chance that
/// any two do is below `n² / 2¹²⁹`: for a million keys 10⁻²⁷, for a billion 10⁻²¹. An attacker
/// does no better than chance without the secret, which never leaves the process and is not the
/// same in two stores; that is what
/// [SipHash](https://www.aumasson.jp/siphash/siphash.pdf) is built to promise. Of its variants it
/// is the one that the standard library's `HashMap` trusts: no attack on it is known even for
/// those who see the hashes, and nobody sees these.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Fingerprint([u64; 2]);

impl KeyHasher {
    pub(crate) fn random() -> Self {
        // The standard library's only door to the system's randomness: a keyed hash of a constant
        // under a key that it drew there.
        let secret = RandomState::new();
        Self {
            fingerprints: SipHasher13::new_with_keys(secret.hash_one(0_u8), secret.hash_one(1_u8)),
            places: secret.hash_one(2_u8),
            seed: SharedSeed::from_u64(secret.hash_one(3_u8)),
        }
    }

    /// Makes the fingerprint of `key`.
    #[inline]
    pub fn fingerprint<T: Hash + ?Sized>(&self, key: &T) -> Fingerprint {
        let mut hasher = self.fingerprints;
        key.hash(&mut hasher);
        let hash = hasher.finish128();
        Fingerprint([hash.h1, hash.h2])
    }

    /// Makes the fingerprint of a key that is one run of bytes.
    #[inline]
    pub fn fingerprint_bytes(&self, key: &[u8]) -> Fingerprint {
        let hash = self.fingerprints.hash(key);
        Fingerprint([hash.h1, hash.h2])
    }

    /// Spreads words that are stored as they are. Not a fingerprint: it only has to be unknown,
    /// and a shard that is crowded in spite of it is capped (see `store`).
    #[inline]
    pub(super) fn place(&self, words: &[u64]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.places, &self.seed);
        for &word in words {
            hasher.write_u64(word);
        }
        hasher.finish()
    }
}

impl fmt::Debug for KeyHasher {
    // Without the secret: logs are read by more people than memory.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHasher").finish_non_exhaustive()
    }
}

impl Fingerprint {
    pub(super) fn low(self) -> u64 {
        self.0[0]
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0[1], self.0[0])
    }
}
