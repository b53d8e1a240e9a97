//! What may cross threads, pinned: losing it would break users silently.

use std::panic::{RefUnwindSafe, UnwindSafe};

use tower_sluice::http::client_ip::KnownPeer;
use tower_sluice::http::error_chain::Typed;
use tower_sluice::http::rate_headers::RateNote;
use tower_sluice::http::respond_body::{Empty, ProblemDetails, Text};
use tower_sluice::http::{self as sluice, TrackedBody, UntilBodyEnd};
use tower_sluice::{circuit_breaker, grpc};

fn plain<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}
fn crosses_threads<T: Send + Sync + Unpin>() {}

#[test]
fn values_are_plain() {
    plain::<sluice::Responder>();
    plain::<sluice::Responder<Empty>>();
    plain::<sluice::Responder<ProblemDetails>>();
    plain::<sluice::AutoResponder<Text>>();
    plain::<sluice::ClientIp<KnownPeer>>();
    plain::<sluice::Trust>();
    plain::<sluice::Refused>();
    plain::<sluice::RateHeaders>();
    plain::<RateNote>();
    plain::<sluice::StatusClassifier<Typed>>();
    plain::<UntilBodyEnd>();
    plain::<grpc::Responder>();
    plain::<grpc::Code>();
    plain::<grpc::CodeClassifier<Typed>>();
}

#[test]
fn a_tracked_body_crosses_threads_where_its_parts_do() {
    crosses_threads::<TrackedBody<String, sluice::StatusClassifier<Typed>, ()>>();
    crosses_threads::<TrackedBody<String, circuit_breaker::ErrorsAsFailures, ()>>();
    crosses_threads::<TrackedBody<String, grpc::CodeClassifier<Typed>, grpc::Code>>();
}
