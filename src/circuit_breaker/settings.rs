use super::{
    CircuitBreaker, CircuitBreakerBuilder, CircuitBreakerLayer, CircuitBreakers,
    CircuitBreakersBuilder, CircuitEvent, Keyed, PendingWhileOpen, Single, SkipIf,
};
use crate::clock::Clock;
use crate::{ConfigError, Name};

/// One circuit for every call.
impl<S, C, M, E> CircuitBreakerLayer<Single<S>, C, M, E> {
    /// The breaker that every service of this layer asks.
    pub fn breaker(&self) -> &CircuitBreaker {
        self.admit().breaker()
    }

    /// Tells `listener` of each event, as
    /// [`CircuitBreakerBuilder::on_event`](super::CircuitBreakerBuilder::on_event).
    ///
    /// # Panics
    ///
    /// Where the breaker has other handles or has been used: give the listener to
    /// [`CircuitBreaker::builder`] then, and make the layer from that breaker.
    #[track_caller]
    pub fn on_event<F>(self, listener: F) -> Self
    where
        F: Fn(&CircuitEvent) + Send + Sync + 'static,
    {
        self.building("on_event", |builder| builder.on_event(listener))
    }

    /// Reads the time from `clock`. Default: [`Clock::tokio`].
    ///
    /// # Panics
    ///
    /// As [`on_event`](Self::on_event).
    #[track_caller]
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        self.building("clock", |builder| builder.clock(clock))
    }

    /// Keeps totals and calls in flight, as
    /// [`CircuitBreakerBuilder::counters`](super::CircuitBreakerBuilder::counters).
    ///
    /// # Panics
    ///
    /// As [`on_event`](Self::on_event).
    #[track_caller]
    pub fn counters(self) -> Self {
        self.building("counters", CircuitBreakerBuilder::counters)
    }

    /// Lets calls that `skip` picks out pass unguarded: they go to the inner service whatever the
    /// circuit says, are never refused, take no probe's place, and are counted and told nowhere.
    /// For health checks and the like, which must go through, or say nothing of the callee.
    /// Several functions each pick out their own.
    ///
    /// A layer that skips cannot know in `poll_ready` whose call it will be, so it always readies
    /// the inner service, while open too: a connection that is not ready then delays refusals, and
    /// its readiness errors come out of `poll_ready`. They count as they do
    /// [without](CircuitBreakerLayer#readiness): while closed and when a probe is due, and not
    /// while open. With [`pending_while_open`](CircuitBreakerLayer::pending_while_open) there is
    /// no skipping, as a call that waits cannot pass.
    ///
    /// `skip` runs in the caller's task, once for each call and before anything is decided; a
    /// panic of it reaches the caller.
    ///
    /// ```
    /// use tower::{Layer, Service, ServiceExt, service_fn};
    /// use tower_sluice::circuit_breaker::{CircuitBreaker, CircuitBreakerLayer, CircuitPolicy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let breaker = CircuitBreaker::new("billing", CircuitPolicy::default());
    /// let mut service = CircuitBreakerLayer::from(breaker.clone())
    ///     .skip(|path: &&str| *path == "/health")
    ///     .layer(service_fn(async |path: &str| Ok::<_, std::io::Error>(path.len())));
    /// breaker.force_open();
    /// assert!(service.ready().await.unwrap().call("/pay").await.is_err());
    /// assert_eq!(service.ready().await.unwrap().call("/health").await.unwrap(), 7);
    /// # }
    /// ```
    pub fn skip<Request, F>(self, skip: F) -> CircuitBreakerLayer<Single<SkipIf<S, F>>, C, M, E>
    where
        F: Fn(&Request) -> bool,
    {
        self.admitting_by(|single| single.skip(skip))
    }

    #[track_caller]
    fn building(
        self,
        setter: &str,
        change: impl FnOnce(CircuitBreakerBuilder) -> CircuitBreakerBuilder,
    ) -> Self {
        match self.try_admitting(|single| single.rebuilt(change).ok_or(())) {
            Ok(layer) => layer,
            Err(()) => panic!("`{setter}` is set too late: the breaker is in use already"),
        }
    }
}

