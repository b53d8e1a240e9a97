//! One GCRA quota shared by threads: one atomic word of state, and numbers that may be replaced.
//!
//! # Replacing the quota
//!
//! The state means something only together with the numbers of its quota, so a decision must
//! never mix two of them, although it takes no lock. The state itself is the proof:
//!
//! - `set_quota` first swaps the state for [`SEALED`], then writes the numbers, then stores the
//!   new state. It never stores a value that the word has held before under another quota (it
//!   picks the offset of the new quota's time so that its states are all above the old ones;
//!   only after a debt of decades does it start again below).
//! - A decision reads the state, then the numbers. To admit, it swaps the state it read for the
//!   next one: if that succeeds, the word held that state all along and the numbers belong to
//!   it. To refuse, it reads the state once more, for the same reason. It writes nothing.
//!
//! Refunds lower the state, but only under the numbers it was made with, so a value that comes
//! back within one quota is still right.

use super::Quota;
use super::algorithm::{Balance, Gcra, Rule, Scale, Shortfall, is_marked, unmarked};
use super::engine::Grant;
use super::ledger::Refused;
use super::refunds::Refunds;
use crate::clock::Nanos;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Stands in for the state while the quota is being replaced; above every state there is.
const SEALED: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct LiveGcra {
    state: AtomicU64,
    rate: AtomicU64,
    call: AtomicU64,
    full: AtomicU64,
    last: AtomicU64,
    offset: AtomicU64,
    period: AtomicU64,
    /// Limit and burst.
    sizes: AtomicU64,
    control: Mutex<Control>,
}

/// What only those who change the quota or give back calls use.
#[derive(Debug)]
struct Control {
    rule: Gcra,
    /// The highest state the word has held.
    peak: u64,
    /// Counts changes of quota; a grant from before one gives nothing back.
    generation: u64,
    refunds: Refunds,
}

impl LiveGcra {
    pub(crate) fn new(quota: Quota) -> Self {
        let rule = Gcra::scaled(quota);
        let live = Self {
            state: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            call: AtomicU64::new(0),
            full: AtomicU64::new(0),
            last: AtomicU64::new(0),
            offset: AtomicU64::new(0),
            period: AtomicU64::new(0),
            sizes: AtomicU64::new(0),
            control: Mutex::new(Control {
                rule,
                peak: 0,
                generation: 0,
                refunds: Refunds::default(),
            }),
        };
        live.publish(&rule);
        live
    }

    /// A word that is sealed for good: whoever asks it is sent to the slow path.
    pub(crate) fn closed(quota: Quota) -> Self {
        let live = Self::new(quota);
        live.state.store(SEALED, Ordering::Release);
        live
    }

    fn publish(&self, rule: &Gcra) {
        let [period, sizes] = rule.quota().to_words();
        self.rate.store(rule.rate, Ordering::Release);
        self.call.store(rule.call, Ordering::Release);
        self.full.store(rule.full, Ordering::Release);
        self.last.store(rule.last, Ordering::Release);
        self.offset.store(rule.offset, Ordering::Release);
        self.period.store(period, Ordering::Release);
        self.sizes.store(sizes, Ordering::Release);
    }

    /// The numbers as they stand; a mixture of two quotas while they are being replaced.
    #[inline]
    fn rule(&self) -> Gcra {
        Gcra {
            rate: self.rate.load(Ordering::Acquire),
            call: self.call.load(Ordering::Acquire),
            full: self.full.load(Ordering::Acquire),
            last: self.last.load(Ordering::Acquire),
            offset: self.offset.load(Ordering::Acquire),
            quota: Quota::from_words([
                self.period.load(Ordering::Acquire),
                self.sizes.load(Ordering::Acquire),
            ]),
            scale: Scale::Quota,
        }
    }

