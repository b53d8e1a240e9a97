use std::any::Any;
use std::error::Error;

use tonic::Status;

use super::Code;
use crate::http::error_chain::links;

/// The code of the first `Status` from `head` down.
pub(super) fn in_chain(head: &(dyn Error + 'static)) -> Option<Code> {
    let status = links(head).find_map(|error| error.downcast_ref::<Status>())?;
    Some(status.code().into())
}

/// The code of an error of any type, where that is a `Status` or a boxed error over one.
pub(super) fn of<E: 'static>(error: &E) -> Option<Code> {
    let error: &dyn Any = error;
    if let Some(status) = error.downcast_ref::<Status>() {
        return Some(status.code().into());
    }
    let boxed = error.downcast_ref::<Box<dyn Error + Send + Sync>>()?;
    in_chain(&**boxed)
}

impl From<tonic::Code> for Code {
    fn from(code: tonic::Code) -> Self {
        // The numbers are those of the wire on both sides.
        Code::ALL[code as usize]
    }
}

impl From<Code> for tonic::Code {
    fn from(code: Code) -> Self {
        tonic::Code::from_i32(code as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_convert_both_ways() {
        for code in Code::ALL {
            assert_eq!(Code::from(tonic::Code::from(code)), code);
            assert_eq!(tonic::Code::from(code) as i32, code as i32);
        }
    }

    #[test]
    fn a_status_is_found_typed_boxed_and_deep() {
        let status = Status::data_loss("gone");
        assert_eq!(of(&status), Some(Code::DataLoss));
        let boxed: Box<dyn Error + Send + Sync> = status.into();
        assert_eq!(of(&boxed), Some(Code::DataLoss));
        let deep = crate::Error::<crate::rate_limit::RateLimited, _>::Inner(Status::aborted("x"));
        assert_eq!(in_chain(&deep), Some(Code::Aborted));
        assert_eq!(of(&std::io::Error::other("x")), None);
    }
}
