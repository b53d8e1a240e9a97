//! Several quotas as one decision, and the states that need more than one word.
//!
//! Pure: the lock around it is its owner's.

use super::algorithm::{AnyRule, AnyState, Balance, Gcra, Rule, Shortfall};
use super::engine::Grant;
use super::refunds::Refunds;
use super::{Quota, Standing};
use crate::clock::Nanos;

/// Quotas and their states. Decides for all of them or none.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    lanes: Vec<Lane>,
    /// Counts changes of quota; a grant from before one gives nothing back.
    generation: u64,
}

#[derive(Clone, Debug)]
struct Lane {
    rule: AnyRule,
    state: AnyState,
    refunds: Refunds,
}

/// Why a ledger did not admit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// By the quota with the longest wait.
    Spent(Shortfall),
    AboveBurst(Balance),
}

impl Ledger {
    /// One lane per quota, all fresh.
    pub(crate) fn new(quotas: &[Quota]) -> Self {
        let fresh = |&quota| Lane {
            rule: AnyRule::from(quota),
            state: AnyState::default(),
            refunds: Refunds::default(),
        };
        Self {
            lanes: quotas.iter().map(fresh).collect(),
            generation: 0,
        }
    }

    /// One lane of a rule and a state kept elsewhere.
    pub(crate) fn of_gcra(rule: Gcra, state: u64) -> Self {
        Self {
            lanes: vec![Lane {
                rule: AnyRule::Gcra(rule),
                state: AnyState::of_word(state),
                refunds: Refunds::default(),
            }],
            generation: 0,
        }
    }

    /// Charges `cost` to every quota, or to none; the balance is that of the quota that leaves
    /// the fewest calls.
    pub(crate) fn decide(&mut self, now: Nanos, cost: u32) -> Result<Balance, Refused> {
        self.fits(now, cost)?;
        self.charge(now, cost);
        Ok(self.balance(now))
    }

    /// Whether every quota would admit `cost` now.
    pub(crate) fn fits(&self, now: Nanos, cost: u32) -> Result<(), Refused> {
        if let Some(lane) = self.lanes.iter().find(|lane| lane.burst() < cost) {
            return Err(Refused::AboveBurst(lane.rule.balance(&lane.state, now)));
        }
        let lacking = |lane: &Lane| lane.rule.fits(&lane.state, now, cost).err();
        let longest = self
            .lanes
            .iter()
            .filter_map(lacking)
            .max_by_key(Shortfall::retry_after);
        longest.map_or(Ok(()), |shortfall| Err(Refused::Spent(shortfall)))
    }

    /// Charges `cost` to every quota whether it fits or not.
    pub(crate) fn charge(&mut self, now: Nanos, cost: u32) {
        for lane in &mut self.lanes {
            lane.rule.charge(&mut lane.state, now, cost);
        }
    }

    /// Charges `cost` at `now` if it fits at `at` too, an instant not later.
    pub(crate) fn grant(&mut self, at: Nanos, now: Nanos, cost: u32) -> Result<Grant, Refused> {
        self.fits(now, cost)?;
        self.fits(at, cost)?;
        self.charge(now, cost);
        let mut marks = self
            .lanes
            .iter_mut()
            .map(|lane| lane.refunds.mark(lane.rule.mark(&lane.state, now)));
        Ok(Grant {
            generation: self.generation,
            first: marks.next().expect("a limiter has a quota"),
            rest: marks.collect(),
        })
    }

    /// Gives back up to `cost` of `grant` to every quota.
    pub(crate) fn refund(&mut self, grant: &Grant, now: Nanos, cost: u32) {
        if grant.generation != self.generation {
            return;
        }
        let marks = std::iter::once(&grant.first).chain(&grant.rest);
        for (lane, mark) in self.lanes.iter_mut().zip(marks) {
            let before = lane.refunds.before(mark);
            let given = lane
                .rule
                .refund(&mut lane.state, now, cost, mark.state, before);
            lane.refunds.gave(mark, given);
        }
    }

    /// The balance of the quota that leaves the fewest calls.
    pub(crate) fn balance(&self, now: Nanos) -> Balance {
        self.balances(now)
            .min_by_key(Balance::remaining)
            .expect("a limiter has a quota")
    }

    pub(crate) fn is_single(&self) -> bool {
        self.lanes.len() == 1
    }

    /// How every quota stands, in order.
    pub(crate) fn standings(&self, now: Nanos) -> Vec<Standing> {
        self.balances(now).map(Standing).collect()
    }

    fn balances(&self, now: Nanos) -> impl Iterator<Item = Balance> {
        self.lanes
            .iter()
            .map(move |lane| lane.rule.balance(&lane.state, now))
    }

    /// The first instant from `from` on at which every quota admits `cost`; `None` where one
    /// never does.
    pub(crate) fn ready(&self, from: Nanos, cost: u32) -> Option<Nanos> {
        if self.lanes.iter().any(|lane| lane.burst() < cost) {
            return None;
        }
        // What fits at some instant still fits later, so the latest of the first ones is it.
        self.lanes
            .iter()
            .map(|lane| lane.rule.ready(&lane.state, from, cost))
            .max()
    }

    /// The balance of the quota that is the last to admit `cost`.
    pub(crate) fn slowest(&self, now: Nanos, cost: u32) -> Balance {
        let ready = |lane: &&Lane| lane.rule.ready(&lane.state, now, cost.min(lane.burst()));
        let slowest = self.lanes.iter().max_by_key(ready);
        let lane = slowest.expect("a limiter has a quota");
        lane.rule.balance(&lane.state, now)
    }

    /// The quotas, in order.
    pub(crate) fn quotas(&self) -> Vec<Quota> {
        self.lanes.iter().map(|lane| lane.rule.quota()).collect()
    }

    /// Replaces the quotas by as many others of the same algorithms.
    pub(crate) fn set_quotas(&mut self, quotas: &[Quota], now: Nanos) {
        if self.quotas() != quotas {
            self.generation += 1;
        }
        for (lane, &quota) in self.lanes.iter_mut().zip(quotas) {
            if lane.rule.quota() != quota {
                let rule = AnyRule::from(quota);
                lane.state = rule.carry(&lane.rule, &lane.state, now);
                lane.rule = rule;
            }
        }
    }
}

impl Lane {
    fn burst(&self) -> u32 {
        self.rule.quota().burst_size()
    }
}