    /// Charges `cost` at `now`, or says what it lacks. One load, and one swap where it admits.
    ///
    /// `Err(None)` where it takes [`decide_locked`](Self::decide_locked): a word sealed or in
    /// debt, a cost of 0 or above the burst.
    #[inline(always)] // part of `RateLimiter::check_at`
    pub(crate) fn decide(&self, now: Nanos, cost: u32) -> Result<Balance, Option<Shortfall>> {
        loop {
            let state = self.state.load(Ordering::Acquire);
            let rule = self.rule();
            let units = rule.units(now);
            let charge = u64::from(cost).wrapping_mul(rule.call);
            // A cost of 1 is always plain, and the comparison goes where it is constant.
            if cost != 1 && (cost == 0 || cost > rule.quota.burst_size()) {
                return Err(None);
            }
            if state <= rule.room(units, charge) {
                let next = state.max(units).wrapping_add(charge);
                if self.swap(state, next) {
                    return Ok(rule.balance_of(next.wrapping_sub(units), now));
                }
                continue;
            }
            if is_marked(state) {
                return Err(None);
            }
            if self.state.load(Ordering::Relaxed) == state {
                let load = state.wrapping_sub(units).min(rule.full);
                let lacking = load.wrapping_add(charge).wrapping_sub(rule.full);
                return Err(Some(rule.shortfall(load, lacking, now)));
            }
        }
    }

    /// As [`decide`](Self::decide), for every case, while nobody replaces the quota.
    pub(crate) fn decide_locked(&self, now: Nanos, cost: u32) -> Result<Balance, Refused> {
        let mut control = self.control.lock();
        self.update(&mut control, |rule, state| {
            if cost > rule.quota.burst_size() {
                return Err(Refused::AboveBurst(rule.balance(state, now)));
            }
            rule.decide(state, now, cost).map_err(Refused::Spent)
        })
    }

    #[inline]
    fn swap(&self, state: u64, next: u64) -> bool {
        self.state
            .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// The state and the numbers it was made with.
    pub(crate) fn read(&self) -> (Gcra, u64) {
        let control = self.control.lock();
        (control.rule, self.state.load(Ordering::Acquire))
    }

    /// Applies `change` to the state, as one step, while nobody replaces the quota.
    fn update<T>(&self, control: &mut Control, change: impl Fn(&Gcra, &mut u64) -> T) -> T {
        loop {
            let state = self.state.load(Ordering::Acquire);
            let mut next = state;
            let answer = change(&control.rule, &mut next);
            if next == state || self.swap(state, next) {
                control.peak = control.peak.max(unmarked(state)).max(unmarked(next));
                return answer;
            }
        }
    }

    /// Charges `cost` at `now` if it fits at `at` too, an instant not later.
    pub(crate) fn grant(
        &self,
        at: Nanos,
        now: Nanos,
        cost: u32,
    ) -> Result<(Balance, Grant), Refused> {
        let mut control = self.control.lock();
        self.update(&mut control, |rule, state| {
            if cost > rule.quota.burst_size() {
                return Err(Refused::AboveBurst(rule.balance(state, now)));
            }
            rule.fits(state, at, cost).map_err(Refused::Spent)?;
            let balance = rule.decide(state, now, cost).map_err(Refused::Spent)?;
            Ok((balance, rule.mark(state, now)))
        })
        .map(|(balance, state)| {
            let grant = Grant {
                generation: control.generation,
                first: control.refunds.mark(state),
                rest: Vec::new(),
            };
            (balance, grant)
        })
    }

    /// Gives back up to `cost` of `grant`, as far as time has not given it back yet.
    pub(crate) fn refund(&self, grant: &Grant, now: impl Fn() -> Nanos, cost: u32) {
        let mut control = self.control.lock();
        if grant.generation != control.generation {
            return;
        }
        let before = control.refunds.before(&grant.first);
        let given = self.update(&mut control, |rule, state| {
            rule.refund(state, now(), cost, grant.first.state, before)
        });
        control.refunds.gave(&grant.first, given);
    }

    /// Charges `cost` whether it fits or not.
    pub(crate) fn charge(&self, now: Nanos, cost: u32) {
        let mut control = self.control.lock();
        self.update(&mut control, |rule, state| rule.charge(state, now, cost));
    }

    /// Replaces the quota. The time to full stays, but for no more than the new quota's own.
    pub(crate) fn set_quota(&self, quota: Quota, now: Nanos) {
        let mut control = self.control.lock();
        if control.rule.quota() == quota {
            return;
        }
        // From here to the last line nobody decides; they wait for the lock we hold.
        let old = self.state.swap(SEALED, Ordering::AcqRel);
        control.peak = control.peak.max(unmarked(old));
        let (rule, state) = control.rule.replaced_by(quota, old, now, control.peak + 1);
        control.rule = rule;
        control.peak = state;
        control.generation += 1;
        self.publish(&rule);
        self.state.store(state, Ordering::Release);
    }
}
