/// Makes the response that a refused caller sees, for `.respond_with(…)`.
///
/// Closures `Fn(&R) -> Response` are responders. Implement it on a type of your own to look at
/// the request too, which is handed in before it is dropped. Must not block; a panic reaches the
/// caller, and nothing is lost by it.
///
/// ```
/// use tower_sluice::reject::Respond;
///
/// fn short(refusal: &String) -> usize {
///     refusal.len()
/// }
/// assert_eq!(Respond::<(), String, usize>::respond(&short, &(), &"no".to_owned()), 2);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot answer a refused call with `{Response}`",
    label = "this responder does not fit the service's response",
    note = "`.respond_with(f)` takes `Fn(&{R}) -> {Response}`, or a type that implements `Respond`",
    note = "for `http::Response<B>`: `http::respond` where `B: From<String>` (axum), `http::respond_empty` or `grpc::respond` where `B: Default` (tonic)"
)]
pub trait Respond<Request, R, Response> {
    /// Makes the response to `request`, refused by `refusal`.
    fn respond(&self, request: &Request, refusal: &R) -> Response;
}

// Not recommended, so that what is missing is told in the words above.
#[diagnostic::do_not_recommend]
impl<F, Request, R, Response> Respond<Request, R, Response> for F
where
    F: Fn(&R) -> Response,
{
    fn respond(&self, _request: &Request, refusal: &R) -> Response {
        self(refusal)
    }
}
