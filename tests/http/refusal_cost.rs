//! Refusing is the hot path under attack: what it allocates is counted here.

use http::{Response, StatusCode, header};
use tower_sluice::clock::Clock;
use tower_sluice::rate_limit::{Quota, RateLimited, RateLimiter};
use tower_sluice::{grpc, http as sluice};

use crate::support::alloc::allocations;

fn refusal() -> RateLimited {
    let limiter = RateLimiter::builder(Quota::per_minute(1))
        .clock(Clock::manual())
        .build()
        .expect("a valid quota");
    limiter.check().expect("the first call passes");
    limiter.check().expect_err("the second does not")
}

/// What one writes without a crate for it, with the same body.
fn by_hand<B>(refusal: &RateLimited, body: B) -> Response<B> {
    let wait = refusal.retry_after().expect("a known wait");
    Response::builder()
        .status(StatusCode::TOO_MANY_REQUESTS)
        .header(header::RETRY_AFTER, wait.as_secs().to_string())
        .body(body)
        .expect("a valid response")
}

#[test]
fn a_refusal_allocates_less_than_one_by_hand() {
    let refusal = refusal();
    let (count, _) = allocations(|| sluice::respond_empty::<_, ()>(&refusal));
    assert_eq!(count, 2, "the headers and their index");
    let (by_hand_count, _) = allocations(|| by_hand(&refusal, ()));
    assert!(count < by_hand_count, "by hand: {by_hand_count}");

    let (count, _) = allocations(|| sluice::respond::<_, String>(&refusal));
    assert_eq!(count, 3, "one more for the text");
    let text = || String::from("Too Many Requests");
    let (by_hand_count, _) = allocations(|| by_hand(&refusal, text()));
    assert!(count < by_hand_count, "by hand: {by_hand_count}");

    let (count, _) = allocations(|| sluice::respond::<_, axum::body::Body>(&refusal));
    assert!(
        count <= 4,
        "axum boxes its bodies, and that is all: {count}"
    );
}

#[test]
fn a_grpc_refusal_allocates_a_bounded_number_of_times() {
    let refusal = refusal();
    let (count, _) = allocations(|| grpc::respond::<_, ()>(&refusal));
    assert!(count <= 14, "{count}");
}
