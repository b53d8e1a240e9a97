use super::decide::{Keyed, KeyedRef, KeyedWith};
use super::{IntoKeyChoice, Key, KeyedRateLimiter};
use crate::rate_limit::RateLimitLayer;
use crate::rate_limit::layer::plain;

impl RateLimitLayer {
    /// A limit for each key that `key` finds in the request; any requests with equal keys share
    /// one. `limiter` is a [`Quota`](crate::rate_limit::Quota), or a [`KeyedRateLimiter`] to choose the cap on
    /// keys or to share it.
    ///
    /// The function runs in the caller's task, before anything is taken. What it may return is
    /// listed on [`Key`]; only a fixed-size form of it is kept.
    ///
    /// ```
    /// # #[cfg(feature = "http")] {
    /// use http::Request;
    /// use tower_sluice::rate_limit::{KeyedRateLimiter, Quota, RateLimitLayer};
    ///
    /// let clients = KeyedRateLimiter::<String>::builder(Quota::per_second(10))
    ///     .max_keys(10_000)
    ///     .build()
    ///     .unwrap();
    /// let layer = RateLimitLayer::keyed(clients.clone(), |request: &Request<()>| {
    ///     request.uri().path().to_owned()
    /// });
    /// # let _ = layer;
    /// # }
    /// ```
    pub fn keyed<Request, K, F>(
        limiter: impl Into<KeyedRateLimiter<K>>,
        key: F,
    ) -> RateLimitLayer<Keyed<K, F>>
    where
        K: Key,
        F: Fn(&Request) -> K,
    {
        plain(Keyed::new(limiter.into(), key))
    }

    /// As [`keyed`](Self::keyed), for a key that is borrowed from the request, which so costs no
    /// allocation.
    ///
    /// ```
    /// # #[cfg(feature = "http")] {
    /// use http::Request;
    /// use tower_sluice::rate_limit::{Quota, RateLimitLayer};
    ///
    /// let layer = RateLimitLayer::keyed_ref(Quota::per_second(10), |request: &Request<()>| {
    ///     request.uri().path()
    /// });
    /// # let _ = layer;
    /// # }
    /// ```
    pub fn keyed_ref<Request, K, F>(
        limiter: impl Into<KeyedRateLimiter<K>>,
        key: F,
    ) -> RateLimitLayer<KeyedRef<K, F>>
    where
        K: Key + ?Sized,
        F: Fn(&Request) -> &K,
    {
        plain(KeyedRef::new(limiter.into(), key))
    }

    /// As [`keyed`](Self::keyed), where the function also chooses: which quota (tiers of
    /// customers), or no limit at all, or a refusal. It returns an `Option` of key and own quota
    /// (`None` is not limited), or a [`KeyChoice`](super::KeyChoice).
    ///
    /// A key's own quota must count by the same algorithm as the limiter's; it comes with each
    /// call and is not stored.
    ///
    /// ```
    /// use tower_sluice::rate_limit::{Quota, RateLimitLayer};
    ///
    /// struct Request { client: u64, paying: bool, internal: bool }
    ///
    /// let layer = RateLimitLayer::keyed_with(Quota::per_second(1), |request: &Request| {
    ///     if request.internal {
    ///         return None;
    ///     }
    ///     let own = request.paying.then(|| Quota::per_second(100));
    ///     Some((request.client, own))
    /// });
    /// # let _ = layer;
    /// ```
    pub fn keyed_with<Request, C, F>(
        limiter: impl Into<KeyedRateLimiter<C::Key>>,
        choose: F,
    ) -> RateLimitLayer<KeyedWith<C::Key, F>>
    where
        C: IntoKeyChoice,
        F: Fn(&Request) -> C,
    {
        plain(KeyedWith::new(limiter.into(), choose))
    }
}
