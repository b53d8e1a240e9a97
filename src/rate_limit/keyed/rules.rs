use std::time::Duration;

use super::shards::Rules;
use super::table::State;
use crate::clock::Nanos;
use crate::rate_limit::Quota;
use crate::rate_limit::algorithm::{
    Algorithm, Balance, FixedWindow, Gcra, Rule, Shortfall, SlidingWindow,
};

/// A quota's rule as a store of keys applies it to `W` words.
pub(super) trait KeyRules<const W: usize>: Rules<W> {
    /// Charges `cost` to `state` under the store's quota, or under `own`.
    fn decide(
        &self,
        own: Option<&Quota>,
        state: &mut State<W>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Shortfall>;

    /// What is left.
    fn balance(&self, own: Option<&Quota>, state: State<W>, now: Nanos) -> Balance;

    /// Charges `cost` at the first instant from `from` on at which it fits.
    fn plan(&self, own: Option<&Quota>, state: &mut State<W>, from: Nanos, cost: u32) -> Nanos;

    /// The state under these rules of one that was kept under `before`.
    fn carry(&self, before: &Self, state: State<W>, now: Nanos) -> State<W>;
}

/// GCRA in one word.
///
/// A key under a quota of its own is kept in nanoseconds, which mean the same under every quota:
/// that quota comes with each call and may be another the next time. Keys under the store's quota
/// are kept in its finer units. The top bit tells the two apart; the core uses it for debts, which
/// keys do not have.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneWord(Gcra);

const IN_NANOS: u64 = 1 << 63;

impl OneWord {
    pub(super) fn new(quota: Quota) -> Self {
        Self(Gcra::scaled(quota))
    }

