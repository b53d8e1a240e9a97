//! Where the states of one limiter live, and every step that changes them.

use super::algorithm::{Balance, Mark, Shortfall};
use super::ledger::{Ledger, Refused};
use super::live::LiveGcra;
use super::{Algorithm, Quota, Standing};
use crate::ConfigError;
use crate::clock::Nanos;
use crate::sync::Mutex;

/// One lock-free word for a single GCRA quota; a ledger under a short lock for anything else.
#[derive(Debug)]
pub(crate) struct Engine {
    /// Closed for good where there is a ledger.
    live: LiveGcra,
    ledger: Option<Mutex<Ledger>>,
}

/// An admission, or what to refuse with, and how all quotas stand (empty where there is one).
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) outcome: Result<Balance, Refused>,
    pub(crate) standings: Vec<Standing>,
}

/// What an admitted charge left in the books, for giving some of it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(super) generation: u64,
    pub(super) first: Mark,
    pub(super) rest: Vec<Mark>,
}

impl Engine {
    pub(crate) fn new(quotas: &[Quota]) -> Self {
        match *quotas {
            [quota] if quota.algorithm() == Algorithm::Gcra => Self {
                live: LiveGcra::new(quota),
                ledger: None,
            },
            _ => Self {
                live: LiveGcra::closed(quotas[0]),
                ledger: Some(Mutex::new(Ledger::new(quotas))),
            },
        }
    }

    /// Decides where one word is enough; `Err(None)` is for [`decide_apart`](Self::decide_apart).
    #[inline]
    pub(crate) fn decide(&self, now: Nanos, cost: u32) -> Result<Balance, Option<Shortfall>> {
        self.live.decide(now, cost)
    }

    /// Decides in every case, under a short lock.
    pub(crate) fn decide_apart(&self, now: Nanos, cost: u32) -> Decision {
        let Some(ledger) = &self.ledger else {
            return Decision::alone(self.live.decide_locked(now, cost));
        };
        let mut ledger = ledger.lock();
        let outcome = ledger.decide(now, cost);
        Decision::of(outcome, &ledger, now)
    }

    /// What [`decide`](Self::decide) would say, changing nothing.
    pub(crate) fn peek(&self, now: Nanos, cost: u32) -> Decision {
        self.read(|ledger| {
            let outcome = ledger.fits(now, cost).map(|()| ledger.balance(now));
            Decision::of(outcome, ledger, now)
        })
    }

    /// Charges `cost` at `now` if it fits at `at`, an instant not later, so that some of it can be
    /// given back.
    pub(crate) fn grant(&self, at: Nanos, now: Nanos, cost: u32) -> (Decision, Option<Grant>) {
        let Some(ledger) = &self.ledger else {
            return match self.live.grant(at, now, cost) {
                Ok((balance, grant)) => (Decision::alone(Ok(balance)), Some(grant)),
                Err(refused) => (Decision::alone(Err(refused)), None),
            };
        };
        let mut ledger = ledger.lock();
        let granted = ledger.grant(at, now, cost);
        let grant = granted.as_ref().ok().cloned();
        let outcome = granted.map(|_| ledger.balance(now));
        (Decision::of(outcome, &ledger, now), grant)
    }

    /// Gives back up to `cost` of `grant`, as far as time has not given it back yet.
    ///
    /// `now` reads the clock, and is asked once the state is known: by a reading made before,
    /// what others have been admitted for since would be given back a second time.
    pub(crate) fn refund(&self, grant: &Grant, now: impl Fn() -> Nanos, cost: u32) {
        match &self.ledger {
            None => self.live.refund(grant, now, cost),
            Some(ledger) => {
                let mut ledger = ledger.lock();
                let now = now();
                ledger.refund(grant, now, cost);
            }
        }
    }

    /// Charges `cost` whether it fits or not.
    pub(crate) fn charge(&self, now: Nanos, cost: u32) {
        match &self.ledger {
            None => self.live.charge(now, cost),
            Some(ledger) => ledger.lock().charge(now, cost),
        }
    }

    /// Looks at rules and states as they stand.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T {
        match &self.ledger {
            Some(ledger) => look(&ledger.lock()),
            None => {
                let (rule, state) = self.live.read();
                look(&Ledger::of_gcra(rule, state))
            }
        }
    }

    /// Replaces all quotas by others of the same algorithms.
    pub(crate) fn set_quotas(&self, quotas: &[Quota], now: Nanos) -> Result<(), ConfigError> {
        let Some(ledger) = &self.ledger else {
            same_kinds(&[self.live.read().0.quota()], quotas)?;
            self.live.set_quota(quotas[0], now);
            return Ok(());
        };
        let mut ledger = ledger.lock();
        same_kinds(&ledger.quotas(), quotas)?;
        ledger.set_quotas(quotas, now);
        Ok(())
    }
}

impl Decision {
    fn alone(outcome: Result<Balance, Refused>) -> Self {
        let standings = Vec::new();
        Self { outcome, standings }
    }

    fn of(outcome: Result<Balance, Refused>, ledger: &Ledger, now: Nanos) -> Self {
        if ledger.is_single() {
            return Self::alone(outcome);
        }
        let standings = ledger.standings(now);
        Self { outcome, standings }
    }
}

fn same_kinds(old: &[Quota], new: &[Quota]) -> Result<(), ConfigError> {
    let kinds =
        |quotas: &[Quota]| -> Vec<Algorithm> { quotas.iter().map(Quota::algorithm).collect() };
    if kinds(old) == kinds(new) {
        return Ok(());
    }
    Err(ConfigError::new(
        "quota",
        new,
        "as many quotas as the limiter has, of the same algorithms in the same order",
    ))
}
