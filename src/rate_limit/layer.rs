use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tower_layer::Layer;

use super::decide::{Costed, Skipping};
use super::event::RateLimitEvent;
use super::manner::Manner;
use super::report::Report;
use super::retime::Retime;
use super::{RateLimit, RateLimiter};
use crate::Name;
use crate::clock::Clock;
use crate::reject::{AsError, FlattenError, RespondWith};

/// Limits how often a service is called. See the [module](super) for what it decides and how.
///
/// # What is shared
///
/// The state is in the layer: every service it makes, and every clone of the layer or of those
/// services, counts against one limit, however often `layer()` is called (axum calls it once for
/// each connection). A second layer is a second limit; to share one, make both from clones of one
/// handle ([`RateLimiter`], [`KeyedRateLimiter`](super::KeyedRateLimiter)), which also lets an admin page look at it or
/// change its quota.
///
/// tower's own `RateLimitLayer` counts in the service, which so cannot be cloned, and makes
/// callers wait; this one refuses, unless told to [`wait`](Self::wait).
///
/// # How it refuses
///
/// With [`Error::Refused`](crate::Error), unless [`flatten_error`](Self::flatten_error) or
/// [`respond_with`](Self::respond_with) says otherwise; see [`reject`](crate::reject).
///
/// # Readiness
///
/// `poll_ready` is the inner service's own and takes nothing from the limit; the call is decided
/// in `call`. A refused call leaves the inner service's readiness to the next call on the same
/// instance, so put `Buffer` and `ConcurrencyLimit`, which reserve a place in `poll_ready`,
/// outside of this layer. With [`wait`](Self::wait) the service is always ready instead.
///
/// # Panics of the functions given
///
/// A panic in a key, cost, skip or respond function reaches the caller before anything is spent,
/// except in a respond function, which runs after a refusal, and that spends nothing. A panic in
/// a listener is caught and [counted](Self::listener_panics).
///
/// # Examples
///
/// ```
/// use tower::{Layer, Service, ServiceExt, service_fn};
/// use tower_sluice::rate_limit::{Quota, RateLimitLayer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let layer = RateLimitLayer::new(Quota::per_minute(1));
/// let mut service = layer.layer(service_fn(async |n: u32| Ok::<_, std::io::Error>(n + 1)));
/// assert_eq!(service.ready().await.unwrap().call(1).await.unwrap(), 2);
///
/// let mut another = layer.layer(service_fn(async |n: u32| Ok::<_, std::io::Error>(n + 2)));
/// let error = another.ready().await.unwrap().call(1).await.unwrap_err();
/// let refused = error.refused().expect("both count against one limit");
/// assert!(refused.retry_after().is_some());
/// # }
/// ```
///
/// A limit for each path, with a response in place of an error:
///
/// ```
/// # #[cfg(feature = "http")] {
/// use axum::{Router, http::{Request, StatusCode}, routing::get};
/// use tower_sluice::rate_limit::{Quota, RateLimitLayer};
///
/// let app: Router = Router::new().route("/", get(async || "hello")).layer(
///     RateLimitLayer::keyed(Quota::per_second(10), |request: &Request<_>| {
///         request.uri().path().to_owned()
///     })
///     .respond_with(|_: &_| axum::response::IntoResponse::into_response(StatusCode::TOO_MANY_REQUESTS)),
/// );
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a layer limits nothing until a service is put into it"]
pub struct RateLimitLayer<D = RateLimiter, M = AsError, W = Refusing, A = ()> {
    pub(super) decider: D,
    pub(super) flow: W,
    pub(super) manner: Manner<M, A>,
}

/// Refuses what the quota does not admit now: the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refusing;

/// Lets calls wait for their turn: [`RateLimitLayer::wait`].
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub(super) most: Duration,
}

impl RateLimitLayer {
    /// One limit for all calls: a new one of a [`Quota`](super::Quota), or that of a
    /// [`RateLimiter`].
    pub fn new(limiter: impl Into<RateLimiter>) -> Self {
        plain(limiter.into())
    }
}

