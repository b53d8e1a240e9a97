use ::http::Request;
use axum::extract::MatchedPath;

/// The pattern of the axum route that a request matched (`/users/{id}`), for
/// `keyed_ref(quota, http::matched_path)`.
///
/// Requests that matched no route share one key, the empty one. It is known to layers inside of
/// the router: `Router::layer`, `Router::route_layer` and a method router's `layer`.
pub fn matched_path<B>(request: &Request<B>) -> &str {
    let matched = request.extensions().get::<MatchedPath>();
    matched.map_or("", MatchedPath::as_str)
}
