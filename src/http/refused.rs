use ::http::Response;
use ::http::header::RETRY_AFTER;

use super::retry_after::{digits, is_ready_made};

/// The mark of a response that is one of our refusals, not the service's answer.
///
/// [`respond`](super::respond), [`Responder`](super::Responder) and their gRPC counterparts set
/// it; the classifiers of this crate look for it, so that a breaker further out never counts a
/// refusal further in against the host. A retry policy or an access log may do the same. It does
/// not cross the network.
///
/// It is in the response's extensions, or is the very value of its `Retry-After`: copies of the head
/// have it too, but a layer in between that sets or removes `Retry-After` should
/// [`mark`](Self::mark) what it has changed.
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
    /// Marks `response` as a refusal, in its extensions; for responders written by hand.
    pub fn mark<B>(response: &mut Response<B>) {
        response.extensions_mut().insert(Self);
    }

    /// Whether `response` is a refusal of this crate, made in this process.
    pub fn marks<B>(response: &Response<B>) -> bool {
        let retry_after = || response.headers().get(RETRY_AFTER);
        response.extensions().get::<Self>().is_some() || retry_after().is_some_and(is_ready_made)
    }

    /// Marks `response` as a refusal and tells it how long to wait, if that is known.
    ///
    /// Deliberately not always by the extensions, which cost two allocations of the four that a
    /// refusal under attack may make: a `Retry-After` whose digits lie in our own table was
    /// written by us, and is mark enough.
    pub(super) fn mark_with<B>(response: &mut Response<B>, seconds: Option<u64>) {
        let told = seconds.map(digits);
        if !told.as_ref().is_some_and(is_ready_made) {
            Self::mark(response);
        }
        if let Some(seconds) = told {
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use ::http::HeaderValue;

    use super::*;

    #[test]
    fn every_refusal_is_marked_whatever_it_tells() {
        for seconds in [None, Some(1), Some(3_600), Some(3_601), Some(u64::MAX)] {
            let mut response = Response::new(());
            Refused::mark_with(&mut response, seconds);
            assert!(Refused::marks(&response), "{seconds:?}");
            let (parts, ()) = response.into_parts();
            let copy = Response::from_parts(parts.clone(), "other body");
            assert!(Refused::marks(&copy), "the mark is of the head");
        }
    }

    #[test]
    fn the_digits_of_others_are_no_mark() {
        for value in [
            HeaderValue::from_static("1"),
            HeaderValue::from(1_u64),
            HeaderValue::from_static("Fri, 31 Dec 1999 23:59:59 GMT"),
        ] {
            let mut response = Response::new(());
            response.headers_mut().insert(RETRY_AFTER, value);
            assert!(!Refused::marks(&response), "an upstream asks to wait too");
        }
    }
}
