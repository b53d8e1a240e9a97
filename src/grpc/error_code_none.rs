use std::error::Error;

use super::Code;

/// Without feature `tonic` no error tells a code.
pub(super) fn in_chain(_head: &(dyn Error + 'static)) -> Option<Code> {
    None
}

/// As above.
pub(super) fn of<E: 'static>(_error: &E) -> Option<Code> {
    None
}
