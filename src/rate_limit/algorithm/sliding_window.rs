//! The counts of two neighbouring windows, the older one weighted.
//!
//! State: the instant at which nothing counts any more (the end of the window after this one),
//! and both counts in one word. At `now`, of the window before, `end - now - 1` of its `period`
//! instants lie among the last `period` ones, so `⌊before × (end - now - 1) / period⌋` is what it
//! weighs. Rounding down, and counting instants and not spans, is what lets a caller at exactly
//! the rate through: the call made one period ago no longer weighs.
//!
//! In a span `t` ending in this window, `t` no longer than it is old, only this window's calls
//! count: at most `limit`. In a longer one (but within a period) it is at most
//! `before + spent ≤ before + limit - ⌊before × (period - age - 1) / period⌋`, which is
//! `limit + ⌈before × (age + 1) / period⌉`, and `age ≤ t`.

use super::window::Edges;
use super::{Balance, Rule, Shortfall};
use crate::clock::Nanos;
use crate::rate_limit::Quota;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlidingWindow {
    edges: Edges,
}

/// The state as it stands at one instant.
#[derive(Clone, Copy)]
struct Window {
    now: u64,
    end: u64,
    before: u64,
    spent: u64,
}

const COUNT: u64 = u32::MAX as u64;

impl SlidingWindow {
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            edges: Edges::new(quota),
        }
    }

    pub(crate) fn quota(&self) -> Quota {
        self.edges.quota
    }

    fn at(&self, state: &[u64; 2], now: Nanos) -> Window {
        let period = self.edges.period;
        let now = self.edges.clamp(now);
        let [nothing_from, counts] = *state;
        let (before, spent) = (counts >> 32, counts & COUNT);
        let (end, before, spent) = if now >= nothing_from {
            (self.edges.end_of_window_from(now), 0, 0)
        } else if now >= nothing_from.saturating_sub(period) {
            (nothing_from, spent, 0)
        } else {
            (nothing_from - period, before, spent)
        };
        Window {
            now,
            end,
            before,
            spent,
        }
    }

    fn store(&self, window: Window) -> [u64; 2] {
        [
            window.end + self.edges.period,
            window.before << 32 | window.spent,
        ]
    }

    /// How many instants of the window before lie among the last period's.
    fn inside(&self, window: Window) -> u128 {
        let inside = (window.end - window.now - 1).min(self.edges.period - 1);
        inside.into()
    }

    /// What both windows count for now.
    fn weight(&self, window: Window) -> u64 {
        let before = u128::from(window.before) * self.inside(window);
        (before / u128::from(self.edges.period)) as u64 + window.spent
    }

    /// The count of a window before that weighs `weight` at `window`'s instant.
    fn of_weight(&self, weight: u64, window: Window) -> u64 {
        let inside = self.inside(window).max(1);
        let before = (u128::from(weight) * u128::from(self.edges.period)).div_ceil(inside);
        before.min(COUNT.into()) as u64
    }

    fn has_room(&self, window: Window, cost: u64) -> bool {
        let limit = self.edges.limit;
        // Without a debt nothing always fits, also where the clock went back and the window
        // before weighs more again.
        let free = cost == 0 && window.before.max(window.spent) <= limit;
        free || self.weight(window) + cost <= limit
    }

    /// The first instant at which a count of `before`, spent in the window that ends a period
    /// before `end`, weighs no more than `budget`.
    fn decayed(&self, before: u64, budget: u64, end: u64) -> u64 {
        let period = self.edges.period;
        let outweighed = (u128::from(budget) + 1) * u128::from(period) - 1;
        let inside = (outweighed / u128::from(before.max(1))).min(u128::from(period) - 1);
        end - 1 - inside as u64
    }

    /// The first instant at which `cost`, which does not fit now, fits.
    fn earliest(&self, window: Window, cost: u64) -> u64 {
        let Edges { period, limit, .. } = self.edges;
        match limit.checked_sub(window.spent + cost) {
            Some(budget) => self.decayed(window.before, budget, window.end),
            None => self.decayed(window.spent, limit - cost, window.end + period),
        }
    }

    fn balance_of(&self, window: Window) -> Balance {
        let counts = window.before + window.spent;
        let load = if counts == 0 {
            0
        } else {
            self.edges.until_end(window.now, window.end)
        };
        let left = self.edges.limit.saturating_sub(self.weight(window)) as u32;
        Balance::in_nanos(self.edges.quota, load, left)
    }
}

impl Rule for SlidingWindow {
    type State = [u64; 2];

    fn fits(&self, state: &[u64; 2], now: Nanos, cost: u32) -> Result<(), Shortfall> {
        let window = self.at(state, now);
        let cost = u64::from(cost);
        if self.has_room(window, cost) {
            return Ok(());
        }
        let lacking = self.earliest(window, cost) - window.now;
        Err(Shortfall {
            balance: self.balance_of(window),
            // Longer only where the clock went back.
            lacking: lacking.min(2 * self.edges.period),
        })
    }

    fn charge(&self, state: &mut [u64; 2], now: Nanos, cost: u32) {
        if cost == 0 {
            return;
        }
        let mut window = self.at(state, now);
        window.spent = (window.spent + u64::from(cost)).min(COUNT);
        *state = self.store(window);
    }

    fn balance(&self, state: &[u64; 2], now: Nanos) -> Balance {
        self.balance_of(self.at(state, now))
    }

    fn is_fresh(&self, state: &[u64; 2], now: Nanos) -> bool {
        state[0] <= self.edges.clamp(now)
    }

    fn ready(&self, state: &[u64; 2], from: Nanos, cost: u32) -> Nanos {
        let window = self.at(state, from);
        if self.has_room(window, u64::from(cost)) {
            from
        } else {
            self.edges.instant(self.earliest(window, u64::from(cost)))
        }
    }

    fn mark(&self, state: &[u64; 2], _now: Nanos) -> u64 {
        state[0]
    }

    /// Only inside the window of the charge: in the next one it weighs less every instant.
    fn refund(&self, state: &mut [u64; 2], now: Nanos, cost: u32, mark: u64, _: u64) -> u64 {
        let mut window = self.at(state, now);
        if window.end + self.edges.period != mark {
            return 0;
        }
        let given = window.spent.min(u64::from(cost));
        window.spent -= given;
        *state = self.store(window);
        given
    }

    /// Counts stay; the windows end when they would have, but within a new period each. Under
    /// another period the window before goes on at the weight it has now.
    fn carry(&self, before: &Self, old: &[u64; 2], now: Nanos) -> [u64; 2] {
        let end = old[0].saturating_sub(before.edges.period);
        let now = now.max(before.edges.seen(end));
        let window = before.at(old, now);
        if old[0] <= window.now {
            // Not forgotten: the clock may go back, or a call have read it before. It then weighs,
            // under a longer period, as much as it did.
            let (ours, theirs) = (self.edges.period, before.edges.period);
            let spent = u128::from(old[1] & COUNT) * u128::from(ours.max(theirs));
            let spent = spent.div_ceil(theirs.into()).min(COUNT.into()) as u64;
            return [old[0].min(self.edges.clamp(now)), old[1] & !COUNT | spent];
        }
        if window.before == 0 && window.spent == 0 {
            return [0, 0];
        }
        let now = self.edges.clamp(Nanos::new(window.now));
        let end = window.end.min(now + self.edges.period);
        let mut next = Window { now, end, ..window };
        if self.edges.period != before.edges.period {
            next.before = self.of_weight(before.weight(window) - window.spent, next);
        }
        self.store(next)
    }
}
