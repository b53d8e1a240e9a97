use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;

use super::hasher::{Fingerprint, KeyHasher};
use super::stored::StoredKey;
use crate::Name;

/// What may be a key, and in which form a store keeps it.
///
/// | key | stored as | bytes |
/// |---|---|---|
/// | integers to 64 bits, `char`, `bool`, [`Ipv4Addr`] | itself | 8 |
/// | `u128`, `i128`, [`Ipv6Addr`], [`IpAddr`] | itself | 16 |
/// | strings, byte strings, tuples, [`Hashed`] | a keyed 128-bit [`Fingerprint`] | 16 |
///
/// No stored form owns memory, so a key of a megabyte takes the room of a short one and looking
/// one up allocates nothing. An empty string is a key like any other. An [`IpAddr`] that is an
/// IPv4 address mapped into IPv6 is the same key as the IPv4 address, because it is the same
/// client, seen on a socket that serves both.
///
/// # Own key types
///
/// Wrap them in [`Hashed`], or name the stored form:
///
/// ```
/// use tower_sluice::rate_limit::{Fingerprint, Key, KeyHasher, KeyedRateLimiter, Quota};
///
/// struct Tenant { region: u16, name: String }
///
/// impl Key for Tenant {
///     type Stored = Fingerprint;
///     fn stored(&self, hasher: &KeyHasher) -> Fingerprint {
///         hasher.fingerprint(&(self.region, self.name.as_str()))
///     }
/// }
///
/// let tenants = KeyedRateLimiter::<Tenant>::new(Quota::per_minute(1));
/// let north = Tenant { region: 1, name: "north".to_owned() };
/// assert!(tenants.check(&north).is_ok());
/// assert!(tenants.check(&north).is_err());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a rate limit",
    label = "not a key",
    note = "keys are integers, IP addresses, strings, byte strings and tuples of what is `Hash`",
    note = "any other type that is `Hash` becomes one inside `tower_sluice::rate_limit::Hashed(..)`",
    note = "a key function that borrows from the request belongs in `keyed_ref`, one that returns an `Option` in `keyed_with`"
)]
pub trait Key {
    /// The form a store keeps.
    type Stored: StoredKey;

    /// Makes the stored form. Equal keys must give equal forms.
    fn stored(&self, hasher: &KeyHasher) -> Self::Stored;
}

/// Makes a [`Key`] of anything that is `Hash`, by its fingerprint.
///
/// ```
/// use tower_sluice::rate_limit::{Hashed, KeyedRateLimiter, Quota};
///
/// #[derive(Hash)]
/// enum Client { Anonymous, User(u64) }
///
/// let clients = KeyedRateLimiter::<Hashed<Client>>::new(Quota::per_second(1));
/// assert!(clients.check(&Hashed(Client::User(7))).is_ok());
/// assert!(clients.check(&Hashed(Client::Anonymous)).is_ok());
/// assert!(clients.check(&Hashed(Client::User(7))).is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hashed<T>(pub T);

impl<T: Hash> Key for Hashed<T> {
    type Stored = Fingerprint;

    #[inline]
    fn stored(&self, hasher: &KeyHasher) -> Fingerprint {
        hasher.fingerprint(&self.0)
    }
}

macro_rules! word_keys {
    ($($key:ty),*) => {$(
        impl Key for $key {
            type Stored = u64;

            #[inline]
            fn stored(&self, _hasher: &KeyHasher) -> u64 {
                // Sign extension maps no two values of one type onto each other.
                *self as u64
            }
        }
    )*};
}

word_keys!(
    u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, char, bool
);

macro_rules! byte_keys {
    ($($key:ty: $bytes:ident),*) => {$(
        impl Key for $key {
            type Stored = Fingerprint;

            #[inline]
            fn stored(&self, hasher: &KeyHasher) -> Fingerprint {
                hasher.fingerprint_bytes(self.$bytes())
            }
        }
    )*};
}

byte_keys!(str: as_bytes, String: as_bytes, [u8]: as_ref, Vec<u8>: as_ref, Name: as_bytes);

impl<const N: usize> Key for [u8; N] {
    type Stored = Fingerprint;

    #[inline]
    fn stored(&self, hasher: &KeyHasher) -> Fingerprint {
        hasher.fingerprint_bytes(self)
    }
}

