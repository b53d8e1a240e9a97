use std::fmt;
use std::sync::Arc;

use super::breakers::CircuitBreakers;
use crate::circuit_breaker::event::Listener;
use crate::circuit_breaker::{CircuitBreaker, CircuitBreakerBuilder, CircuitEvent, CircuitPolicy};
use crate::clock::Clock;
use crate::{ConfigError, Name, WhenFull};

/// The breakers that a registry may hold, unless told otherwise.
const DEFAULT_MAX_KEYS: usize = 100_000;

/// Builds a [`CircuitBreakers`]; made by [`CircuitBreakers::builder`].
#[must_use = "a builder does nothing until it is built"]
pub struct CircuitBreakersBuilder<K> {
    pub(super) policy: CircuitPolicy,
    pub(super) policy_for: Option<PolicyFor<K>>,
    pub(super) name: Name,
    pub(super) name_of: Option<NameOf<K>>,
    pub(super) clock: Clock,
    pub(super) max_keys: usize,
    pub(super) when_full: WhenFull,
    pub(super) max_open_share: Option<f64>,
    pub(super) counters: bool,
    pub(super) listeners: Vec<ListenerOf<K>>,
    pub(super) on_overflow: Vec<Listener>,
    pub(super) on_full: Vec<OnFull<K>>,
}

/// Hears of a key that found the registry full.
pub(super) type OnFull<K> = Box<dyn Fn(&K) + Send + Sync>;

/// Makes the listener of one key's breaker.
pub(super) type ListenerOf<K> = Box<dyn Fn(&K) -> Listener + Send + Sync>;
pub(super) type PolicyFor<K> = Box<dyn Fn(&K) -> Option<CircuitPolicy> + Send + Sync>;
pub(super) type NameOf<K> = Box<dyn Fn(&K) -> Name + Send + Sync>;

impl<K> CircuitBreakersBuilder<K> {
    pub(super) fn new(policy: CircuitPolicy) -> Self {
        Self {
            policy,
            policy_for: None,
            name: Name::from_static("keyed"),
            name_of: None,
            clock: Clock::default(),
            max_keys: DEFAULT_MAX_KEYS,
            when_full: WhenFull::default(),
            max_open_share: None,
            counters: false,
            listeners: Vec::new(),
            on_overflow: Vec::new(),
            on_full: Vec::new(),
        }
    }

    /// Tells `listener` of each event of each breaker, with its key; as
    /// [`CircuitBreakerBuilder::on_event`](crate::circuit_breaker::CircuitBreakerBuilder::on_event)
    /// in all else. The overflow breaker stands for no key: give it a listener by
    /// [`on_overflow_event`](Self::on_overflow_event).
    pub fn on_event<F>(mut self, listener: F) -> Self
    where
        K: Clone + Send + Sync + 'static,
        F: Fn(&K, &CircuitEvent) + Send + Sync + 'static,
    {
        let listener = Arc::new(listener);
        self.listeners.push(Box::new(move |key| {
            let (key, listener) = (key.clone(), listener.clone());
            Arc::new(move |event| listener(&key, event))
        }));
        self
    }

    /// Tells `listener` of each event of the breaker that is shared by the keys that found the
    /// registry full, named `overflow`; as [`on_event`](Self::on_event) in all else.
    pub fn on_overflow_event<F>(mut self, listener: F) -> Self
    where
        F: Fn(&CircuitEvent) + Send + Sync + 'static,
    {
        self.on_overflow.push(Arc::new(listener));
        self
    }

    /// Tells `listener` of each key that found the registry full and was sent to the overflow
    /// breaker or refused. Runs outside of all locks, on the task that brought the key; a panic is
    /// caught and [counted](CircuitBreakers::listener_panics).
    pub fn on_full<F>(mut self, listener: F) -> Self
    where
        F: Fn(&K) + Send + Sync + 'static,
    {
        self.on_full.push(Box::new(listener));
        self
    }

