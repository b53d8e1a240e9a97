use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::builder::KeyedRateLimiterBuilder;
use super::desks::Desks;
use super::future::KeyedWait;
use super::key::Key;
use super::reserve::KeyedReservation;
use super::shared::{Shared, kind};
use super::store::Store;
use super::wait::Ask;
use crate::clock::{Clock, Nanos};
use crate::rate_limit::{Allowed, Quota, RateLimited, RateLimitedReason};
use crate::sync::{AtomicU64, Mutex};

/// A limit for each key: clients, tenants, hosts, paths.
///
/// Clones share all keys. Works without Tower; a layer is made of it by
/// [`RateLimitLayer::keyed`](crate::rate_limit::RateLimitLayer::keyed).
///
/// # Memory
///
/// At most [`max_keys`](KeyedRateLimiterBuilder::max_keys) keys are kept, each with the state of
/// its quotas (a word for GCRA, two for a window) and nothing else; the key itself is kept as
/// [`Key`] says. With a million keys it comes to
///
/// | key | GCRA | fixed or sliding window |
/// |---|---|---|
/// | 64 bits | 22 to 28 bytes | 33 to 41 bytes |
/// | 128 bits: addresses, strings of any length | 33 to 41 bytes | 44 to 54 bytes |
///
/// by how full the last growth left it; at exactly a million, 23.2, 34.7, 34.7 and 46.3. With
/// [several quotas](KeyedRateLimiterBuilder::quota) a key takes 11 to 14 bytes more for each
/// further word, of which there are 2, 3, 4 or 8. Calls that wait or that
/// [reserve](Self::reserve) take room besides for as long as they do.
///
/// An empty limiter holds 64 bytes for each key up to 2,048 keys and 128 KiB above (1 byte for
/// each 16 keys of `max_keys`, if that is more).
///
/// A key is let go when its state is worth no more than that of a key never seen: its bucket is
/// full, its window has ended. While there is room it is kept ten seconds longer, so that one in
/// regular use is not put back each time. Calls look for such keys in passing, a bounded piece
/// each; there is no task, and memory is given back. So nothing is forgotten that
/// counts: a flood of new keys can neither reset a limit nor make the store grow, and what it
/// costs others is now and then the wait for the lock of a shard: much less than a microsecond, a
/// few where that shard grows.
///
/// New keys beyond the cap share one state, or are refused: [`WhenFull`](crate::WhenFull). Where
/// a new key is lies in a shard that random secrets choose; a shard of 2,048 keys, at least twice
/// as many as fall to it by chance, counts as full too, so that whoever learned the secrets could
/// still not slow others down.
///
/// # Threads
///
/// Finding a key (or making it) and charging it are one step under the lock of its shard: of many
/// threads that bring a new key at once, exactly as many are admitted as its quota says.
///
/// A call of a known key takes one atomic read-modify-write, on the cache line of its shard, and
/// writes besides only the key's own state: threads with different keys do not slow each other
/// down. Nothing of the user's runs under that lock, and no more than some tens of instructions,
/// except where a new key makes the shard grow. A thread that loses its core just then keeps
/// those of the same shard waiting until it runs again; they yield their cores meanwhile.
///
/// # Examples
///
/// ```
/// use std::net::IpAddr;
/// use tower_sluice::rate_limit::{KeyedRateLimiter, Quota};
///
/// let clients = KeyedRateLimiter::<IpAddr>::new(Quota::per_second(10).burst(2));
/// let client: IpAddr = "192.0.2.7".parse().unwrap();
/// assert_eq!(clients.check(&client).unwrap().remaining(), 1);
/// assert!(clients.check(&client).is_ok());
/// assert!(clients.check(&client).unwrap_err().retry_after().is_some());
/// assert!(clients.check(&IpAddr::from([192, 0, 2, 8])).is_ok(), "another has its own");
/// ```
pub struct KeyedRateLimiter<K: Key + ?Sized> {
    pub(super) shared: Arc<Shared<K::Stored>>,
    key: PhantomData<fn(&K)>,
}

impl<K: Key + ?Sized> KeyedRateLimiter<K> {
    /// Makes a limiter of `quota` for each key, with the usual settings.
    ///
    /// # Panics
    ///
    /// Where the quota is a sliding log: [`builder`](Self::builder) returns that error.
    #[track_caller]
    pub fn new(quota: Quota) -> Self {
        match Self::builder(quota).build() {
            Ok(limiter) => limiter,
            Err(error) => panic!("{error}"),
        }
    }

    /// Begins a limiter of `quota` for each key, with settings of its own.
    #[must_use]
    pub fn builder(quota: Quota) -> KeyedRateLimiterBuilder<K> {
        KeyedRateLimiterBuilder::new(quota)
    }

