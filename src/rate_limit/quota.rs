use std::time::Duration;

use crate::ConfigError;

/// How many calls in how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    limit: u32,
    period: Duration,
}

impl Quota {
    /// `limit` calls per `period`, or an error that names the field out of range.
    ///
    /// # Errors
    ///
    /// Where `limit` is 0.
    pub fn try_with_period(limit: u32, period: Duration) -> Result<Self, ConfigError> {
        if limit == 0 {
            return Err(ConfigError::new("limit", limit, "1 or more"));
        }
        Ok(Self { limit, period })
    }
}