impl From<RateLimiter> for RateLimitLayer {
    fn from(limiter: RateLimiter) -> Self {
        plain(limiter)
    }
}

pub(super) fn plain<D>(decider: D) -> RateLimitLayer<D> {
    RateLimitLayer {
        decider,
        flow: Refusing,
        manner: Manner {
            mode: AsError,
            annotate: (),
            report: Report::default(),
        },
    }
}

impl<D, M, W, A> RateLimitLayer<D, M, W, A> {
    /// Sets what a call costs, from its request (default: 1). A cost of 0 takes nothing; one above
    /// the quota's burst is refused for ever.
    ///
    /// ```
    /// use tower_sluice::rate_limit::{Quota, RateLimitLayer};
    ///
    /// let bytes = RateLimitLayer::new(Quota::per_second(1_000_000))
    ///     .cost(|request: &Vec<u8>| u32::try_from(request.len()).unwrap_or(u32::MAX));
    /// # let _ = bytes;
    /// ```
    pub fn cost<Request, F>(self, cost: F) -> RateLimitLayer<Costed<D, F>, M, W, A>
    where
        F: Fn(&Request) -> u32,
    {
        self.decided_by(|inner| Costed { inner, cost })
    }

    /// Lets requests that `skip` picks out pass, unlimited and uncounted. It is asked before any
    /// key or cost function. Several predicates each pick out their own.
    ///
    /// ```
    /// # #[cfg(feature = "http")] {
    /// use http::{Method, Request};
    /// use tower_sluice::rate_limit::{Quota, RateLimitLayer};
    ///
    /// let layer = RateLimitLayer::new(Quota::per_second(10))
    ///     .skip(|request: &Request<()>| request.method() == Method::HEAD);
    /// # let _ = layer;
    /// # }
    /// ```
    pub fn skip<Request, F>(self, skip: F) -> RateLimitLayer<Skipping<D, F>, M, W, A>
    where
        F: Fn(&Request) -> bool,
    {
        self.decided_by(|inner| Skipping { inner, skip })
    }

    /// Lets a call that the quota does not admit now wait for its turn, up to `most`, instead of
    /// refusing it; one whose turn would come later is refused at once and takes nothing.
    ///
    /// The service is then always ready, and never polls the inner one: the response future waits,
    /// readies a clone of the inner service and calls it, which is why this mode asks for
    /// `S: Clone`. An error of that readiness comes out of the future. First come, first served;
    /// a dropped future gives its place back.
    ///
    /// Sleeping takes a tokio runtime, except on a manual clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower::{Layer, ServiceExt, service_fn};
    /// use tower_sluice::rate_limit::{Quota, RateLimitLayer};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let service = RateLimitLayer::new(Quota::per_second(1))
    ///     .wait(Duration::from_secs(2))
    ///     .layer(service_fn(async |n: u32| Ok::<_, std::io::Error>(n)));
    /// let start = tokio::time::Instant::now();
    /// for n in 0..3 {
    ///     assert_eq!(service.clone().oneshot(n).await.unwrap(), n);
    /// }
    /// assert_eq!(start.elapsed().as_secs(), 2, "one at once, two a second apart");
    /// # }
    /// ```
    pub fn wait(self, most: Duration) -> RateLimitLayer<D, M, Waiting, A> {
        RateLimitLayer {
            decider: self.decider,
            flow: Waiting { most },
            manner: self.manner,
        }
    }

    /// Never refuses: a call that would be refused goes on to the inner service, is counted
    /// ([`shadowed`](Self::shadowed)) and told to the listeners. With [`wait`](Self::wait) it does
    /// not wait either. For trying a quota out on real traffic.
    pub fn shadow(mut self) -> Self {
        self.manner.report = self.manner.report.shadow();
        self
    }

    /// Names the layer in its refusals and events, in place of the name that the limiter has.
    pub fn named(mut self, name: impl Into<Name>) -> Self {
        self.manner.report = self.manner.report.named(name.into());
        self
    }