macro_rules! tuple_keys {
    ($($part:ident)+) => {
        impl<$($part: Hash),+> Key for ($($part,)+) {
            type Stored = Fingerprint;

            #[inline]
            fn stored(&self, hasher: &KeyHasher) -> Fingerprint {
                hasher.fingerprint(self)
            }
        }
    };
}

tuple_keys!(A);
tuple_keys!(A B);
tuple_keys!(A B C);
tuple_keys!(A B C D);

macro_rules! pointer_keys {
    ($($pointer:ty),*) => {$(
        impl<K: Key + ?Sized> Key for $pointer {
            type Stored = K::Stored;

            #[inline]
            fn stored(&self, hasher: &KeyHasher) -> K::Stored {
                (**self).stored(hasher)
            }
        }
    )*};
}

pointer_keys!(&K, Box<K>, Rc<K>, Arc<K>);

impl Key for u128 {
    type Stored = [u64; 2];

    #[inline]
    fn stored(&self, _hasher: &KeyHasher) -> [u64; 2] {
        [(*self >> 64) as u64, *self as u64]
    }
}

impl Key for i128 {
    type Stored = [u64; 2];

    #[inline]
    fn stored(&self, hasher: &KeyHasher) -> [u64; 2] {
        self.cast_unsigned().stored(hasher)
    }
}

impl Key for Ipv4Addr {
    type Stored = u64;

    #[inline]
    fn stored(&self, _hasher: &KeyHasher) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Key for Ipv6Addr {
    type Stored = [u64; 2];

    #[inline]
    fn stored(&self, hasher: &KeyHasher) -> [u64; 2] {
        self.to_bits().stored(hasher)
    }
}

impl Key for IpAddr {
    type Stored = [u64; 2];

    #[inline]
    fn stored(&self, hasher: &KeyHasher) -> [u64; 2] {
        match self {
            Self::V4(address) => address.to_ipv6_mapped().stored(hasher),
            Self::V6(address) => address.stored(hasher),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hash;

    use super::*;

    fn forms<A, B>(a: &A, b: &B) -> (A::Stored, B::Stored)
    where
        A: Key + ?Sized,
        B: Key + ?Sized,
    {
        let hasher = KeyHasher::random();
        (a.stored(&hasher), b.stored(&hasher))
    }

    #[test]
    fn a_borrowed_form_is_stored_as_its_owner_is() {
        let (a, b) = forms("orders", &"orders".to_owned());
        assert_eq!(a, b, "`&str` finds what `String` stored");
        let (a, b) = forms(&b"orders"[..], &b"orders".to_vec());
        assert_eq!(a, b, "`&[u8]` finds what `Vec<u8>` stored");
        let (a, b) = forms(&Arc::<str>::from("orders"), "orders");
        assert_eq!(a, b, "a pointer is the key it points to");
    }

    #[test]
    fn different_keys_are_stored_differently() {
        let (a, b) = forms(&("ab", "c"), &("a", "bc"));
        assert_ne!(a, b, "where a part of a tuple ends is part of the key");
        let (a, b) = forms("", "\0");
        assert_ne!(a, b, "an empty string is a key of its own");
        let (a, b) = forms("Orders", "orders");
        assert_ne!(a, b, "case counts");
        let (a, b) = forms(&-1_i8, &1_i8);
        assert_ne!(a, b, "the sign counts");
        let (a, b) = forms(&i128::MIN, &i128::MAX);
        assert_ne!(a, b, "both halves count");
    }

    #[test]
    fn two_stores_make_different_fingerprints_of_one_key() {
        let (one, two) = (KeyHasher::random(), KeyHasher::random());
        assert_ne!(
            "orders".stored(&one),
            "orders".stored(&two),
            "each store draws its own secret"
        );
    }

    #[test]
    fn an_ipv4_client_is_one_key_on_both_kinds_of_socket() {
        let plain: IpAddr = "192.0.2.7".parse().unwrap();
        let mapped: IpAddr = "::ffff:192.0.2.7".parse().unwrap();
        let (a, b) = forms(&plain, &mapped);
        assert_eq!(a, b, "the mapped address is the same client");
        let other: IpAddr = "::192.0.2.7".parse().unwrap();
        let (a, b) = forms(&plain, &other);
        assert_ne!(a, b, "the deprecated compatible form is another address");
    }

    #[test]
    fn a_wrapped_type_is_stored_by_its_hash() {
        #[derive(Hash)]
        struct User(u32);
        let (a, b) = forms(&Hashed(User(1)), &Hashed(User(2)));
        assert_ne!(a, b);
    }
}
