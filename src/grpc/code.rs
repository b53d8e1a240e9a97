use std::fmt;

/// A gRPC status code, as in
/// [the list of codes](https://github.com/grpc/grpc/blob/master/doc/statuscodes.md).
///
/// With feature `tonic` it converts from and into `tonic::Code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the list of codes is their documentation
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    /// All 17, in the order of their numbers.
    pub const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// The number on the wire, as text.
    pub(crate) const fn digits(self) -> &'static str {
        const DIGITS: [&str; 17] = [
            "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
            "16",
        ];
        DIGITS[self as usize]
    }

    /// Reads the value of a `grpc-status`: `None` for anything but the 17 numbers.
    pub(crate) fn from_bytes(value: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|code| code.digits().as_bytes() == value)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_reads_back_from_its_digits() {
        for (number, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, number, "the list is in order");
            assert_eq!(code.digits(), number.to_string());
            assert_eq!(Code::from_bytes(code.digits().as_bytes()), Some(code));
        }
    }

    #[test]
    fn what_is_no_code_reads_as_none() {
        for value in [
            "", "17", "-1", "00", "01", " 0", "0 ", "0,0", "ok", "\u{ff}",
        ] {
            assert_eq!(Code::from_bytes(value.as_bytes()), None, "{value:?}");
        }
    }
}
