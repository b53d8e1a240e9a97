use std::fmt;
use std::marker::PhantomData;

use tower_layer::Layer;

use super::keyed::{KeyFn, KeyRefFn, KeyWithFn};
use super::{
    AtHead, CircuitBreaker, CircuitBreakerService, CircuitBreakers, CircuitPolicy,
    ErrorsAsFailures, Keyed, RefusalsIgnored, Single,
};
use crate::Name;
use crate::reject::{AsError, FlattenError, RespondWith};

/// Puts a circuit breaker before a service: once enough calls fail, or are slow, calls are refused
/// at once and never reach it, until a few probes have found it well again.
///
/// tower itself has no circuit breaker; `tower::load_shed` refuses what a service is not ready
/// for, whether or not it would fail.
///
/// # What is shared
///
/// The circuit lives in the layer: every service it makes and every clone of one share it,
/// however often `layer()` is called (axum calls it for each connection). A second layer is a
/// second circuit. Make a layer [from a handle](CircuitBreaker) to share the circuit with an
/// admin page, or to build it with everything that
/// [`CircuitBreaker::builder`] offers.
///
/// # Readiness
///
/// While closed, `poll_ready` readies the inner service. While open it leaves it alone and
/// answers ready, so that a dead connection does not delay a refusal; when a probe is due it
/// readies it again. A call goes through only on an instance whose own inner service was polled
/// ready: one that was polled while open and called when a probe had become due is refused as
/// [`NotReady`](super::CircuitOpenReason::NotReady), and the probe stays due. An error of the
/// inner `poll_ready` is a failure while closed, and that of a probe when one is due. A refused
/// call leaves the readiness of the inner service, if there was any, to the next call of that
/// instance: put `Buffer` and `ConcurrencyLimit` outside.
///
/// A layer with [keys](Self::keyed) cannot know whose call it will be, so it always readies the
/// inner service, and charges its errors to no key. One that [skips](Self::skip) calls always
/// readies it too.
///
/// # Time, cancellation, panics
///
/// A call's time runs from `call` to its end, which is the response head or, with
/// `until_body_end`, the end of the body. A response future that is dropped before is recorded
/// as cancelled with the time it took so far, and counts by the policy's
/// [`Cancel`](super::Cancel) rule. A panic of the inner service, in `call` or in its future, or
/// of the classifier is recorded as a failure and goes on to the caller. Whatever happens, a
/// probe's place comes back and nothing is recorded twice.
///
/// # Cost
///
/// A call that passes allocates nothing, and one that succeeds takes no lock that cores share, but
/// in a window of calls. The clock is read as a call begins and as it ends where the policy has a slow
/// threshold or a window of time, and otherwise not at all. While open it is read by `poll_ready`,
/// to know whether a probe is due, and by `call`, as the time left is counted from there however
/// long an instance is held in between.
///
/// The response future owns a handle of the breaker, so a call adds to one shared count and takes
/// off again: cores that call through one layer pass that count to and fro, where those that
/// [acquire by hand](CircuitBreaker::try_acquire) share nothing they write. Two cores that do
/// nothing but empty calls through one layer make 0.3 to 0.5 times as many as one core alone
/// (0.8 to 1.2 times with a window of time), and twice as many by hand.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tower::{Service, ServiceBuilder, ServiceExt};
/// use tower_sluice::circuit_breaker::{CircuitBreakerLayer, CircuitPolicy};
/// use tower_sluice::clock::Clock;
///
/// # tokio_test::block_on(async {
/// let policy = CircuitPolicy::builder()
///     .consecutive(2)
///     .open_for(Duration::from_secs(10))
///     .open_jitter(0.0)
///     .probes(1)
///     .build()?;
/// let time = Clock::manual(); // or leave it out: tokio's time
/// let mut service = ServiceBuilder::new()
///     .layer(CircuitBreakerLayer::new("billing", policy).clock(&time))
///     .service_fn(|well: bool| async move {
///         if well { Ok("paid") } else { Err(std::io::Error::other("down")) }
///     });
///
/// for _ in 0..2 {
///     assert!(service.ready().await?.call(false).await.is_err());
/// }
/// let error = service.ready().await?.call(true).await.unwrap_err();
/// let refusal = error.refused().expect("two failures in a row opened the circuit");
/// assert_eq!(refusal.retry_after(), Some(Duration::from_secs(10)));
///
/// time.advance(Duration::from_secs(10));
/// assert_eq!(service.ready().await?.call(true).await?, "paid"); // the probe
/// assert_eq!(service.ready().await?.call(true).await?, "paid");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// One circuit per host, and a verdict by status:
///
/// ```
/// # #[cfg(feature = "http")] {
/// use http::{Request, Response};
/// use tower_sluice::circuit_breaker::{CircuitBreakerLayer, CircuitPolicy, Outcome};
///
/// let layer = CircuitBreakerLayer::keyed_ref(
///     CircuitPolicy::default(),
///     |request: &Request<String>| request.uri().host().unwrap_or_default(),
/// )
/// .classify(|result: Result<&Response<String>, &std::io::Error>| match result {
///     Ok(response) if response.status().is_server_error() => Outcome::Failure,
///     Ok(_) => Outcome::Success,
///     Err(_) => Outcome::Failure,
/// });
/// let breakers = layer.breakers().clone();
/// # use tower::{Layer, Service, ServiceExt};
/// # tokio_test::block_on(async {
/// # let service = layer.layer(tower::service_fn(|_: Request<String>| async {
/// #     Ok::<_, std::io::Error>(Response::new(String::new()))
/// # }));
/// service.oneshot(Request::get("http://a.example/").body(String::new()).unwrap()).await.unwrap();
/// # });
/// assert!(breakers.contains("a.example"));
/// # }
/// ```
#[must_use = "a layer does nothing until it is added to a stack"]
pub struct CircuitBreakerLayer<A = Single, C = ErrorsAsFailures, M = AsError, E = AtHead> {
    admit: A,
    classifier: C,
    reject: M,
    end: PhantomData<fn() -> E>,
}

