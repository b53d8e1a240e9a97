/// The mark in the extensions of a response that is one of our refusals, not the service's answer.
///
/// [`respond`](super::respond), [`Responder`](super::Responder) and their gRPC counterparts set
/// it; the classifiers of this crate look for it, so that a breaker further out never counts a
/// refusal further in against the host. A retry policy or an access log may do the same. It does
/// not cross the network.
///
/// ```
/// use tower_sluice::http::Refused;
///
/// let mut response = http::Response::new(());
/// assert!(!Refused::marks(&response));
/// Refused::mark(&mut response);
/// assert!(Refused::marks(&response));
/// ```
// Deliberately without a field: in a response's extensions a value of no size needs no allocation
// of its own. What kind of refusal it was stands in the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused;

impl Refused {
    /// Marks `response` as a refusal; for responders written by hand.
    pub fn mark<B>(response: &mut ::http::Response<B>) {
        response.extensions_mut().insert(Self);
    }

    /// Whether `response` is a refusal of this crate, made in this process.
    pub fn marks<B>(response: &::http::Response<B>) -> bool {
        response.extensions().get::<Self>().is_some()
    }
}
