use std::fmt;
use std::time::Duration;

use super::engine::Engine;
use super::ledger::Ledger;
use super::wait::Waiting;
use super::{Acquire, Allowed, Quota, RateLimited, RateLimiterBuilder, Reservation, Snapshot};
use crate::clock::{Clock, Nanos};
use crate::sync::{Arc, AtomicU64, Ordering};
use crate::{ConfigError, Name};

/// A rate limit as a plain handle. Clones share one state.
///
/// [`check`](Self::check) answers at once; [`wait`](Self::wait) waits for its turn;
/// [`reserve`](Self::reserve) is for costs known only afterwards. See the
/// [module](crate::rate_limit) for what is promised.
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
pub struct RateLimiter(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) engine: Engine,
    pub(super) clock: Clock,
    pub(super) name: Option<Name>,
    pub(super) waiting: Waiting,
    pub(super) shadow: bool,
    pub(super) held_back: AtomicU64,
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
        Self(Arc::new(Inner {
            engine: Engine::new(&builder.quotas),
            clock: builder.clock,
            name: builder.name,
            waiting: Waiting::new(builder.max_waiters),
            shadow: builder.shadow,
            held_back: AtomicU64::new(0),
        }))
    }

    /// Asks for one call: admits and charges it, or refuses and charges nothing.
    ///
    /// Never waits, also not behind those that do: see [`wait`](Self::wait).
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
    /// [`CostAboveBurst`](crate::rate_limit::RateLimitedReason::CostAboveBurst) and no `retry_after`.
    ///
    /// # Errors
    ///
    /// [`RateLimited`] where a quota is spent, or never admits such a cost.
    #[inline]
    pub fn check_n(&self, cost: u32) -> Result<Allowed, RateLimited> {
        self.check_at(self.0.clock.now(), cost)
    }

    /// As [`check_n`](Self::check_n), at a reading of the limiter's clock already made.
    #[inline(always)] // so that what the caller does not look at is not even made
    pub(crate) fn check_at(&self, now: Nanos, cost: u32) -> Result<Allowed, RateLimited> {
        match self.0.engine.decide(now, cost) {
            Ok(balance) => Ok(Allowed::new(balance)),
            Err(Some(shortfall)) if !self.0.shadow => {
                Err(RateLimited::spent(self.0.name.clone(), shortfall))
            }
            Err(_) => self.0.decide_apart(now, cost).into(),
        }
    }

    /// What a call of cost 1 would find, spending nothing.
    ///
    /// # Errors
    ///
    /// The [`RateLimited`] that [`check`](Self::check) would refuse with now, also in shadow mode.
    pub fn peek(&self) -> Result<Allowed, RateLimited> {
        self.peek_n(1)
    }

    /// What a call of cost `cost` would find, spending nothing.
    ///
    /// # Errors
    ///
    /// The [`RateLimited`] that [`check_n`](Self::check_n) would refuse with now, also in shadow
    /// mode.
    pub fn peek_n(&self, cost: u32) -> Result<Allowed, RateLimited> {
        let now = self.0.clock.now();
        self.0.outcome(self.0.engine.peek(now, cost))
    }

    /// Waits up to `max_wait` for one call's turn: first come, first served over all clones.
    ///
    /// As [`wait_n`](Self::wait_n) with a cost of 1.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_sluice::rate_limit::{Quota, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), tower_sluice::rate_limit::RateLimited> {
    /// let limiter = RateLimiter::new(Quota::per_second(2).burst(1));
    /// limiter.check()?;
    /// let allowed = limiter.wait(Duration::from_secs(1)).await?;
    /// assert_eq!(allowed.waited().as_millis(), 500);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(&self, max_wait: Duration) -> Acquire {
        self.wait_n(1, max_wait)
    }

    /// Waits up to `max_wait`, from now on, for the turn of a call that costs `cost`.
    ///
    /// Calls are served in the order in which they asked: the place is taken here, not when the
    /// future is first polled. One that cannot be served in
    /// time, behind those that wait already, is refused at once
    /// ([`WaitTooLong`](crate::rate_limit::RateLimitedReason::WaitTooLong)) and takes nothing; so is one for which
    /// there is no room ([`QueueFull`](crate::rate_limit::RateLimitedReason::QueueFull)), and, as ever, one that
    /// costs more than the burst.
    ///
    /// [`check`](Self::check) does not queue: it takes what is there, ahead of those who wait.
    /// They then wait longer, each at most to the end of its `max_wait`. A new quota is in force
    /// for those who wait, too: their turns are planned anew, and those that no longer fit are
    /// refused.
    ///
    /// In shadow mode nothing waits.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place, and what it was granted without being told; those
    /// behind it move up.
    ///
    /// # Panics
    ///
    /// The future, when it has to sleep outside a tokio runtime with a time driver; except on a
    /// [manual clock](Clock::manual).
    pub fn wait_n(&self, cost: u32, max_wait: Duration) -> Acquire {
        self.wait_at(self.0.clock.now(), cost, max_wait)
    }

    /// As [`wait_n`](Self::wait_n), from a reading of the limiter's clock already made.
    pub(crate) fn wait_at(&self, now: Nanos, cost: u32, max_wait: Duration) -> Acquire {
        Acquire::new(self.clone(), now, cost, now.plus(max_wait))
    }

    /// Admits a call whose cost is only known when it is over, and charges `estimate` for now.
    ///
    /// The guard [settles](Reservation::settle) the real cost; dropped, it gives the estimate
    /// back. Takes a short lock.
    ///
    /// # Errors
    ///
    /// As [`check_n`](Self::check_n) of the estimate.
    pub fn reserve(&self, estimate: u32) -> Result<Reservation, RateLimited> {
        Reservation::new(self, self.0.clock.now(), estimate)
    }

    /// The limiter's name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// The quotas, in the order they were given.
    pub fn quotas(&self) -> Vec<Quota> {
        self.0.engine.read(Ledger::quotas)
    }

    /// The clock the limiter reads.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// How the limiter stands now. Reading changes nothing.
    pub fn snapshot(&self) -> Snapshot {
        let now = self.0.clock.now();
        Snapshot {
            name: self.0.name.clone(),
            standings: self.0.engine.read(|ledger| ledger.standings(now)),
            waiting: self.0.waiting.len(),
            held_back: self.0.held_back.load(Ordering::Relaxed),
        }
    }

    /// The clock, to be replaced while no clone exists.
    pub(crate) fn clock_mut(&mut self) -> Option<&mut Clock> {
        Arc::get_mut(&mut self.0).map(|inner| &mut inner.clock)
    }

    /// Replaces the quota, in force at once for all clones and for those who wait.
    ///
    /// The time to full is kept, but no longer than the new quota takes to fill: a limiter half
    /// spent under a quota that fills in a minute is full again in 30 s under the new one too.
    /// Counts in windows stay, and the window ends when it would have, or one new period from now
    /// if that is sooner. Nothing is given for free, and setting the same quota again changes
    /// nothing. (What lies beyond the time the new quota takes to fill is forgotten: a quota that
    /// fills in a second, set for a moment in place of one that fills in an hour, wipes the slate.)
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
        self.0.engine.set_quotas(quotas, now)?;
        self.0.plan_anew(now);
        Ok(())
    }
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
