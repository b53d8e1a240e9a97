//! The generic cell rate algorithm in one word, exact at any rate.
//!
//! # Arithmetic
//!
//! The textbook keeps an arrival time (TAT) in nanoseconds and moves it by one interval,
//! `period / limit`, per call. Where that is no whole number, rounding it changes the rate: by
//! 0.04 % at 700,000 per second, and to nothing or to half at a rate near one per nanosecond. So
//! it is time that is scaled here, not the interval. One call costs `call` units, a whole number,
//! and a nanosecond is worth `U = call × limit / period` units:
//!
//! - where the interval is a whole number of nanoseconds, `call` is that number and `U = 1`: all
//!   is in nanoseconds and exact;
//! - otherwise `call = 2^f` with `f` such that `1 ≤ U < 2`.
//!
//! The time in units is `u(now) = ⌊now × R / 2^63⌋` with `R = ⌈U × 2^63⌉`: one multiplication, and
//! none where `U = 1`.
//! A call is admitted when `max(TAT, u(now)) + call ≤ u(now) + burst × call`, and moves TAT to the
//! left side.
//!
//! **Never more than promised.** Between two instants `t` apart `u` grows by less than
//! `U (1 + 2^-63) t + 1`, and one unit is at most a nanosecond's worth (`U ≥ 1`). So a span `t`
//! admits at most `burst + rate × (t + 1 ns)`, the rate true to one part in 2^63; where `U = 1`
//! there is no rounding and the promise is `burst + rate × t`.
//!
//! **Never less.** `R` is rounded up, so two instants `k` intervals apart are at least `k × call`
//! units apart whatever the phase: a caller at exactly the rate is never refused.
//!
//! # The word
//!
//! 0 is fresh. TAT stays below 2^63 for 73 years of uptime at the very least (146 for all but the
//! slowest quotas; half of it where quotas were replaced); after that, time stands still. The top bit marks a debt: a TAT further ahead
//! than a full bucket because someone settled for more than was there. Without the mark, such a
//! TAT only means that the clock went back, and no wait longer than a full bucket's is quoted.

use super::balance::Scale;
use super::{Balance, Rule, Shortfall};
use crate::clock::Nanos;
use crate::rate_limit::Quota;

/// One, as the fixed-point number that rates are.
const ONE: u64 = 1 << 63;
/// The mark of a state that is ahead of a full bucket because of a debt.
const DEBT: u64 = 1 << 63;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gcra {
    /// Units a nanosecond, in 2^-63; from 1 to below 2.
    pub(in crate::rate_limit) rate: u64,
    /// Units a call.
    pub(in crate::rate_limit) call: u64,
    /// Units a full bucket.
    pub(in crate::rate_limit) full: u64,
    /// The last instant whose sums stay below the mark; later ones count as it.
    pub(in crate::rate_limit) last: u64,
    /// The last instant until which a nanosecond is one unit: `last`, or 0 where it is more.
    pub(in crate::rate_limit) whole: u64,
    pub(in crate::rate_limit) quota: Quota,
    pub(in crate::rate_limit) scale: Scale,
}

/// A charge that fits.
#[derive(Clone, Copy, Debug)]
pub(in crate::rate_limit) struct Step {
    pub(in crate::rate_limit) next: u64,
    /// The time in units.
    units: u64,
}

impl Gcra {
    /// Exact at any rate; the state means something under this quota only.
    pub(crate) fn scaled(quota: Quota) -> Self {
        let (period, limit) = (quota.period_nanos(), u64::from(quota.limit()));
        if period.is_multiple_of(limit) {
            return Self::with(quota, ONE, period / limit, Scale::Quota);
        }
        // The least power of two not below the interval. `limit << f` is below 2 × 2^60.
        let f = (period / limit).ilog2() + 1;
        let f = if limit << (f - 1) >= period { f - 1 } else { f };
        let rate = (u128::from(limit << f) << 63).div_ceil(u128::from(period));
        Self::with(quota, rate as u64, 1 << f, Scale::Quota)
    }

    /// In whole nanoseconds, the interval rounded up: the state means the same under every quota
    /// (full again at that instant), at the price of a rate lower by up to 1 ns in the interval.
    pub(crate) fn in_nanos(quota: Quota) -> Self {
        let call = quota.period_nanos().div_ceil(u64::from(quota.limit()));
        Self::with(quota, ONE, call, Scale::Nanos)
    }

    fn with(quota: Quota, rate: u64, call: u64, scale: Scale) -> Self {
        // A fill of at most 36 years is below 2^60 ns, below 2^61 units.
        let full = call * u64::from(quota.burst_size());
        let gcra = Self {
            rate,
            call,
            full,
            last: 0,
            whole: 0,
            quota,
            scale,
        };
        gcra.leaving(0)
    }

    pub(in crate::rate_limit) fn whole(rate: u64, last: u64) -> u64 {
        if rate == ONE { last } else { 0 }
    }

