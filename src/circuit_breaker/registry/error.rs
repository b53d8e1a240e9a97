use std::fmt;

/// Why a registry did not give a breaker. Nothing has been changed when one is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegistryError {
    /// The registry holds as many breakers as it may, and none that it looked at may go.
    Full {
        /// The cap, as set by `max_keys`.
        max_keys: usize,
    },
    /// The key has a breaker already, with another policy.
    PolicyMismatch,
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { max_keys } => write!(f, "all {max_keys} breakers are in use"),
            Self::PolicyMismatch => f.write_str("the key has a breaker with another policy"),
        }
    }
}

impl std::error::Error for RegistryError {}
