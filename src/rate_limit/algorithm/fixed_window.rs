//! One count per window.
//!
//! State: the instant the window ends, and in one word what was spent in it: above, the debt,
//! which was charged beyond the limit and is carried into the next window; below, the rest. The
//! two are apart because a count above the limit is no debt where only the limit was lowered.
//!
//! The window turns over when its end is reached and not before, so a clock that goes back stays
//! inside it.

use super::window::Edges;
use super::{Balance, Rule, Shortfall};
use crate::clock::Nanos;
use crate::rate_limit::Quota;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FixedWindow {
    edges: Edges,
}

/// The state as it stands at one instant.
#[derive(Clone, Copy)]
struct Window {
    now: u64,
    end: u64,
    count: u64,
    debt: u64,
}

const COUNT: u64 = u32::MAX as u64;

impl Window {
    fn used(self) -> u64 {
        self.count + self.debt
    }

    fn store(self) -> [u64; 2] {
        [self.end, self.debt << 32 | self.count]
    }
}

impl FixedWindow {
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            edges: Edges::new(quota),
        }
    }

    pub(crate) fn quota(&self) -> Quota {
        self.edges.quota
    }

    fn at(&self, state: &[u64; 2], now: Nanos) -> Window {
        let Edges { period, limit, .. } = self.edges;
        let now = self.edges.clamp(now);
        let [end, spent] = *state;
        let (count, debt) = (spent & COUNT, spent >> 32);
        if now < end {
            return Window {
                now,
                end,
                count,
                debt,
            };
        }
        // Each window that ended since the first has paid off a limit.
        let ended = (now - end) / period;
        let owed = debt.saturating_sub(limit.saturating_mul(ended));
        let end = if owed == 0 {
            self.edges.end_of_window_from(now)
        } else {
            end + (ended + 1) * period
        };
        let count = owed.min(limit);
        Window {
            now,
            end,
            count,
            debt: owed - count,
        }
    }

    fn left(&self, window: Window) -> u32 {
        self.edges.limit.saturating_sub(window.used()) as u32
    }

    /// How many windows must end before `cost` fits: one, and those a debt takes.
    fn windows_to_wait(&self, window: Window, cost: u32) -> u64 {
        let (limit, cost) = (self.edges.limit, u64::from(cost));
        if window.used() + cost <= limit {
            return 0;
        }
        // Without a debt nothing always fits.
        if cost == 0 && window.debt == 0 {
            return 0;
        }
        1 + (window.debt + cost).saturating_sub(limit).div_ceil(limit)
    }

    fn balance_of(&self, window: Window) -> Balance {
        let load = if window.used() == 0 {
            0
        } else {
            self.edges.until_end(window.now, window.end)
        };
        Balance::in_nanos(self.edges.quota, load, self.left(window))
    }

    fn shortfall(&self, window: Window, windows: u64) -> Shortfall {
        let more = self.edges.period.saturating_mul(windows - 1);
        let balance = self.balance_of(window);
        Shortfall {
            balance,
            lacking: balance.load.saturating_add(more),
        }
    }
}

impl Rule for FixedWindow {
    type State = [u64; 2];

    fn fits(&self, state: &[u64; 2], now: Nanos, cost: u32) -> Result<(), Shortfall> {
        let window = self.at(state, now);
        match self.windows_to_wait(window, cost) {
            0 => Ok(()),
            windows => Err(self.shortfall(window, windows)),
        }
    }

    fn charge(&self, state: &mut [u64; 2], now: Nanos, cost: u32) {
        if cost == 0 {
            return;
        }
        let mut window = self.at(state, now);
        let room = self.edges.limit.saturating_sub(window.count);
        let fits = u64::from(cost).min(room);
        window.count += fits;
        window.debt = (window.debt + (u64::from(cost) - fits)).min(COUNT);
        *state = window.store();
    }

    fn balance(&self, state: &[u64; 2], now: Nanos) -> Balance {
        self.balance_of(self.at(state, now))
    }

    fn is_fresh(&self, state: &[u64; 2], now: Nanos) -> bool {
        self.at(state, now).used() == 0
    }

    fn ready(&self, state: &[u64; 2], from: Nanos, cost: u32) -> Nanos {
        let window = self.at(state, from);
        match self.windows_to_wait(window, cost) {
            0 => from,
            windows => {
                let more = self.edges.period.saturating_mul(windows - 1);
                self.edges.instant(window.end.saturating_add(more))
            }
        }
    }

    fn mark(&self, state: &[u64; 2], _now: Nanos) -> u64 {
        state[0]
    }

    /// Only inside the window of the charge: a later one never held it.
    fn refund(&self, state: &mut [u64; 2], now: Nanos, cost: u32, mark: u64, _: u64) -> u64 {
        let mut window = self.at(state, now);
        if window.end != mark {
            return 0;
        }
        let given = window.used().min(u64::from(cost));
        let of_debt = window.debt.min(given);
        window.debt -= of_debt;
        window.count -= given - of_debt;
        *state = window.store();
        given
    }

    fn carry(&self, before: &Self, old: &[u64; 2], now: Nanos) -> [u64; 2] {
        let now = now.max(before.edges.seen(old[0]));
        let window = before.at(old, now);
        if window.used() == 0 {
            // Not forgotten: the clock may go back, or a call have read it before.
            let [end, spent] = *old;
            let end = end.min(self.edges.clamp(now));
            return [end, ((spent & COUNT) + (spent >> 32)).min(COUNT)];
        }
        let used = window.used();
        let count = window.count.max(used.min(self.edges.limit));
        Window {
            end: window.end.min(self.edges.clamp(now) + self.edges.period),
            count,
            debt: used - count,
            ..window
        }
        .store()
    }
}
