//! Decisions of the engine, in the words of the handle.

use super::algorithm::Balance;
use super::allowed::Extra;
use super::engine::Decision;
use super::error::RateLimitedReason;
use super::ledger::Refused;
use super::limiter::Inner;
use super::rare::Rare;
use super::{Allowed, RateLimited, Standing};
use crate::clock::Nanos;
use crate::sync::Ordering;

/// What was decided apart.
///
/// Deliberately not a `Result`: that would be written where the caller's own goes, and then all of
/// that is made in memory, read or not, also where nothing is decided apart.
pub(super) enum Apart {
    Admitted(Allowed),
    Refused(RateLimited),
}

impl From<Result<Allowed, RateLimited>> for Apart {
    #[inline]
    fn from(decided: Result<Allowed, RateLimited>) -> Self {
        match decided {
            Ok(allowed) => Self::Admitted(allowed),
            Err(refusal) => Self::Refused(refusal),
        }
    }
}

impl From<Apart> for Result<Allowed, RateLimited> {
    #[inline]
    fn from(apart: Apart) -> Self {
        match apart {
            Apart::Admitted(allowed) => Ok(allowed),
            Apart::Refused(refusal) => Err(refusal),
        }
    }
}

impl Inner {
    /// Puts a decision in the words of the handle.
    pub(super) fn outcome(&self, decision: Decision) -> Result<Allowed, RateLimited> {
        let Decision { outcome, standings } = decision;
        let name = || self.name.clone();
        let refusal = match outcome {
            Ok(balance) => return Ok(allowed(balance, standings, None)),
            Err(Refused::Spent(shortfall)) => RateLimited::spent(name(), shortfall),
            Err(Refused::AboveBurst(balance)) => {
                RateLimited::for_good(name(), RateLimitedReason::CostAboveBurst, balance)
            }
        };
        if standings.is_empty() {
            return Err(refusal);
        }
        Err(refusal.with_standings(standings))
    }

    #[cold]
    pub(super) fn decide_apart(&self, now: Nanos, cost: u32) -> Apart {
        self.answer(self.engine.decide_apart(now, cost)).into()
    }

    /// As [`outcome`](Self::outcome); in shadow mode refusals turn into admissions and count.
    pub(super) fn answer(&self, decision: Decision) -> Result<Allowed, RateLimited> {
        self.outcome(decision).or_else(|refusal| {
            if !self.shadow {
                return Err(refusal);
            }
            self.held_back.fetch_add(1, Ordering::Relaxed);
            let standings = refusal.standings().to_vec();
            Ok(allowed(standings[0].0, standings, Some(refusal)))
        })
    }
}

pub(super) fn allowed(
    balance: Balance,
    standings: Vec<Standing>,
    refusal: Option<RateLimited>,
) -> Allowed {
    let mut allowed = Allowed::new(balance);
    if !standings.is_empty() || refusal.is_some() {
        allowed.extra = Rare::new(Extra {
            standings,
            refusal,
            waited: Nanos::ZERO,
        });
    }
    allowed
}
