use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use super::builder::CircuitBreakersBuilder;
use super::error::RegistryError;
use super::iter::Iter;
use super::share::OpenShare;
use super::table::{Inserted, Table};
use crate::circuit_breaker::error::{CircuitOpen, CircuitOpenReason};
use crate::circuit_breaker::{CircuitBreaker, CircuitPolicy};
use crate::sync::{AtomicU64, Ordering};

/// Circuit breakers by key, made on first use and bounded in number. Clones are the same registry.
///
/// A breaker made here is the same thing as one made by hand: a handle taken out acts on the state
/// that the registry, its clones and its layers see, and goes on working after the key is removed.
///
/// # When it is full
///
/// A new key takes the place of a breaker that nobody would miss: one that is closed, under no
/// command, with no failing outcome in its window or growth, no call in flight and no handle
/// outside of the registry. Its counted successes are lost. Open, half-open and forced breakers,
/// failing ones and [registered](Self::register) ones stay. Idle keys go before busy ones. At
/// most 16 breakers are looked at per call; if none of them may go,
/// [`WhenFull`](crate::WhenFull) says what the key gets.
///
/// # Panics
///
/// Of a user's, only the key's `Eq` and `Borrow` run under a lock, that of a 64th of the keys:
/// they must not come back to the registry, which would wait for itself. `Hash`, `Clone` and
/// `Drop` of keys, and all functions given to the builder, run under none. A panic of any of them
/// reaches the caller and leaves the registry sound: the call has had its effect or none, but
/// that an idle breaker may have made room.
///
/// # Examples
///
/// ```
/// use tower_sluice::circuit_breaker::{CircuitBreakers, CircuitPolicy};
///
/// let hosts = CircuitBreakers::<String>::builder(CircuitPolicy::default())
///     .max_keys(10_000)
///     .build()?;
/// let api = hosts.get_or_create("api.example.com")?;
/// api.force_open();
/// assert!(hosts.get("api.example.com").unwrap().try_acquire().is_err());
/// assert!(hosts.get_or_create("other.example.com")?.try_acquire().is_ok());
/// assert_eq!(hosts.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CircuitBreakers<K>(pub(super) Arc<Shared<K>>);

pub(super) struct Shared<K> {
    pub(super) table: Table<K, CircuitBreaker>,
    pub(super) settings: CircuitBreakersBuilder<K>,
    pub(super) overflow: OnceLock<CircuitBreaker>,
    pub(super) turned_away: AtomicU64,
    pub(super) listener_panics: AtomicU64,
    pub(super) share: Option<Arc<OpenShare>>,
}

impl<K> CircuitBreakers<K> {
    /// Makes a registry whose breakers follow `policy`, with the defaults of
    /// [`builder`](Self::builder).
    pub fn new(policy: CircuitPolicy) -> Self {
        Self::from_builder(CircuitBreakersBuilder::new(policy))
    }

    /// Starts a registry whose breakers follow `policy` unless told otherwise.
    pub fn builder(policy: CircuitPolicy) -> CircuitBreakersBuilder<K> {
        CircuitBreakersBuilder::new(policy)
    }

    pub(super) fn from_builder(settings: CircuitBreakersBuilder<K>) -> Self {
        let table = Table::new(settings.max_keys);
        let share = settings
            .max_open_share
            .map(|share| Arc::new(OpenShare::new(share, table.places().clone())));
        Self(Arc::new(Shared {
            table,
            settings,
            overflow: OnceLock::new(),
            turned_away: AtomicU64::new(0),
            listener_panics: AtomicU64::new(0),
            share,
        }))
    }

    /// The same registry built anew with what `change` adds; `None` where it has other handles or
    /// breakers, which would not be told.
    pub(in crate::circuit_breaker) fn rebuilt(
        self,
        change: impl FnOnce(CircuitBreakersBuilder<K>) -> CircuitBreakersBuilder<K>,
    ) -> Option<Self> {
        let shared = Arc::try_unwrap(self.0).ok()?;
        let unused = shared.table.len() == 0;
        unused.then(|| Self::from_builder(change(shared.settings)))
    }

    /// How many keys have a breaker.
    pub fn len(&self) -> usize {
        self.0.table.len()
    }

    /// Whether no key has one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cap on [`len`](Self::len).
    pub fn max_keys(&self) -> usize {
        self.0.table.max_keys()
    }

    /// How many breakers have made room for another key so far.
    pub fn evicted(&self) -> u64 {
        self.0.table.evicted()
    }

    /// How often a key came that could be given no breaker of its own, and was sent to the
    /// overflow breaker or refused.
    pub fn turned_away(&self) -> u64 {
        self.0.turned_away.load(Ordering::Relaxed)
    }

    /// How often a breaker met the conditions of its policy and was kept closed, because
    /// [`max_open_share`](CircuitBreakersBuilder::max_open_share) of the keys were open.
    pub fn trips_withheld(&self) -> u64 {
        self.0.share.as_ref().map_or(0, |share| share.withheld())
    }

