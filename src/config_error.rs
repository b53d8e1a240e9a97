use std::fmt;

/// A configuration that cannot be carried out: which field, the value given, what is allowed.
///
/// Returned by every `try_…` and `build`; the short constructors panic with the same text at the
/// caller's line. Nothing has been changed when one is returned.
///
/// ```
/// use std::time::Duration;
/// use tower_sluice::rate_limit::Quota;
///
/// let error = Quota::try_with_period(0, Duration::from_secs(1)).unwrap_err();
/// assert_eq!(error.field(), "limit");
/// assert_eq!(error.value(), "0");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    field: &'static str,
    value: String,
    allowed: &'static str,
}

impl ConfigError {
    /// Reports `value` as out of range for `field`; `allowed` completes "must be …".
    pub(crate) fn new(field: &'static str, value: impl fmt::Debug, allowed: &'static str) -> Self {
        Self {
            field,
            value: format!("{value:?}"),
            allowed,
        }
    }

    /// The field, by the name of the method that sets it.
    pub fn field(&self) -> &str {
        self.field
    }

    /// The value that was given, as text.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What the field may be, in words.
    pub fn allowed(&self) -> &str {
        self.allowed
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is {}, but must be {}",
            self.field, self.value, self.allowed
        )
    }
}

impl std::error::Error for ConfigError {}