    /// Decides for a key that is under the store's quota. `Err(None)` where that takes `decide`:
    /// a state in nanoseconds, a cost of 0 or above the burst.
    #[inline(always)] // part of `Shards::update_known`
    pub(super) fn decide_plain(
        &self,
        [word]: &mut State<1>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Option<Shortfall>> {
        let rule = &self.0;
        // A cost of 1 is always plain, and the comparison goes where it is constant.
        if cost != 1 && (cost == 0 || cost > rule.quota.burst_size()) {
            return Err(None);
        }
        let (state, units) = (*word, rule.units(now));
        let charge = u64::from(cost).wrapping_mul(rule.call);
        if state <= rule.room(units, charge) {
            let next = state.max(units).wrapping_add(charge);
            *word = next;
            return Ok(rule.balance_of(next.wrapping_sub(units), now));
        }
        // A marked state is above all room.
        if state & IN_NANOS != 0 {
            return Err(None);
        }
        let load = state.wrapping_sub(units).min(rule.full);
        let lacking = load.wrapping_add(charge).wrapping_sub(rule.full);
        Err(Some(rule.shortfall(load, lacking, now)))
    }

    /// The rule for one call, and the state in its units.
    #[inline]
    fn applied(&self, own: Option<&Quota>, word: u64, now: Nanos) -> (Gcra, u64) {
        match own {
            None if word & IN_NANOS == 0 => (self.0, word),
            None => (self.0, self.out_of_nanos(word & !IN_NANOS, now)),
            Some(own) => {
                let own = Gcra::in_nanos(*own);
                let word = match word {
                    0 => 0,
                    _ if word & IN_NANOS != 0 => word & !IN_NANOS,
                    _ => own.carry(&self.0, &word, now),
                };
                (own, word)
            }
        }
    }

    /// Decides for a key that is, or was, under a quota of its own.
    #[cold]
    fn decide_in_nanos(
        &self,
        own: Option<&Quota>,
        state: &mut State<1>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Shortfall> {
        let (rule, mut word) = self.applied(own, state[0], now);
        let kept = state[0];
        let balance = rule
            .decide(&mut word, now, cost)
            .map_err(|shortfall| Shortfall {
                lacking: shortfall.lacking.max(self.lacking(&rule, kept, now, cost)),
                ..shortfall
            })?;
        if cost != 0 {
            state[0] = if own.is_some() { word | IN_NANOS } else { word };
        }
        Ok(balance)
    }

    /// What `cost` lacks under `rule` where `word` was spent under a quota that fills later: more
    /// than a full bucket, which the core takes for a clock that went back.
    fn lacking(&self, rule: &Gcra, word: u64, now: Nanos, cost: u32) -> u64 {
        let full_at = if word & IN_NANOS != 0 {
            Nanos::new(word & !IN_NANOS)
        } else {
            let (at, left) = self.0.time_to_full(word, now);
            at.plus(Duration::from_nanos(left))
        };
        let load = rule.units(full_at).saturating_sub(rule.units(now));
        (load + u64::from(cost) * rule.call).saturating_sub(rule.full)
    }

    #[cold]
    fn out_of_nanos(&self, word: u64, now: Nanos) -> u64 {
        self.0.carry(&Gcra::in_nanos(self.0.quota()), &word, now)
    }
}

impl Rules<1> for OneWord {
    #[inline]
    fn is_fresh(&self, [word]: State<1>, now: Nanos) -> bool {
        if word & IN_NANOS != 0 {
            return word & !IN_NANOS <= now.as_u64();
        }
        self.0.is_fresh(&word, now)
    }
}

impl KeyRules<1> for OneWord {
    #[inline(always)]
    fn decide(
        &self,
        own: Option<&Quota>,
        state: &mut State<1>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Shortfall> {
        if own.is_none() && state[0] & IN_NANOS == 0 {
            return self.0.decide(&mut state[0], now, cost);
        }
        self.decide_in_nanos(own, state, now, cost)
    }

    fn balance(&self, own: Option<&Quota>, [word]: State<1>, now: Nanos) -> Balance {
        let (rule, word) = self.applied(own, word, now);
        rule.balance(&word, now)
    }

    fn plan(&self, own: Option<&Quota>, state: &mut State<1>, from: Nanos, cost: u32) -> Nanos {
        let (rule, mut word) = self.applied(own, state[0], from);
        let instant = rule.ready(&word, from, cost);
        rule.charge(&mut word, instant, cost);
        state[0] = if own.is_some() { word | IN_NANOS } else { word };
        instant
    }

    fn carry(&self, before: &Self, state: State<1>, now: Nanos) -> State<1> {
        let [word] = state;
        if before.is_fresh(state, now) {
            [0]
        } else if word & IN_NANOS != 0 || self.0 == before.0 {
            // Under a quota of its own, which has not changed; or the same as before, where
            // carrying would round the state up a little each time.
            state
        } else {
            [self.0.carry(&before.0, &word, now)]
        }
    }
}

/// A window in two words. An own quota reads them as the store's does: the end of a window is an
/// instant, and a count is a count.
#[derive(Clone, Copy, Debug)]
pub(super) enum TwoWords {
    Fixed(FixedWindow),
    Sliding(SlidingWindow),
}

impl TwoWords {
    pub(super) fn new(quota: Quota) -> Self {
        if quota.algorithm() == Algorithm::SlidingWindow {
            Self::Sliding(SlidingWindow::new(quota))
        } else {
            Self::Fixed(FixedWindow::new(quota))
        }
    }

    fn applied(&self, own: Option<&Quota>) -> Self {
        own.map_or(*self, |own| Self::new(*own))
    }
}

impl Rules<2> for TwoWords {
    fn is_fresh(&self, state: State<2>, now: Nanos) -> bool {
        match self {
            Self::Fixed(rule) => rule.is_fresh(&state, now),
            Self::Sliding(rule) => rule.is_fresh(&state, now),
        }
    }
}

impl KeyRules<2> for TwoWords {
    fn decide(
        &self,
        own: Option<&Quota>,
        state: &mut State<2>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Shortfall> {
        match self.applied(own) {
            Self::Fixed(rule) => rule.decide(state, now, cost),
            Self::Sliding(rule) => rule.decide(state, now, cost),
        }
    }

    fn balance(&self, own: Option<&Quota>, state: State<2>, now: Nanos) -> Balance {
        match self.applied(own) {
            Self::Fixed(rule) => rule.balance(&state, now),
            Self::Sliding(rule) => rule.balance(&state, now),
        }
    }

    fn plan(&self, own: Option<&Quota>, state: &mut State<2>, from: Nanos, cost: u32) -> Nanos {
        match self.applied(own) {
            Self::Fixed(rule) => plan(&rule, state, from, cost),
            Self::Sliding(rule) => plan(&rule, state, from, cost),
        }
    }

    fn carry(&self, before: &Self, state: State<2>, now: Nanos) -> State<2> {
        match (self, before) {
            _ if before.is_fresh(state, now) => [0, 0],
            (Self::Fixed(rule), Self::Fixed(before)) => rule.carry(before, &state, now),
            (Self::Sliding(rule), Self::Sliding(before)) => rule.carry(before, &state, now),
            // A quota is only ever replaced by one of the same algorithm.
            _ => state,
        }
    }
}

fn plan<const W: usize>(
    rule: &impl Rule<State = State<W>>,
    state: &mut State<W>,
    from: Nanos,
    cost: u32,
) -> Nanos {
    let ready = rule.ready(state, from, cost);
    rule.charge(state, ready, cost);
    ready
}
