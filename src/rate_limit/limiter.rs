use std::fmt;

use super::algorithm::Balance;
use super::allowed::Extra;
use super::error::RateLimitedReason;
use super::ledger::{Ledger, Refused};
use super::live::{Lack, LiveGcra};
use super::{Algorithm, Allowed, Quota, RateLimited, RateLimiterBuilder, Standing};
use crate::clock::{Clock, Nanos};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::{ConfigError, Name};

/// A rate limit as a plain handle. Clones share one state.
///
/// ```
/// use tower_sluice::rate_limit::{Quota, RateLimiter};
///
/// let limiter = RateLimiter::new(Quota::per_second(100).burst(2));
/// assert_eq!(limiter.check()?.remaining(), 1);
/// limiter.clone().check()?;
/// let refusal = limiter.check().unwrap_err();
/// assert!(refusal.retry_after().unwrap() <= std::time::Duration::from_millis(10));
/// # Ok::<(), tower_sluice::rate_limit::RateLimited>(())
/// ```
#[derive(Clone)]
pub struct RateLimiter(Arc<Inner>);

struct Inner {
    /// The state of a single GCRA quota; closed for good where there is a ledger.
    live: LiveGcra,
    /// The states of anything else.
    ledger: Option<Mutex<Ledger>>,
    clock: Clock,
    name: Option<Name>,
    shadow: bool,
    held_back: AtomicU64,
}

impl RateLimiter {
    /// Makes a limiter of one quota, without a name, on tokio's clock.
    pub fn new(quota: Quota) -> Self {
        Self::from_builder(Self::builder(quota))
    }

    /// Starts making a limiter with more than a quota.
    ///
    /// ```
    /// use tower_sluice::rate_limit::{Quota, RateLimiter};
    ///
    /// let limiter = RateLimiter::builder(Quota::per_second(10))
    ///     .quota(Quota::per_hour(1_000))
    ///     .name("search")
    ///     .build()?;
    /// assert_eq!(limiter.name(), Some("search"));
    /// # Ok::<(), tower_sluice::ConfigError>(())
    /// ```
    pub fn builder(quota: Quota) -> RateLimiterBuilder {
        RateLimiterBuilder::new(quota)
    }

    pub(super) fn from_builder(builder: RateLimiterBuilder) -> Self {
        let first = builder.quotas[0];
        let (live, ledger) = match builder.quotas[..] {
            [quota] if quota.algorithm() == Algorithm::Gcra => (LiveGcra::new(quota), None),
            _ => (
                LiveGcra::closed(first),
                Some(Mutex::new(Ledger::new(&builder.quotas))),
            ),
        };
        Self(Arc::new(Inner {
            live,
            ledger,
            clock: builder.clock,
            name: builder.name,
            shadow: builder.shadow,
            held_back: AtomicU64::new(0),
        }))
    }

    /// Asks for one call. Admits and charges it, or refuses and charges nothing.
    ///
    /// # Errors
    ///
    /// [`RateLimited`] where a quota is spent.
    #[inline]
    pub fn check(&self) -> Result<Allowed, RateLimited> {
        self.check_at(self.0.clock.now(), 1)
    }

    /// Asks for a call that costs `cost`.
    ///
    /// A cost of 0 spends nothing, and is refused only while a debt is outstanding. A cost above
    /// the burst (of any quota) is refused for good, with
    /// [`CostAboveBurst`](RateLimitedReason::CostAboveBurst) and no `retry_after`.
    ///
    /// # Errors
    ///
    /// [`RateLimited`] where a quota is spent, or never admits such a cost.
    #[inline]
    pub fn check_n(&self, cost: u32) -> Result<Allowed, RateLimited> {
        self.check_at(self.0.clock.now(), cost)
    }

    /// As [`check_n`](Self::check_n), at a reading of the limiter's clock already made.
    #[inline]
    pub(crate) fn check_at(&self, now: Nanos, cost: u32) -> Result<Allowed, RateLimited> {
        match self.0.live.decide(now, cost) {
            Ok(balance) => Ok(Allowed::new(balance)),
            Err(Lack::Spent(shortfall)) if !self.0.shadow => {
                Err(RateLimited::spent(self.0.name.clone(), shortfall))
            }
            Err(lack) => self.0.decide_apart(lack, now, cost),
        }
    }

    /// What a call of cost 1 would find, spending nothing.
    ///
    /// # Errors
    ///
    /// The [`RateLimited`] that [`check`](Self::check) would refuse with now.
    pub fn peek(&self) -> Result<Allowed, RateLimited> {
        self.peek_at(self.0.clock.now(), 1)
    }

    /// What a call of cost `cost` would find, spending nothing.
    ///
    /// # Errors
    ///
    /// The [`RateLimited`] that [`check_n`](Self::check_n) would refuse with now.
    pub fn peek_n(&self, cost: u32) -> Result<Allowed, RateLimited> {
        self.peek_at(self.0.clock.now(), cost)
    }

    pub(crate) fn peek_at(&self, now: Nanos, cost: u32) -> Result<Allowed, RateLimited> {
        let ledger = self.0.ledger();
        let decision = match ledger.fits(now, cost) {
            Ok(()) => Ok(ledger.balance(now)),
            Err(refused) => Err(refused),
        };
        self.0.answer(decision, &ledger, now)
    }

