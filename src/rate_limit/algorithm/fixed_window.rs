//! One count per window.
//!
//! State: the instant the window ends, and what was spent in it. The window turns over when that
//! instant is reached and not before, so a clock that goes back stays inside it. What was spent
//! beyond the limit (a debt) is carried into the next window.

use super::balance::Scale;
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
    used: u64,
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
        let [end, used] = *state;
        if now < end {
            return Window { now, end, used };
        }
        let turned = (now - end) / period + 1;
        let owed = used.saturating_sub(limit.saturating_mul(turned));
        let end = if owed == 0 {
            self.edges.end_of_window_from(now)
        } else {
            end + turned * period
        };
        let used = owed;
        Window { now, end, used }
    }

    fn left(&self, window: Window) -> u32 {
        self.edges.limit.saturating_sub(window.used) as u32
    }

    /// How many windows must end before `cost` fits: one, and those a debt takes.
    fn windows_to_wait(&self, window: Window, cost: u32) -> u64 {
        (window.used + u64::from(cost))
            .saturating_sub(self.edges.limit)
            .div_ceil(self.edges.limit)
    }

    fn balance_of(&self, window: Window, now: Nanos) -> Balance {
        let load = if window.used == 0 {
            0
        } else {
            self.edges.until_end(window.now, window.end)
        };
        Balance {
            quota: self.edges.quota,
            now,
            load,
            left: self.left(window),
            scale: Scale::Nanos,
        }
    }

    fn shortfall(&self, window: Window, windows: u64, now: Nanos) -> Shortfall {
        let more = self.edges.period.saturating_mul(windows - 1);
        let balance = self.balance_of(window, now);
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
            windows => Err(self.shortfall(window, windows, now)),
        }
    }

    fn charge(&self, state: &mut [u64; 2], now: Nanos, cost: u32) {
        if cost == 0 {
            return;
        }
        let window = self.at(state, now);
        *state = [window.end, window.used.saturating_add(u64::from(cost))];
    }

    fn balance(&self, state: &[u64; 2], now: Nanos) -> Balance {
        self.balance_of(self.at(state, now), now)
    }

    fn is_fresh(&self, state: &[u64; 2], now: Nanos) -> bool {
        self.at(state, now).used == 0
    }

    fn ready(&self, state: &[u64; 2], from: Nanos, cost: u32) -> Nanos {
        let window = self.at(state, from);
        match self.windows_to_wait(window, cost) {
            0 => from,
            windows => {
                let more = self.edges.period.saturating_mul(windows - 1);
                Nanos::new(window.end.saturating_add(more))
            }
        }
    }

    fn mark(&self, state: &[u64; 2], _now: Nanos) -> u64 {
        state[0]
    }

    /// Only inside the window of the charge: a later one never held it.
    fn refund(&self, state: &mut [u64; 2], now: Nanos, cost: u32, mark: u64, _: u64) -> u64 {
        let window = self.at(state, now);
        if window.end != mark {
            return 0;
        }
        let given = window.used.min(u64::from(cost));
        *state = [window.end, window.used - given];
        given
    }

    fn carry(&self, before: &Self, old: &[u64; 2], now: Nanos) -> [u64; 2] {
        let now = now.max(before.edges.seen(old[0]));
        let window = before.at(old, now);
        if window.used == 0 {
            return [0, 0];
        }
        [window.end.min(window.now + self.edges.period), window.used]
    }
}