    /// Adds a listener: `listener` is told what happens to each call, after the fact and outside
    /// any lock, in the task that caused it. It must not block. It may call back into the limiter.
    /// A panic in it is caught and [counted](Self::listener_panics).
    ///
    /// A layer with a listener reads the clock a second time for each call, for the time elapsed.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    /// use tower_sluice::rate_limit::{Quota, RateLimitLayer, event::RateLimitEvent};
    ///
    /// let refused = Arc::new(AtomicU32::new(0));
    /// let count = refused.clone();
    /// let layer = RateLimitLayer::new(Quota::per_second(10)).on_event(move |event| {
    ///     if let RateLimitEvent::Refused { .. } = event {
    ///         count.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// });
    /// # let _ = layer;
    /// ```
    pub fn on_event<F>(mut self, listener: F) -> Self
    where
        F: Fn(&RateLimitEvent<'_>) + Send + Sync + 'static,
    {
        self.manner.report = self.manner.report.listened(Arc::new(listener));
        self
    }

    /// Writes each decision on the response, by [`Annotate`](super::Annotate).
    pub fn annotate<B>(self, annotate: B) -> RateLimitLayer<D, M, W, B> {
        RateLimitLayer {
            decider: self.decider,
            flow: self.flow,
            manner: Manner {
                mode: self.manner.mode,
                annotate,
                report: self.manner.report,
            },
        }
    }

    /// Refuses with the inner service's own error type, which must be
    /// `From<`[`RateLimited`](super::RateLimited)`>`: `tower::BoxError` is, and so keeps it for a downcast.
    pub fn flatten_error(self) -> RateLimitLayer<D, FlattenError, W, A> {
        self.refused_by(FlattenError)
    }

    /// Refuses with a response that `respond` makes, and leaves the error type alone: a closure
    /// `Fn(&RateLimited) -> Response`, or a [`Respond`](crate::reject::Respond).
    pub fn respond_with<F>(self, respond: F) -> RateLimitLayer<D, RespondWith<F>, W, A> {
        self.refused_by(RespondWith(respond))
    }

    /// How many calls shadow mode has let through that would have been refused.
    pub fn shadowed(&self) -> u64 {
        self.manner.report.shadowed()
    }

    /// How many times a listener has panicked.
    pub fn listener_panics(&self) -> u64 {
        self.manner.report.listener_panics()
    }

    fn decided_by<E>(self, wrap: impl FnOnce(D) -> E) -> RateLimitLayer<E, M, W, A> {
        RateLimitLayer {
            decider: wrap(self.decider),
            flow: self.flow,
            manner: self.manner,
        }
    }

    fn refused_by<N>(self, mode: N) -> RateLimitLayer<D, N, W, A> {
        RateLimitLayer {
            decider: self.decider,
            flow: self.flow,
            manner: Manner {
                mode,
                annotate: self.manner.annotate,
                report: self.manner.report,
            },
        }
    }
}

impl<D: Retime, M, W, A> RateLimitLayer<D, M, W, A> {
    /// Reads time from `clock` instead of [`Clock::tokio`].
    ///
    /// # Panics
    ///
    /// Where the limiter already has other handles, which would see their clock change under
    /// them: give the clock to its builder instead.
    #[track_caller]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        match self.decider.clock_mut() {
            Some(own) => *own = clock.into(),
            None => panic!("`clock` is set too late: the limiter already has other handles"),
        }
        self
    }
}

impl<S, D, M, W, A> Layer<S> for RateLimitLayer<D, M, W, A>
where
    D: Clone,
    M: Clone,
    W: Clone,
    A: Clone,
{
    type Service = RateLimit<S, D, M, W, A>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit::new(inner, self.clone())
    }
}

impl<D, M, W, A> fmt::Debug for RateLimitLayer<D, M, W, A>
where
    D: fmt::Debug,
    M: fmt::Debug,
    W: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("decider", &self.decider)
            .field("flow", &self.flow)
            .field("mode", &self.manner.mode)
            .field("report", &self.manner.report)
            .finish_non_exhaustive()
    }
}