    /// Keeps totals and calls in flight for each breaker, as
    /// [`CircuitBreakerBuilder::counters`](crate::circuit_breaker::CircuitBreakerBuilder::counters).
    pub fn counters(mut self) -> Self {
        self.counters = true;
        self
    }

    /// Asks `f` for the policy of each key when its breaker is made; `None` is the common policy.
    /// Runs outside of all locks; a panic reaches whoever asked for the breaker, which is then not
    /// made.
    pub fn policy_for<F>(mut self, f: F) -> Self
    where
        F: Fn(&K) -> Option<CircuitPolicy> + Send + Sync + 'static,
    {
        self.policy_for = Some(Box::new(f));
        self
    }

    /// Names the breakers, in refusals and events: one name for all, so that keys do not reach
    /// logs and metrics unasked. Default: `keyed`.
    pub fn name(mut self, name: impl Into<Name>) -> Self {
        self.name = name.into();
        self
    }

    /// Names each breaker by `f` of its key, in place of the common name. Runs like
    /// [`policy_for`](Self::policy_for).
    pub fn name_of<F>(mut self, f: F) -> Self
    where
        F: Fn(&K) -> Name + Send + Sync + 'static,
    {
        self.name_of = Some(Box::new(f));
        self
    }

    /// Reads the time from `clock`. Default: [`Clock::tokio`].
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }

    /// Holds at most `max_keys` (1 or more) breakers. Default: 100,000.
    ///
    /// Choose well above the number of keys that are in trouble at once: a breaker that is open
    /// or has failures in its window cannot make room. With a window of time it can once that is
    /// over. With [`consecutive`](crate::circuit_breaker::CircuitPolicyBuilder::consecutive) or a
    /// [window of calls](crate::circuit_breaker::CircuitPolicyBuilder::window_calls) no time ends
    /// what it remembers, and forgetting it would let one failure more through than the policy
    /// does: a key that failed once and never comes back stays, and so keys that a stranger can
    /// choose fill the registry. Judge those by a rate over time, or
    /// [`remove`](CircuitBreakers::remove) what is known to be gone.
    pub fn max_keys(mut self, max_keys: usize) -> Self {
        self.max_keys = max_keys;
        self
    }

    /// What a new key gets where no breaker can make room. Default: [`WhenFull::Overflow`]: one breaker
    /// for all such keys, which are guarded and fail together.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Lets no more than `share`, in (0, 1], of the keys be open at once; the breaker of one more
    /// key that fails stays closed, since a fault of so many is more likely one of ours than
    /// theirs. At least one key may always open. Default: no limit.
    pub fn max_open_share(mut self, share: f64) -> Self {
        self.max_open_share = Some(share);
        self
    }

    /// A breaker as all are made here, of its own name and policy.
    pub(super) fn make(&self, name: Name, policy: CircuitPolicy) -> CircuitBreakerBuilder {
        let builder = CircuitBreaker::builder(name, policy).clock(self.clock.clone());
        if self.counters {
            builder.counters()
        } else {
            builder
        }
    }

    /// Checks the whole and makes the registry.
    ///
    /// # Errors
    ///
    /// Names the field that is out of its range.
    pub fn build(self) -> Result<CircuitBreakers<K>, ConfigError> {
        if self.max_keys == 0 {
            return Err(ConfigError::new("max_keys", self.max_keys, "1 or more"));
        }
        if let Some(share) = self.max_open_share
            && !(share > 0.0 && share <= 1.0)
        {
            let allowed = "above 0, and at most 1";
            return Err(ConfigError::new("max_open_share", share, allowed));
        }
        Ok(CircuitBreakers::from_builder(self))
    }
}

impl<K> fmt::Debug for CircuitBreakersBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreakersBuilder")
            .field("policy", &self.policy)
            .field("name", &self.name)
            .field("max_keys", &self.max_keys)
            .field("when_full", &self.when_full)
            .field("max_open_share", &self.max_open_share)
            .finish_non_exhaustive()
    }
}
