use super::{Allowed, RateLimited};

/// Writes the decision on the response, for [`RateLimitLayer::annotate`]: the seam of rate-limit
/// headers.
///
/// The note is taken when the call is decided, is kept by the response future, and is written on
/// the inner service's response when that comes; an inner error takes no note. A refusal takes
/// one where it is a response (`.respond_with(…)`). Calls that are skipped, that a key function
/// exempts or that only shadow mode lets through have no decision to write.
///
/// `()` is the layer's default: no note, no cost. Must not block; a panic reaches the caller.
///
/// ```
/// use tower_sluice::rate_limit::{Allowed, Annotate, RateLimited};
///
/// #[derive(Clone)]
/// struct Remaining;
///
/// impl Annotate<Vec<u32>> for Remaining {
///     type Note = u32;
///     fn admitted(&self, allowed: &Allowed) -> u32 {
///         allowed.remaining()
///     }
///     fn refused(&self, refusal: &RateLimited) -> u32 {
///         refusal.remaining()
///     }
///     fn write(note: u32, response: &mut Vec<u32>) {
///         response.push(note);
///     }
/// }
/// # fn assert<A: Annotate<Vec<u32>>>(_: A) {}
/// # assert(Remaining);
/// ```
///
/// [`RateLimitLayer::annotate`]: super::RateLimitLayer::annotate
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot write a decision on `{Response}`",
    label = "this annotation does not fit the service's response"
)]
pub trait Annotate<Response> {
    /// What is kept of the decision until the response is there.
    type Note;

    /// Takes the note of an admitted call.
    fn admitted(&self, allowed: &Allowed) -> Self::Note;

    /// Takes the note of a refused call.
    fn refused(&self, refusal: &RateLimited) -> Self::Note;

    /// Writes the note.
    fn write(note: Self::Note, response: &mut Response);
}

impl<Response> Annotate<Response> for () {
    type Note = ();

    #[inline]
    fn admitted(&self, _allowed: &Allowed) {}

    #[inline]
    fn refused(&self, _refusal: &RateLimited) {}

    #[inline]
    fn write((): (), _response: &mut Response) {}
}