/// One circuit for every call, none of them skipped.
impl<C, M, E> CircuitBreakerLayer<Single, C, M, E> {
    /// Makes `poll_ready` wait while the circuit is open, instead of refusing in `call`: for
    /// balancers, which then send calls elsewhere.
    ///
    /// When a probe is due as many waiting instances as there are probes are woken, first come
    /// first served, and when the circuit closes all the rest; nothing has to call or poll for
    /// it. Each instance that answers ready for a probe holds that probe's place: it is spent by
    /// `call`, goes back when the instance is dropped or its inner service is no longer ready,
    /// and is not cloned. An instance that is left pending keeps its turn, as one of
    /// `ConcurrencyLimit` does: drop it if its caller has given up. A call is still refused where
    /// the circuit opens between readiness and call, or lets only a share of calls on after a
    /// recovery. Should a later policy not recover after a finite time, or an
    /// [`open_time`](super::CircuitPolicyBuilder::open_time) function answer with one that never
    /// ends, instances wait until a policy does or an operator closes the circuit.
    ///
    /// Waiting takes one timer for all, and so a tokio runtime, unless the breaker's clock is a
    /// manual one.
    ///
    /// # Panics
    ///
    /// Where [`try_pending_while_open`](Self::try_pending_while_open) fails.
    #[track_caller]
    pub fn pending_while_open(self) -> CircuitBreakerLayer<PendingWhileOpen, C, M, E> {
        match self.try_pending_while_open() {
            Ok(layer) => layer,
            Err(error) => panic!("{error}"),
        }
    }

    /// The same, with an error.
    ///
    /// # Errors
    ///
    /// Where the policy does not recover after a finite time, or its open time may grow, or be
    /// asked for by an upstream, to one that is not (584 years). Calls that wait do not arrive, so a count of arrivals would never
    /// end their wait.
    pub fn try_pending_while_open(
        self,
    ) -> Result<CircuitBreakerLayer<PendingWhileOpen, C, M, E>, ConfigError> {
        self.try_admitting(|single| PendingWhileOpen::new(single.into_breaker()))
    }
}

/// One circuit for every call, waited for while open.
impl<C, M, E> CircuitBreakerLayer<PendingWhileOpen, C, M, E> {
    /// The breaker that every service of this layer asks.
    pub fn breaker(&self) -> &CircuitBreaker {
        self.admit().breaker()
    }
}

/// Keyed, and what `P` picks out is skipped too.
type KeyedSkipping<K, F, S, P> = Keyed<K, F, SkipIf<S, P>>;

/// One circuit per key.
impl<K, F, S, C, M, E> CircuitBreakerLayer<Keyed<K, F, S>, C, M, E> {
    /// The breakers of the keys.
    pub fn breakers(&self) -> &CircuitBreakers<K> {
        self.admit().breakers()
    }

    /// Tells `listener` of each event of each breaker, with its key, as
    /// [`CircuitBreakersBuilder::on_event`](super::CircuitBreakersBuilder::on_event).
    ///
    /// # Panics
    ///
    /// Where the registry has other handles or breakers: give the listener to
    /// [`CircuitBreakers::builder`] then, and make the layer from that registry.
    #[track_caller]
    pub fn on_event<L>(self, listener: L) -> Self
    where
        K: Clone + Send + Sync + 'static,
        L: Fn(&K, &CircuitEvent) + Send + Sync + 'static,
    {
        self.building("on_event", |builder| builder.on_event(listener))
    }

    /// Reads the time from `clock`. Default: [`Clock::tokio`].
    ///
    /// # Panics
    ///
    /// As [`on_event`](Self::on_event).
    #[track_caller]
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        self.building("clock", |builder| builder.clock(clock))
    }

    /// Names the breakers, in refusals and events. Default: `keyed`.
    ///
    /// # Panics
    ///
    /// As [`on_event`](Self::on_event).
    #[track_caller]
    pub fn named(self, name: impl Into<Name>) -> Self {
        self.building("named", |builder| builder.name(name))
    }

    /// Lets calls that `skip` picks out pass unguarded, before any key is asked for: see
    /// [`skip`](CircuitBreakerLayer::skip) of a layer without keys. A layer with keys always
    /// readies the inner service as it is.
    pub fn skip<Request, P>(
        self,
        skip: P,
    ) -> CircuitBreakerLayer<KeyedSkipping<K, F, S, P>, C, M, E>
    where
        P: Fn(&Request) -> bool,
    {
        self.admitting_by(|keyed| keyed.skip(skip))
    }

    #[track_caller]
    fn building(
        self,
        setter: &str,
        change: impl FnOnce(CircuitBreakersBuilder<K>) -> CircuitBreakersBuilder<K>,
    ) -> Self {
        match self.try_admitting(|keyed| keyed.rebuilt(change).ok_or(())) {
            Ok(layer) => layer,
            Err(()) => panic!("`{setter}` is set too late: the registry is in use already"),
        }
    }
}
