use super::key::Key;
use crate::rate_limit::Quota;

/// What a key function for
/// [`keyed_with`](crate::rate_limit::RateLimitLayer::keyed_with) chooses for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyChoice<K> {
    /// Limited by this key, under the limiter's quota.
    Limit(K),
    /// Limited by this key, under a quota of its own, which counts by the limiter's algorithm.
    LimitBy(K, Quota),
    /// Passes, unlimited and uncounted.
    NotLimited,
    /// Refused, for want of a key: [`NoKey`](crate::rate_limit::RateLimitedReason::NoKey).
    Refuse,
}

/// What a key function may return: a [`KeyChoice`], or an `Option` of key and own quota, where
/// `None` is not limited.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not choose a key and its quota",
    label = "a `keyed_with` function cannot return this",
    note = "return `Option<(K, Option<Quota>)>`, where `None` is not limited, or `KeyChoice<K>`",
    note = "a function that only returns a key belongs in `keyed`, one that borrows it in `keyed_ref`"
)]
pub trait IntoKeyChoice {
    /// The key.
    type Key: Key;

    /// Makes the choice.
    fn into_key_choice(self) -> KeyChoice<Self::Key>;
}

impl<K: Key> IntoKeyChoice for KeyChoice<K> {
    type Key = K;

    fn into_key_choice(self) -> Self {
        self
    }
}

impl<K: Key> IntoKeyChoice for Option<(K, Option<Quota>)> {
    type Key = K;

    fn into_key_choice(self) -> KeyChoice<K> {
        match self {
            Some((key, Some(own))) => KeyChoice::LimitBy(key, own),
            Some((key, None)) => KeyChoice::Limit(key),
            None => KeyChoice::NotLimited,
        }
    }
}
