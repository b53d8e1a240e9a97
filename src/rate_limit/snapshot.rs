use super::Standing;
use crate::Name;

/// How a limiter stood at one instant, from [`RateLimiter::snapshot`](super::RateLimiter::snapshot).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub(super) name: Option<Name>,
    pub(super) standings: Vec<Standing>,
    pub(super) waiting: usize,
    pub(super) held_back: u64,
}

impl Snapshot {
    /// The limiter's name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// How many calls of cost 1 would be admitted now, by all quotas.
    pub fn remaining(&self) -> u32 {
        let remaining = self.standings.iter().map(Standing::remaining);
        remaining.min().unwrap_or(0)
    }

    /// How each quota stands, in the order they were given.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// How many calls wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many calls shadow mode has admitted that would have been refused, since the limiter
    /// was made.
    pub fn held_back(&self) -> u64 {
        self.held_back
    }
}