    /// The limiter's name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// The quotas, in the order they were given.
    pub fn quotas(&self) -> Vec<Quota> {
        self.0.ledger().quotas()
    }

    /// The clock the limiter reads.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The clock, to be replaced while no clone exists.
    #[allow(dead_code)] // for the layer's `.clock()`
    pub(crate) fn clock_mut(&mut self) -> Option<&mut Clock> {
        Arc::get_mut(&mut self.0).map(|inner| &mut inner.clock)
    }

    /// The name, to be replaced while no clone exists.
    #[allow(dead_code)] // for the layer's `.named()`
    pub(crate) fn name_mut(&mut self) -> Option<&mut Option<Name>> {
        Arc::get_mut(&mut self.0).map(|inner| &mut inner.name)
    }

    /// Replaces the quota, in force at once for all clones.
    ///
    /// The time to full is kept, but no longer than the new quota takes to fill: a limiter half
    /// spent under a quota that fills in a minute is full again in 30 s under the new one too.
    /// Nothing is given for free, and setting the same quota again changes nothing.
    ///
    /// # Errors
    ///
    /// Where the limiter has several quotas, or the new one has another algorithm. Nothing is
    /// changed then.
    pub fn set_quota(&self, quota: Quota) -> Result<(), ConfigError> {
        self.set_quotas(&[quota])
    }

    /// Replaces all quotas, in order, as [`set_quota`](Self::set_quota) does one.
    ///
    /// # Errors
    ///
    /// Where there are more or fewer quotas than before, or one has another algorithm. Nothing is
    /// changed then.
    pub fn set_quotas(&self, quotas: &[Quota]) -> Result<(), ConfigError> {
        let now = self.0.clock.now();
        let Some(ledger) = &self.0.ledger else {
            same_kinds(&[self.0.live.read().0.quota()], quotas)?;
            self.0.live.set_quota(quotas[0], now);
            return Ok(());
        };
        let mut ledger = ledger.lock();
        same_kinds(&ledger.quotas(), quotas)?;
        ledger.set_quotas(quotas, now);
        Ok(())
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

impl Inner {
    /// What [`LiveGcra::decide`] leaves over: a ledger, a quota being replaced, shadow mode, a
    /// cost above the burst.
    #[cold]
    fn decide_apart(&self, mut lack: Lack, now: Nanos, cost: u32) -> Result<Allowed, RateLimited> {
        if let Some(ledger) = &self.ledger {
            let mut ledger = ledger.lock();
            let decision = ledger.decide(now, cost);
            return self.answer(decision, &ledger, now);
        }
        loop {
            let refusal = match lack {
                Lack::Spent(shortfall) => RateLimited::spent(self.name.clone(), shortfall),
                Lack::AboveBurst(balance) => self.above_burst(balance),
                Lack::Sealed => {
                    self.live.settle();
                    match self.live.decide(now, cost) {
                        Ok(balance) => return Ok(Allowed::new(balance)),
                        Err(again) => lack = again,
                    }
                    continue;
                }
            };
            return self.refuse(refusal);
        }
    }

    fn above_burst(&self, balance: Balance) -> RateLimited {
        let reason = RateLimitedReason::CostAboveBurst;
        RateLimited::for_good(self.name.clone(), reason, balance)
    }

    /// Puts a ledger's decision in the words of the handle.
    fn answer(
        &self,
        decision: Result<Balance, Refused>,
        ledger: &Ledger,
        now: Nanos,
    ) -> Result<Allowed, RateLimited> {
        let standings = ledger.standings(now);
        let refusal = match decision {
            Ok(balance) => return Ok(allowed(balance, standings, None)),
            Err(Refused::Spent(shortfall)) => RateLimited::spent(self.name.clone(), shortfall),
            Err(Refused::AboveBurst(balance)) => self.above_burst(balance),
        };
        if standings.len() == 1 {
            return self.refuse(refusal);
        }
        self.refuse(refusal.with_standings(standings.into()))
    }

    /// The refusal; or, in shadow mode, an admission that carries it.
    fn refuse(&self, refusal: RateLimited) -> Result<Allowed, RateLimited> {
        if !self.shadow {
            return Err(refusal);
        }
        self.held_back.fetch_add(1, Ordering::Relaxed);
        let standings = refusal.standings().to_vec();
        Ok(allowed(standings[0].0, standings, Some(refusal)))
    }

    /// A copy of rules and states to look at or to plan on.
    fn ledger(&self) -> Ledger {
        match &self.ledger {
            Some(ledger) => ledger.lock().clone(),
            None => {
                let (rule, state) = self.live.read();
                Ledger::of_gcra(rule, state)
            }
        }
    }
}

fn allowed(balance: Balance, standings: Vec<Standing>, refusal: Option<RateLimited>) -> Allowed {
    let mut allowed = Allowed::new(balance);
    if standings.len() > 1 || refusal.is_some() {
        allowed.extra = Some(Box::new(Extra { standings, refusal }));
    }
    allowed
}

impl From<Quota> for RateLimiter {
    fn from(quota: Quota) -> Self {
        Self::new(quota)
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiter")
            .field("name", &self.name())
            .field("quotas", &self.quotas())
            .field("clock", &self.0.clock)
            .finish()
    }
}
