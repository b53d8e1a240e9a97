use std::fmt;
use std::sync::{Arc, OnceLock};

use http::header::CONTENT_TYPE;
use tonic::Status;

use crate::circuit_breaker::CircuitOpen;
use crate::grpc;
use crate::rate_limit::RateLimited;
use crate::reject::Refusal;

/// The `Status` a refusal stands for, made when someone first looks for it: a refusal whose
/// chain nobody walks costs no allocation.
#[derive(Default)]
pub(crate) struct Cause(OnceLock<Status>);

impl Cause {
    pub(crate) fn source(
        &self,
        refusal: &impl Refusal,
    ) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.0.get_or_init(|| status_of(refusal)))
    }
}

/// What a client makes of [`grpc::respond`], so that a refusal reads the same whichever side of
/// the network it was made on.
fn status_of(refusal: &impl Refusal) -> Status {
    let response: http::Response<()> = grpc::respond(refusal);
    let (mut head, ()) = response.into_parts();
    head.headers.remove(CONTENT_TYPE);
    Status::from_header_map(&head.headers).expect("`grpc-status` is among the headers")
}

/// The status that [`grpc::respond`] would answer with; its `source()` is the refusal.
impl From<RateLimited> for Status {
    fn from(refusal: RateLimited) -> Self {
        let mut status = status_of(&refusal);
        status.set_source(Arc::new(refusal));
        status
    }
}

/// The status that [`grpc::respond`] would answer with; its `source()` is the refusal.
impl From<CircuitOpen> for Status {
    fn from(refusal: CircuitOpen) -> Self {
        let mut status = status_of(&refusal);
        status.set_source(Arc::new(refusal));
        status
    }
}

impl Clone for Cause {
    // The copy makes its own when asked: a `Status` is dear and derived.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Cause {
    // Derived from the refusal that holds it, so it never tells two of them apart.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Cause {}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cause")
    }
}
