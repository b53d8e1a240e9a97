use std::fmt;

use super::classify::Outcome;

/// How an admitted call ended, in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallEnd {
    /// Its outcome was [`Outcome::Success`].
    Success,
    /// Its outcome was [`Outcome::Failure`].
    Failure,
    /// Its outcome was [`Outcome::Ignored`].
    Ignored,
    /// It was dropped before it had an outcome.
    Cancelled,
    /// It panicked.
    Panicked,
}

impl From<Outcome> for CallEnd {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Success => Self::Success,
            Outcome::Failure => Self::Failure,
            Outcome::Ignored => Self::Ignored,
        }
    }
}

impl fmt::Display for CallEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Ignored => "ignored",
            Self::Cancelled => "cancelled",
            Self::Panicked => "panicked",
        })
    }
}