impl CircuitBreakerLayer {
    /// Guards the inner service by one circuit of its own, named `name` in refusals, events and
    /// logs.
    pub fn new(name: impl Into<Name>, policy: CircuitPolicy) -> Self {
        Self::from(CircuitBreaker::new(name, policy))
    }

    /// Guards by one circuit per key, which `key` makes from each request.
    ///
    /// `breakers` is a [`CircuitPolicy`] for every key, or a [`CircuitBreakers`] handle.
    pub fn keyed<Request, K, F>(
        breakers: impl Into<CircuitBreakers<K>>,
        key: F,
    ) -> CircuitBreakerLayer<Keyed<K, KeyFn<F>>>
    where
        F: Fn(&Request) -> K,
    {
        CircuitBreakerLayer::admitting(Keyed::new(breakers.into(), KeyFn(key)))
    }

    /// Guards by one circuit per key, which `key` borrows from each request: a known key costs no
    /// allocation.
    pub fn keyed_ref<Request, Q, F>(
        breakers: impl Into<CircuitBreakers<Q::Owned>>,
        key: F,
    ) -> CircuitBreakerLayer<Keyed<Q::Owned, KeyRefFn<F>>>
    where
        Q: ToOwned + ?Sized,
        F: Fn(&Request) -> &Q,
    {
        CircuitBreakerLayer::admitting(Keyed::new(breakers.into(), KeyRefFn(key)))
    }

    /// Guards by one circuit per key, where `key` may find none in a request, which then passes
    /// unguarded, and may give a policy of the key's own.
    pub fn keyed_with<Request, K, F>(
        breakers: impl Into<CircuitBreakers<K>>,
        key: F,
    ) -> CircuitBreakerLayer<Keyed<K, KeyWithFn<F>>>
    where
        F: Fn(&Request) -> Option<(K, Option<CircuitPolicy>)>,
    {
        CircuitBreakerLayer::admitting(Keyed::new(breakers.into(), KeyWithFn(key)))
    }
}

impl<A> CircuitBreakerLayer<A> {
    fn admitting(admit: A) -> Self {
        Self {
            admit,
            classifier: ErrorsAsFailures,
            reject: AsError,
            end: PhantomData,
        }
    }
}

