use crate::reject::Refusal;

/// Nothing stands behind a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cause(());

impl Cause {
    pub(crate) fn source(
        &self,
        _refusal: &impl Refusal,
    ) -> Option<&(dyn std::error::Error + 'static)> {
        None
    }
}