    /// Panics of [`on_full`](CircuitBreakersBuilder::on_full) listeners that were caught.
    pub fn listener_panics(&self) -> u64 {
        self.0.listener_panics.load(Ordering::Relaxed)
    }

    /// The breaker shared by the keys that found the registry full, named `overflow`; `None`
    /// before the first such key.
    pub fn overflow(&self) -> Option<&CircuitBreaker> {
        self.0.overflow.get()
    }
}

impl<K: Hash + Eq> CircuitBreakers<K> {
    /// The breaker of `key`, if it has one. Makes none.
    pub fn get<Q>(&self, key: &Q) -> Option<CircuitBreaker>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.0.table.get(key)
    }

    /// Whether `key` has a breaker.
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.get(key).is_some()
    }

    /// Takes the breaker of `key` out, whatever its state. Handles to it go on working, outside of
    /// [`max_open_share`](CircuitBreakersBuilder::max_open_share); the next use of the key makes a
    /// new one.
    pub fn remove<Q>(&self, key: &Q) -> Option<CircuitBreaker>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let removed = self.0.table.remove(key);
        removed.inspect(CircuitBreaker::leave_open_share)
    }

    /// The breaker of `key`, made now if it has none. A known key costs no allocation.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Full`] where the registry is full and set to [`WhenFull::Refuse`](crate::WhenFull::Refuse).
    pub fn get_or_create<Q>(&self, key: &Q) -> Result<CircuitBreaker, RegistryError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.get_or_create_with(key, None)
    }

    /// The same, where a breaker made now follows `policy`. One that is there already keeps its
    /// own; [`CircuitBreaker::set_policy`] changes it.
    ///
    /// # Errors
    ///
    /// As [`get_or_create`](Self::get_or_create).
    pub fn get_or_create_with<Q>(
        &self,
        key: &Q,
        policy: impl Into<Option<CircuitPolicy>>,
    ) -> Result<CircuitBreaker, RegistryError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        match self.get(key) {
            Some(known) => Ok(known),
            None => self.create(key, policy.into()),
        }
    }

    /// The same for a layer, whose refusals are [`CircuitOpen`].
    #[inline]
    pub(in crate::circuit_breaker) fn get_or_refuse<Q>(
        &self,
        key: &Q,
        policy: Option<CircuitPolicy>,
    ) -> Result<CircuitBreaker, CircuitOpen>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.get_or_create_with(key, policy).map_err(|_| {
            CircuitOpen::new(
                self.0.settings.name.clone(),
                CircuitOpenReason::RegistryFull,
                None,
            )
        })
    }

    /// Puts `breaker` in under `key`, for good: it makes room for no other. Where the key has a
    /// breaker of the same policy, that one is kept, for good too, and returned.
    ///
    /// [`max_open_share`](CircuitBreakersBuilder::max_open_share) does not bind `breaker`, which
    /// was made elsewhere.
    ///
    /// # Errors
    ///
    /// [`RegistryError::PolicyMismatch`] where the key has a breaker of another policy, and
    /// [`RegistryError::Full`] where there is no room, whatever [`WhenFull`](crate::WhenFull) says.
    pub fn register(
        &self,
        key: K,
        breaker: CircuitBreaker,
    ) -> Result<CircuitBreaker, RegistryError> {
        let same = |known: &CircuitBreaker| known.policy() == breaker.policy();
        match self.insert(key, same, |_| breaker.clone())? {
            Inserted::Known(known) if !same(&known) => Err(RegistryError::PolicyMismatch),
            Inserted::Known(kept) | Inserted::New(kept) => Ok(kept),
        }
    }

    /// Goes through the keys and their breakers, in no order. Clones keys under no lock and holds
    /// none between two items, so it may be used anywhere, a listener included; keys that come or go meanwhile may be missed.
    pub fn iter(&self) -> Iter<'_, K> {
        Iter::new(self)
    }

    pub(super) fn part(&self, number: usize) -> Option<Vec<(Arc<K>, CircuitBreaker)>> {
        self.0.table.shard_entries(number)
    }
}

impl<'a, K: Hash + Eq + Clone> IntoIterator for &'a CircuitBreakers<K> {
    type Item = (K, CircuitBreaker);
    type IntoIter = Iter<'a, K>;

    fn into_iter(self) -> Iter<'a, K> {
        self.iter()
    }
}

impl<K> From<CircuitPolicy> for CircuitBreakers<K> {
    fn from(policy: CircuitPolicy) -> Self {
        Self::new(policy)
    }
}

impl<K> From<&CircuitBreakers<K>> for CircuitBreakers<K> {
    fn from(breakers: &CircuitBreakers<K>) -> Self {
        breakers.clone()
    }
}

impl<K> Clone for CircuitBreakers<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for CircuitBreakers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreakers")
            .field("len", &self.len())
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}