    /// The same for states that leave `above` units free below the mark.
    pub(in crate::rate_limit) fn leaving(self, above: u64) -> Self {
        // Half above the time for a full bucket, half for the charge that comes on top.
        let highest = (DEBT - 1)
            .saturating_sub(2 * self.full)
            .saturating_sub(above);
        let last = ((u128::from(highest) + 1) << 63).saturating_sub(1) / u128::from(self.rate);
        let last = u64::try_from(last).unwrap_or(u64::MAX);
        Self {
            last,
            whole: Self::whole(self.rate, last),
            ..self
        }
    }

    #[inline]
    pub(crate) fn quota(&self) -> Quota {
        self.quota
    }

    /// The time in units.
    #[inline]
    pub(in crate::rate_limit) fn units(&self, now: Nanos) -> u64 {
        let now = now.as_u64();
        // One comparison for both, the usual scale and the end of time: the product would keep the
        // swap that follows waiting for longer than all other arithmetic together.
        if now <= self.whole {
            return now;
        }
        let now = now.min(self.last);
        ((u128::from(now) * u128::from(self.rate)) >> 63) as u64
    }

    /// The first instant whose time in units is `units` or more.
    fn instant(&self, units: u64) -> Nanos {
        let nanos = (u128::from(units) << 63).div_ceil(u128::from(self.rate));
        Nanos::new(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many nanoseconds from `from` on until `units` more units have passed.
    pub(in crate::rate_limit) fn nanos_to_pass(&self, from: Nanos, units: u64) -> u64 {
        let from = Nanos::new(from.as_u64().min(self.last));
        let until = self.instant(self.units(from).saturating_add(units));
        until.as_u64() - from.as_u64()
    }

    /// The nanoseconds until `state` is full, and the instant that is counted from: a later one
    /// than `now` where the state proves that the clock went back.
    pub(in crate::rate_limit) fn time_to_full(&self, state: u64, now: Nanos) -> (Nanos, u64) {
        let seen = if state & DEBT == 0 {
            self.instant(state.saturating_sub(self.full))
        } else {
            Nanos::ZERO
        };
        let now = now.max(seen);
        let load = (state & !DEBT).saturating_sub(self.units(now));
        (now, self.nanos_to_pass(now, load))
    }

    /// The units that `nanos` until full are worth; no more than a full bucket.
    fn load_of(&self, nanos: u64, now: Nanos) -> u64 {
        let now = now.as_u64().min(self.last);
        let until = self.units(Nanos::new(now.saturating_add(nanos)));
        (until - self.units(Nanos::new(now))).min(self.full)
    }

    /// How many calls fit on top of a bucket `load` units from full.
    pub(in crate::rate_limit) fn left(&self, load: u64) -> u32 {
        (self.full.saturating_sub(load) / self.call) as u32
    }

    #[inline]
    pub(in crate::rate_limit) fn balance_of(&self, load: u64, now: Nanos) -> Balance {
        match self.scale {
            Scale::Quota => self.balance_in_units(load, now),
            Scale::Nanos => Balance::in_nanos(self.quota, load, 0),
        }
    }

    #[inline]
    fn balance_in_units(&self, load: u64, now: Nanos) -> Balance {
        // Cut as `units` cuts it, which makes it no dearer.
        let now = now.as_u64().min(self.last);
        Balance::in_units(self.quota, load, Nanos::new(now))
    }

    /// The highest state that `cost` still fits on.
    #[inline]
    pub(in crate::rate_limit) fn room(&self, units: u64, cost: u64) -> u64 {
        units.wrapping_add(self.full.wrapping_sub(cost))
    }

    /// How far `state` is from full. More than a full bucket only in debt: without the mark it
    /// means that the clock went back.
    #[inline]
    pub(in crate::rate_limit) fn load(&self, state: u64, units: u64) -> u64 {
        let ahead = (state & !DEBT).saturating_sub(units);
        if state & DEBT == 0 {
            ahead.min(self.full)
        } else {
            ahead
        }
    }

    /// The state after a charge of `cost` at `units`, if it fits.
    fn admit(&self, state: u64, units: u64, cost: u64) -> Option<u64> {
        let tat = state & !DEBT;
        (tat <= self.room(units, cost)).then(|| tat.max(units) + cost)
    }

    /// The next state, if `cost` fits on `state` now, or what it lacks; of the units of
    /// [`scaled`](Self::scaled) only.
    ///
    /// `Err(None)` where that is not all there is to say: a state with a mark, a cost of 0 or above
    /// the burst.
    #[inline(always)] // part of `RateLimiter::check_at`
    pub(in crate::rate_limit) fn attempt(
        &self,
        state: u64,
        now: Nanos,
        cost: u32,
    ) -> Result<Step, Option<Shortfall>> {
        // A cost of 1 is always plain, and the comparison goes where it is constant.
        if cost != 1 && (cost == 0 || cost > self.quota.burst_size()) {
            return Err(None);
        }
        let units = self.units(now);
        // Wrapping: nothing overflows in numbers of one quota, and a live limiter may read half of
        // the numbers of the next one, which it then finds out.
        let charge = u64::from(cost).wrapping_mul(self.call);
        if state <= self.room(units, charge) {
            let next = state.max(units).wrapping_add(charge);
            return Ok(Step { next, units });
        }
        if is_marked(state) {
            return Err(None);
        }
        let load = state.wrapping_sub(units).min(self.full);
        let lacking = load.wrapping_add(charge).wrapping_sub(self.full);
        let balance = self.balance_in_units(load, now);
        Err(Some(Shortfall { balance, lacking }))
    }

    /// What a step leaves. Apart from [`attempt`](Self::attempt), so that nothing is made for a
    /// swap that fails, or for a caller that does not look.
    #[inline(always)] // as `attempt`
    pub(in crate::rate_limit) fn left_by(&self, step: &Step, now: Nanos) -> Balance {
        self.balance_in_units(step.next.wrapping_sub(step.units), now)
    }

    #[inline]
    pub(in crate::rate_limit) fn shortfall(
        &self,
        load: u64,
        lacking: u64,
        now: Nanos,
    ) -> Shortfall {
        Shortfall {
            balance: self.balance_of(load, now),
            lacking,
        }
    }
}

impl Rule for Gcra {
    type State = u64;

    fn fits(&self, state: &u64, now: Nanos, cost: u32) -> Result<(), Shortfall> {
        self.decide(&mut state.clone(), now, cost).map(drop)
    }

    #[inline]
    fn decide(&self, state: &mut u64, now: Nanos, cost: u32) -> Result<Balance, Shortfall> {
        let units = self.units(now);
        let cost = u64::from(cost) * self.call;
        if cost != 0
            && let Some(next) = self.admit(*state, units, cost)
        {
            *state = next;
            return Ok(self.balance_of(next - units, now));
        }
        let load = self.load(*state, units);
        match (load + cost).checked_sub(self.full) {
            Some(lacking) if lacking > 0 => Err(self.shortfall(load, lacking, now)),
            _ => Ok(self.balance_of(load, now)),
        }
    }

    fn balance(&self, state: &u64, now: Nanos) -> Balance {
        self.balance_of(self.load(*state, self.units(now)), now)
    }

    fn is_fresh(&self, state: &u64, now: Nanos) -> bool {
        state & !DEBT <= self.units(now)
    }

    fn ready(&self, state: &u64, from: Nanos, cost: u32) -> Nanos {
        if cost == 0 && !is_marked(*state) {
            return from;
        }
        let cost = u64::from(cost) * self.call;
        let needed = (state & !DEBT).saturating_sub(self.full - cost);
        if needed <= self.units(from) {
            from
        } else {
            let ready = self.instant(needed);
            // Time stands still after `last`: what has not come by then never comes.
            if ready.as_u64() > self.last {
                Nanos::MAX
            } else {
                ready
            }
        }
    }

    fn charge(&self, state: &mut u64, now: Nanos, cost: u32) {
        if cost == 0 {
            return;
        }
        let units = self.units(now);
        let cost = u64::from(cost).saturating_mul(self.call);
        let tat = (*state & !DEBT)
            .max(units)
            .saturating_add(cost)
            .min(DEBT - 2);
        let mark = if tat > units + self.full { DEBT } else { 0 };
        *state = tat | mark;
    }

    fn mark(&self, state: &u64, _now: Nanos) -> u64 {
        state & !DEBT
    }

    /// While `mark`, less what other refunds took off since, is still ahead of the time, the
    /// bucket has not been full since the charge: the history is the same as one in which less
    /// was charged, and the promise holds for that one. No more than that distance is given back.
    fn refund(&self, state: &mut u64, now: Nanos, cost: u32, mark: u64, returned: u64) -> u64 {
        let units = self.units(now);
        let unpaid = mark.saturating_sub(returned).saturating_sub(units);
        let given = u64::from(cost).saturating_mul(self.call).min(unpaid);
        let tat = (*state & !DEBT).saturating_sub(given);
        let still_in_debt = *state & DEBT != 0 && tat > units + self.full;
        *state = tat | if still_in_debt { DEBT } else { 0 };
        given
    }

    fn carry(&self, before: &Self, old: &u64, now: Nanos) -> u64 {
        if (before.quota, before.scale) == (self.quota, self.scale) {
            return *old;
        }
        let (now, load) = before.time_to_full(*old, now);
        self.units(now) + self.load_of(load, now)
    }
}

/// Whether a state is in debt (or, of a live limiter, sealed).
#[inline]
pub(in crate::rate_limit) fn is_marked(state: u64) -> bool {
    state & DEBT != 0
}

pub(in crate::rate_limit) const fn unmarked(state: u64) -> u64 {
    state & !DEBT
}