    pub(super) fn from_builder(builder: KeyedRateLimiterBuilder<K>) -> Self {
        let quotas = builder.quotas;
        Self {
            shared: Arc::new(Shared {
                store: Store::new(&quotas, builder.max_keys, builder.when_full),
                desks: Desks::new(builder.max_waiters),
                clock: builder.clock.unwrap_or_default(),
                name: builder.name,
                shadow: builder.shadow,
                held_back: AtomicU64::new(0),
                kinds: quotas.iter().map(kind).collect(),
                quotas: Mutex::new(quotas),
                max_keys: builder.max_keys,
            }),
            key: PhantomData,
        }
    }

    /// Admits one call of `key` now, or refuses it. Takes any borrowed form of the key: `&str` for
    /// `String`.
    ///
    /// # Errors
    ///
    /// [`Spent`](RateLimitedReason::Spent), or [`StoreFull`](RateLimitedReason::StoreFull) for a
    /// new key. A refused call has spent nothing.
    #[inline]
    pub fn check<Q>(&self, key: &Q) -> Result<Allowed, RateLimited>
    where
        K: Borrow<Q>,
        Q: Key<Stored = K::Stored> + ?Sized,
    {
        self.check_n(key, 1)
    }

    /// Admits a call of `key` that costs `cost`, or refuses it.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check), and [`CostAboveBurst`](RateLimitedReason::CostAboveBurst).
    #[inline]
    pub fn check_n<Q>(&self, key: &Q, cost: u32) -> Result<Allowed, RateLimited>
    where
        K: Borrow<Q>,
        Q: Key<Stored = K::Stored> + ?Sized,
    {
        self.check_at(key, None, self.shared.clock.now(), cost)
    }

    /// Admits a call of `key` that costs `cost` under a quota of the key's own, or refuses it.
    ///
    /// The quota is not kept: give it with each call. It must count by the same algorithm as the
    /// limiter's, and a sliding window also in the same period; a limiter of several quotas takes
    /// none. A GCRA quota whose interval is no
    /// whole number of nanoseconds is counted at the next higher one.
    ///
    /// A key that comes under another quota than before stays as long from full as it was, also
    /// where the new one would fill sooner.
    ///
    /// ```
    /// use tower_sluice::rate_limit::{KeyedRateLimiter, Quota};
    ///
    /// let customers = KeyedRateLimiter::<str>::new(Quota::per_minute(1));
    /// let paying = Quota::per_minute(60);
    /// assert_eq!(customers.check_own("acme", 1, &paying).unwrap().remaining(), 59);
    /// assert_eq!(customers.check("free").unwrap().remaining(), 0);
    /// ```
    ///
    /// # Errors
    ///
    /// As [`check_n`](Self::check_n), and
    /// [`QuotaMismatch`](RateLimitedReason::QuotaMismatch).
    pub fn check_own<Q>(&self, key: &Q, cost: u32, own: &Quota) -> Result<Allowed, RateLimited>
    where
        K: Borrow<Q>,
        Q: Key<Stored = K::Stored> + ?Sized,
    {
        self.check_at(key, Some(own), self.shared.clock.now(), cost)
    }