impl<A, C, M, E> CircuitBreakerLayer<A, C, M, E> {
    /// Judges calls by `classifier`; without it errors are failures and responses successes.
    ///
    /// A closure's argument is written out: `|result: Result<&Response, &Error>| …`.
    pub fn classify<C2>(self, classifier: C2) -> CircuitBreakerLayer<A, C2, M, E> {
        CircuitBreakerLayer {
            admit: self.admit,
            classifier,
            reject: self.reject,
            end: PhantomData,
        }
    }

    /// Judges errors as failures, but ignores refusals by layers of this crate deeper in the
    /// stack, which say nothing of the dependency; for errors that are [`std::error::Error`], and
    /// for `tower::BoxError`.
    pub fn ignore_refusals<Via>(self) -> CircuitBreakerLayer<A, RefusalsIgnored<Via>, M, E> {
        self.classify(RefusalsIgnored::new())
    }

    /// Refuses with the inner service's own error type, `E: From<CircuitOpen>`: `BoxError`, an
    /// enum of your own, `tonic::Status`.
    pub fn flatten_error(self) -> CircuitBreakerLayer<A, C, FlattenError, E> {
        self.rejecting(FlattenError)
    }

    /// Refuses with a response that `respond` makes, `Fn(&CircuitOpen) -> Response`; the error
    /// type stays the inner service's, as axum asks.
    pub fn respond_with<F>(self, respond: F) -> CircuitBreakerLayer<A, C, RespondWith<F>, E> {
        self.rejecting(RespondWith(respond))
    }

    /// Ends calls where `E2` says.
    #[cfg_attr(not(feature = "http"), allow(dead_code))] // the one other end is the body's
    pub(crate) fn ending_at<E2>(self) -> CircuitBreakerLayer<A, C, M, E2> {
        CircuitBreakerLayer {
            admit: self.admit,
            classifier: self.classifier,
            reject: self.reject,
            end: PhantomData,
        }
    }

    fn rejecting<M2>(self, reject: M2) -> CircuitBreakerLayer<A, C, M2, E> {
        CircuitBreakerLayer {
            admit: self.admit,
            classifier: self.classifier,
            reject,
            end: PhantomData,
        }
    }
}

impl<A, C, M, E> CircuitBreakerLayer<A, C, M, E> {
    pub(super) fn admit(&self) -> &A {
        &self.admit
    }

    pub(super) fn admitting_by<A2>(
        self,
        change: impl FnOnce(A) -> A2,
    ) -> CircuitBreakerLayer<A2, C, M, E> {
        CircuitBreakerLayer {
            admit: change(self.admit),
            classifier: self.classifier,
            reject: self.reject,
            end: PhantomData,
        }
    }

    /// The same layer, with another way of finding its breaker.
    pub(super) fn try_admitting<A2, X>(
        self,
        change: impl FnOnce(A) -> Result<A2, X>,
    ) -> Result<CircuitBreakerLayer<A2, C, M, E>, X> {
        Ok(CircuitBreakerLayer {
            admit: change(self.admit)?,
            classifier: self.classifier,
            reject: self.reject,
            end: PhantomData,
        })
    }
}

impl From<CircuitBreaker> for CircuitBreakerLayer {
    fn from(breaker: CircuitBreaker) -> Self {
        Self::admitting(Single::new(breaker))
    }
}

impl<S, A, C, M, E> Layer<S> for CircuitBreakerLayer<A, C, M, E>
where
    A: Clone,
    C: Clone,
    M: Clone,
{
    type Service = CircuitBreakerService<S, A, C, M, E>;

    fn layer(&self, inner: S) -> Self::Service {
        let (admit, classifier) = (self.admit.clone(), self.classifier.clone());
        CircuitBreakerService::new(inner, admit, classifier, self.reject.clone())
    }
}

impl<A: Clone, C: Clone, M: Clone, E> Clone for CircuitBreakerLayer<A, C, M, E> {
    fn clone(&self) -> Self {
        Self {
            admit: self.admit.clone(),
            classifier: self.classifier.clone(),
            reject: self.reject.clone(),
            end: PhantomData,
        }
    }
}

impl<A: fmt::Debug, C, M: fmt::Debug, E> fmt::Debug for CircuitBreakerLayer<A, C, M, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreakerLayer")
            .field("admit", &self.admit)
            .field("reject", &self.reject)
            .finish_non_exhaustive()
    }
}
