use std::fmt;
use std::sync::OnceLock;

use tonic::{Code, Status};

use crate::reject::{Refusal, RefusalKind};

/// The `Status` a refusal stands for, made when someone first looks for it: a refusal whose
/// chain nobody walks costs no allocation.
#[derive(Default)]
pub(crate) struct Cause(OnceLock<Status>);

impl Cause {
    pub(crate) fn source(
        &self,
        refusal: &impl Refusal,
    ) -> Option<&(dyn std::error::Error + 'static)> {
        let code = match refusal.kind() {
            RefusalKind::Limited => Code::ResourceExhausted,
            RefusalKind::Unavailable => Code::Unavailable,
        };
        Some(
            self.0
                .get_or_init(|| Status::new(code, refusal.to_string())),
        )
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
