use ::http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use ::http::{Method, Request};

/// Whether a request is a
/// [CORS preflight](https://fetch.spec.whatwg.org/#cors-preflight-request): an `OPTIONS` with
/// `Origin` and `Access-Control-Request-Method`; for `.skip(http::is_preflight)` on a limit.
///
/// The browser sends it by itself and cannot be made to wait, so it is commonly not charged. A
/// caller can write one too: let whatever answers it be cheap.
///
/// ```
/// use http::Request;
/// use tower_sluice::http::is_preflight;
///
/// let preflight = Request::options("/")
///     .header("origin", "https://example.com")
///     .header("access-control-request-method", "PUT")
///     .body(())?;
/// assert!(is_preflight(&preflight));
/// assert!(!is_preflight(&Request::options("/").body(())?));
/// # Ok::<(), http::Error>(())
/// ```
pub fn is_preflight<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    request.method() == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}