    #[inline(always)] // so that what the caller does not look at is not even made
    pub(super) fn check_at<Q>(
        &self,
        key: &Q,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> Result<Allowed, RateLimited>
    where
        Q: Key<Stored = K::Stored> + ?Sized,
    {
        let shared = &*self.shared;
        if own.is_none()
            && let Some(keys) = shared.store.one_word()
        {
            let key = key.stored(keys.hasher());
            return match keys.decide_plain(key, now, cost) {
                Some(Ok(balance)) => Ok(Allowed::new(balance)),
                Some(Err(shortfall)) if !shared.shadow => {
                    Err(RateLimited::spent(shared.name.clone(), shortfall))
                }
                _ => shared.decide_apart(key, None, now, cost).into(),
            };
        }
        let key = key.stored(shared.store.hasher());
        shared.decide_apart(key, own, now, cost).into()
    }

    /// What a call of `key` would find. Spends nothing, and keeps nothing of a key that is not
    /// there, for which there is always room.
    ///
    /// # Errors
    ///
    /// The [`RateLimited`] that [`check`](Self::check) would refuse with now, also in shadow mode.
    pub fn peek<Q>(&self, key: &Q) -> Result<Allowed, RateLimited>
    where
        K: Borrow<Q>,
        Q: Key<Stored = K::Stored> + ?Sized,
    {
        let key = key.stored(self.shared.store.hasher());
        let now = self.shared.clock.now();
        self.shared.outcome(self.shared.store.peek(key, now))
    }

    /// Waits for the turn of a call of `key`, up to `most`. See [`wait_n`](Self::wait_n).
    pub fn wait<Q>(&self, key: &Q, most: Duration) -> KeyedWait<K::Stored>
    where
        K: Borrow<Q>,
        Q: Key<Stored = K::Stored> + ?Sized,
    {
        self.wait_n(key, 1, most)
    }

    /// Waits for the turn of a call of `key` that costs `cost`, up to `most`.
    ///
    /// First come, first served among the calls that wait for the same key; a call that finds none
    /// waiting and fits is admitted at once. A call whose turn would come after `most` is refused
    /// at once and takes nothing. [`check`](Self::check) does not queue and may get in between;
    /// a waiting call then waits on, but never longer than `most`.
    ///
    /// Each call sleeps towards its own turn, and whoever comes by serves those before it that are
    /// due: one that is held without being polled keeps nobody waiting. New quotas are in force for
    /// those who wait, too: their turns are planned anew, and those that no longer fit are refused.
    /// In shadow mode nothing waits.
    ///
    /// Cancel safe: dropping the future gives up its place, and what it was granted without having
    /// heard of it; those behind it move up.
    ///
    /// Sleeping takes a tokio runtime, except on a manual clock.
    ///
    /// # Errors
    ///
    /// As [`check_n`](Self::check_n), but [`WaitTooLong`](RateLimitedReason::WaitTooLong) and
    /// [`QueueFull`](RateLimitedReason::QueueFull) in place of `Spent`.
    pub fn wait_n<Q>(&self, key: &Q, cost: u32, most: Duration) -> KeyedWait<K::Stored>
    where
        K: Borrow<Q>,
        Q: Key<Stored = K::Stored> + ?Sized,
    {
        self.wait_at(key, None, self.shared.clock.now(), cost, most)
    }

    pub(super) fn wait_at<Q>(
        &self,
        key: &Q,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
        most: Duration,
    ) -> KeyedWait<K::Stored>
    where
        Q: Key<Stored = K::Stored> + ?Sized,
    {
        let ask = Ask {
            key: key.stored(self.shared.store.hasher()),
            own: own.copied(),
            cost,
            since: now,
            deadline: now.plus(most),
        };
        KeyedWait::new(&self.shared, ask)
    }

    /// Admits a call of `key` whose cost is only known when it is over, and charges `estimate` for
    /// now.
    ///
    /// The guard [settles](KeyedReservation::settle) the real cost; dropped, it gives the estimate
    /// back.
    ///
    /// # Errors
    ///
    /// As [`check_n`](Self::check_n) of the estimate.
    pub fn reserve<Q>(
        &self,
        key: &Q,
        estimate: u32,
    ) -> Result<KeyedReservation<K::Stored>, RateLimited>
    where
        K: Borrow<Q>,
        Q: Key<Stored = K::Stored> + ?Sized,
    {
        let key = key.stored(self.shared.store.hasher());
        KeyedReservation::new(&self.shared, key, estimate)
    }

    pub(super) fn clock_mut(&mut self) -> Option<&mut Clock> {
        Arc::get_mut(&mut self.shared).map(|shared| &mut shared.clock)
    }

    /// Refuses a call that has no key; in shadow mode admits it.
    #[cold]
    pub(super) fn without_key(&self, now: Nanos) -> Result<Allowed, RateLimited> {
        let (shared, nobody) = (&self.shared, K::Stored::default());
        shared.held_back(shared.refuse_for(RateLimitedReason::NoKey, nobody, now))
    }

    /// As [`without_key`](Self::without_key), for a call that is willing to wait.
    #[cold]
    pub(super) fn wait_without_key(&self, now: Nanos) -> Result<KeyedWait<K::Stored>, RateLimited> {
        let allowed = self.without_key(now)?;
        let ask = Ask {
            key: K::Stored::default(),
            own: None,
            cost: 0,
            since: now,
            deadline: now,
        };
        Ok(KeyedWait::decided(&self.shared, ask, Ok((allowed, None))))
    }
}

impl<K: Key + ?Sized> Clone for KeyedRateLimiter<K> {
    /// The clone shares all keys.
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            key: PhantomData,
        }
    }
}

impl<K: Key + ?Sized> From<Quota> for KeyedRateLimiter<K> {
    /// As [`KeyedRateLimiter::new`], and panics where it does.
    #[track_caller]
    fn from(quota: Quota) -> Self {
        Self::new(quota)
    }
}

impl<K: Key + ?Sized> fmt::Debug for KeyedRateLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedRateLimiter")
            .field("name", &self.name())
            .field("quotas", &self.quotas())
            .field("keys", &self.len())
            .field("max_keys", &self.shared.max_keys)
            .finish_non_exhaustive()
    }
}
