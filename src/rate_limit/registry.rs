use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::{Quota, RateLimiter};
use crate::clock::Clock;
use crate::sync::Mutex;
use crate::{ConfigError, Name};

/// Names are few and chosen by the program; a registry that fills up is fed by its callers.
const MOST_NAMES: usize = 10_000;

const TAKEN: &str = "what the limiter of that name was made with";
const NAMED: &str = "given to the limiter, and not yet taken";
const FULL: &str = "one of the 10,000 already there: limit clients by key, not by name";

/// Limiters by name, for code that has no place of its own to keep one: a handler, a closure, a
/// factory that runs for each request.
///
/// Clones share all limiters. A limiter made anew in such a place would have no history and so no
/// effect; the one found here by its name has. Asking for a name with another quota than it was
/// made with is an error, never a second silent state.
///
/// For limits per client use [`KeyedRateLimiter`](super::KeyedRateLimiter), which is bounded and
/// forgets; a name stays until it is [removed](Self::remove).
///
/// ```
/// use tower_sluice::rate_limit::{Quota, RateLimiters};
///
/// let limiters = RateLimiters::new();
/// let search = limiters.get_or_create("search", Quota::per_minute(1))?;
/// assert!(search.check().is_ok());
/// let again = limiters.get_or_create("search", Quota::per_minute(1))?;
/// assert!(again.check().is_err(), "the same limiter");
/// assert!(limiters.get_or_create("search", Quota::per_minute(2)).is_err());
/// # Ok::<(), tower_sluice::ConfigError>(())
/// ```
#[derive(Clone, Default)]
pub struct RateLimiters {
    limiters: Arc<Mutex<HashMap<Name, Entry>>>,
    clock: Clock,
}

struct Entry {
    limiter: RateLimiter,
    /// As they were when it was made: an operator may have changed them since, which those who
    /// ask for it by its old quota need not know.
    quotas: Vec<Quota>,
}

impl RateLimiters {
    /// Makes an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty registry whose limiters read `clock`.
    pub fn with_clock(clock: impl Into<Clock>) -> Self {
        Self {
            limiters: Arc::default(),
            clock: clock.into(),
        }
    }

    /// The limiter called `name`, made with `quota` if there is none.
    ///
    /// # Errors
    ///
    /// Where the limiter of that name was made with another quota, or 10,000 names are taken.
    pub fn get_or_create(
        &self,
        name: impl Into<Name>,
        quota: Quota,
    ) -> Result<RateLimiter, ConfigError> {
        let name = name.into();
        let mut limiters = self.limiters.lock();
        if let Some(entry) = limiters.get(&name) {
            if entry.quotas != [quota] {
                return Err(ConfigError::new("quota", quota, TAKEN));
            }
            return Ok(entry.limiter.clone());
        }
        if limiters.len() >= MOST_NAMES {
            return Err(ConfigError::new("name", name, FULL));
        }
        let limiter = RateLimiter::builder(quota)
            .name(name.clone())
            .clock(self.clock.clone())
            .build()?;
        let quotas = vec![quota];
        limiters.insert(
            name,
            Entry {
                limiter: limiter.clone(),
                quotas,
            },
        );
        Ok(limiter)
    }

    /// Adds a limiter that was built elsewhere (with several quotas, say) under its own name.
    ///
    /// # Errors
    ///
    /// Where it has no name, or another limiter has that name, or 10,000 names are taken.
    pub fn insert(&self, limiter: RateLimiter) -> Result<(), ConfigError> {
        let Some(name) = limiter.name().map(str::to_owned) else {
            return Err(ConfigError::new("name", None::<&str>, NAMED));
        };
        let quotas = limiter.quotas();
        let mut limiters = self.limiters.lock();
        if limiters.contains_key(name.as_str()) {
            return Err(ConfigError::new("name", name, NAMED));
        }
        if limiters.len() >= MOST_NAMES {
            return Err(ConfigError::new("name", name, FULL));
        }
        limiters.insert(Name::from(name), Entry { limiter, quotas });
        Ok(())
    }

    /// The limiter called `name`, if there is one.
    pub fn get(&self, name: &str) -> Option<RateLimiter> {
        let limiters = self.limiters.lock();
        limiters.get(name).map(|entry| entry.limiter.clone())
    }

    /// Whether there is a limiter called `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.limiters.lock().contains_key(name)
    }

    /// Takes the limiter called `name` out. Handles to it go on as they are.
    pub fn remove(&self, name: &str) -> Option<RateLimiter> {
        let removed = self.limiters.lock().remove(name);
        removed.map(|entry| entry.limiter)
    }

    /// All limiters as they stand, in no order.
    pub fn iter(&self) -> impl Iterator<Item = RateLimiter> + use<> {
        let limiters = self.limiters.lock();
        let all: Vec<_> = limiters.values().map(|e| e.limiter.clone()).collect();
        all.into_iter()
    }

    /// How many limiters there are.
    pub fn len(&self) -> usize {
        self.limiters.lock().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for RateLimiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
