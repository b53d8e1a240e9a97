use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::breakers::CircuitBreakers;
use super::error::RegistryError;
use super::table::Inserted;
use crate::circuit_breaker::{CircuitBreaker, CircuitPolicy};
use crate::sync::Ordering;
use crate::{Name, WhenFull};

/// What happens where a key has no breaker yet.
impl<K: Hash + Eq> CircuitBreakers<K> {
    #[cold]
    pub(super) fn create<Q>(
        &self,
        key: &Q,
        policy: Option<CircuitPolicy>,
    ) -> Result<CircuitBreaker, RegistryError>
    where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        match self.insert(
            key.to_owned(),
            |_| false,
            |key| self.make(key, policy.clone()),
        ) {
            Ok(Inserted::New(breaker) | Inserted::Known(breaker)) => Ok(breaker),
            Err(full) => {
                self.turn_away(&key.to_owned());
                match self.0.settings.when_full {
                    WhenFull::Overflow => Ok(self.overflow_or_make().clone()),
                    WhenFull::Refuse => Err(full),
                }
            }
        }
    }

    fn turn_away(&self, key: &K) {
        self.0.turned_away.fetch_add(1, Ordering::Relaxed);
        for listener in &self.0.settings.on_full {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| listener(key))) {
                self.0.listener_panics.fetch_add(1, Ordering::Relaxed);
                // Not dropped: what it holds may panic as it goes.
                std::mem::forget(payload);
            }
        }
    }

    pub(super) fn insert(
        &self,
        key: K,
        stays: impl Fn(&CircuitBreaker) -> bool,
        make: impl Fn(&K) -> CircuitBreaker,
    ) -> Result<Inserted<CircuitBreaker>, RegistryError> {
        let table = &self.0.table;
        let max_keys = table.max_keys();
        table
            .get_or_insert(key, stays, make, is_expendable)
            .ok_or(RegistryError::Full { max_keys })
    }

    fn make(&self, key: &K, policy: Option<CircuitPolicy>) -> CircuitBreaker {
        let settings = &self.0.settings;
        let policy = policy
            .or_else(|| settings.policy_for.as_ref().and_then(|f| f(key)))
            .unwrap_or_else(|| settings.policy.clone());
        let name = match &settings.name_of {
            Some(f) => f(key),
            None => settings.name.clone(),
        };
        let listeners = settings.listeners.iter().map(|make| make(key));
        let breaker = settings.make(name, policy).share(self.0.share.clone());
        listeners
            .fold(breaker, |breaker, listener| {
                breaker.on_event(move |event| listener(event))
            })
            .build()
    }

    fn overflow_or_make(&self) -> &CircuitBreaker {
        let settings = &self.0.settings;
        self.0.overflow.get_or_init(|| {
            let name = Name::from_static("overflow");
            let breaker = settings.make(name, settings.policy.clone());
            let listeners = settings.on_overflow.iter().cloned();
            listeners
                .fold(breaker, |breaker, listener| {
                    breaker.on_event(move |event| listener(event))
                })
                .build()
        })
    }
}

/// Whether nobody would miss it. Asked under the lock of its shard, where a handle can be taken
/// out of the registry by nobody else: one that is the only one stays so.
fn is_expendable(breaker: &CircuitBreaker) -> bool {
    breaker.handles() == 1 && breaker.is_fresh()
}
