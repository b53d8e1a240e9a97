//! Every call of the last period, by the instant it stops counting.

use std::collections::VecDeque;

use super::window::Edges;
use super::{Balance, Rule, Shortfall};
use crate::clock::Nanos;
use crate::rate_limit::Quota;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlidingLog {
    edges: Edges,
}

/// The calls that count, oldest first. Grows as calls come, never beyond the limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    /// The sum of all costs in `entries`.
    spent: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    until: u64,
    cost: u64,
}

impl Log {
    /// What counts at `now`.
    fn spent_at(&self, now: u64) -> u64 {
        let over: u64 = self
            .entries
            .iter()
            .take_while(|entry| entry.until <= now)
            .map(|entry| entry.cost)
            .sum();
        self.spent - over
    }

    fn forget_until(&mut self, now: u64) {
        while let Some(entry) = self.entries.front().filter(|entry| entry.until <= now) {
            self.spent -= entry.cost;
            self.entries.pop_front();
        }
    }

    fn push(&mut self, until: u64, cost: u64, most: usize) {
        self.spent += cost;
        let full = self.entries.len() >= most;
        if let Some(last) = self.entries.back_mut()
            && (last.until >= until || full)
        {
            // The same instant, or a clock that went back: it counts with the latest. A debt may
            // find the log full of single calls; it then counts as long as the newest.
            last.until = last.until.max(until);
            last.cost += cost;
            return;
        }
        if self.entries.len() == self.entries.capacity() {
            // By doubling, but not past the limit: that is the memory promised.
            let more = self.entries.len().max(4).min(most - self.entries.len());
            self.entries.reserve_exact(more);
        }
        self.entries.push_back(Entry { until, cost });
    }

    /// The instant from which at most `budget` counts.
    fn down_to(&self, budget: u64) -> u64 {
        let mut spent = self.spent;
        let mut ready = 0;
        for entry in &self.entries {
            if spent <= budget {
                break;
            }
            spent -= entry.cost;
            ready = entry.until;
        }
        ready
    }
}

impl SlidingLog {
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            edges: Edges::new(quota),
        }
    }

    pub(crate) fn quota(&self) -> Quota {
        self.edges.quota
    }

    fn left(&self, spent: u64) -> u32 {
        self.edges.limit.saturating_sub(spent) as u32
    }
}

impl Rule for SlidingLog {
    type State = Log;

    fn fits(&self, log: &Log, now: Nanos, cost: u32) -> Result<(), Shortfall> {
        let at = self.edges.clamp(now);
        let spent = log.spent_at(at);
        let budget = self.edges.limit.saturating_sub(u64::from(cost));
        if spent <= budget {
            return Ok(());
        }
        Err(Shortfall {
            balance: self.balance(log, now),
            lacking: self.edges.until_end(at, log.down_to(budget)),
        })
    }

    fn charge(&self, log: &mut Log, now: Nanos, cost: u32) {
        if cost == 0 {
            return;
        }
        let now = self.edges.clamp(now);
        log.forget_until(now);
        log.push(
            now + self.edges.period,
            u64::from(cost),
            self.edges.limit as usize,
        );
    }

    fn balance(&self, log: &Log, now: Nanos) -> Balance {
        let at = self.edges.clamp(now);
        let until = log.entries.back().map_or(0, |last| last.until);
        let load = self.edges.until_end(at, until);
        Balance::in_nanos(self.edges.quota, load, self.left(log.spent_at(at)))
    }

    fn is_fresh(&self, log: &Log, now: Nanos) -> bool {
        let now = self.edges.clamp(now);
        log.entries.back().is_none_or(|last| last.until <= now)
    }

    fn ready(&self, log: &Log, from: Nanos, cost: u32) -> Nanos {
        let at = self.edges.clamp(from);
        let budget = self.edges.limit.saturating_sub(u64::from(cost));
        if log.spent_at(at) <= budget {
            from
        } else {
            self.edges.instant(log.down_to(budget))
        }
    }

    fn mark(&self, log: &Log, _now: Nanos) -> u64 {
        log.entries.back().map_or(0, |last| last.until)
    }

    /// Off the entry of the charge, while it still counts.
    fn refund(&self, log: &mut Log, now: Nanos, cost: u32, mark: u64, _: u64) -> u64 {
        log.forget_until(self.edges.clamp(now));
        let Ok(place) = log.entries.binary_search_by_key(&mark, |entry| entry.until) else {
            return 0;
        };
        let entry = &mut log.entries[place];
        let given = entry.cost.min(u64::from(cost));
        entry.cost -= given;
        log.spent -= given;
        if entry.cost == 0 {
            log.entries.remove(place);
        }
        given
    }

    /// Calls count as long as they would have, but no longer than a new period.
    fn carry(&self, before: &Self, old: &Log, now: Nanos) -> Log {
        let last = old.entries.back().map_or(0, |last| last.until);
        let now = now.max(before.edges.seen(last));
        let latest = self.edges.clamp(now) + self.edges.period;
        let mut log = Log::default();
        for entry in &old.entries {
            let most = old.entries.len().max(self.edges.limit as usize);
            log.push(entry.until.min(latest), entry.cost, most);
        }
        log
    }
}
