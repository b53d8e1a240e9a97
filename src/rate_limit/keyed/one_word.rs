use std::time::Duration;

use super::rules::{Balances, Charge, KeyRules, MOST_WORDS, PerQuota, Refused};
use super::shards::Rules;
use super::table::State;
use crate::clock::Nanos;
use crate::rate_limit::Quota;
use crate::rate_limit::algorithm::{Balance, Gcra, Rule, Shortfall};

/// GCRA in one word.
///
/// Keys under the store's quota are kept in its finer units. A key under a quota of its own is kept
/// in nanoseconds, which mean the same under every quota: that quota comes with each call and may
/// be another the next time. So is a key in debt, whose state means more than a full bucket and not
/// that the clock went back. The top bit tells the two apart.
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
        // The mark of a state in nanoseconds is the one that `attempt` leaves to others.
        let step = self.0.attempt(*word, now, cost)?;
        *word = step.next;
        Ok(self.0.left_by(&step, now))
    }

    /// The rule for one call, and the state in its units: no more than a full bucket.
    fn applied(&self, own: Option<&Quota>, word: u64, now: Nanos) -> (Gcra, u64) {
        match own {
            None if word & IN_NANOS == 0 => (self.0, word),
            None => {
                let nanos = Gcra::in_nanos(self.0.quota());
                (self.0, self.0.carry(&nanos, &(word & !IN_NANOS), now))
            }
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

    /// How far `word` is from full under `rule`, also where that is more than a full bucket: in
    /// debt, or spent under a quota that fills later.
    fn load(&self, rule: &Gcra, word: u64, now: Nanos) -> u64 {
        let full_at = if word & IN_NANOS != 0 {
            Nanos::new(word & !IN_NANOS)
        } else {
            let (at, left) = self.0.time_to_full(word, now);
            at.plus(Duration::from_nanos(left))
        };
        rule.units(full_at).saturating_sub(rule.units(now))
    }

    /// Decides for a key that is, or was, under a quota of its own, or in debt.
    #[cold]
    fn decide_in_nanos(
        &self,
        own: Option<&Quota>,
        state: &mut State<1>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Shortfall> {
        let (rule, mut word) = self.applied(own, state[0], now);
        let load = self.load(&rule, state[0], now);
        let lacking = (load + u64::from(cost) * rule.call).saturating_sub(rule.full);
        if lacking > 0 {
            return Err(match rule.decide(&mut word, now, cost) {
                Ok(balance) => Shortfall { balance, lacking },
                Err(shortfall) => Shortfall {
                    lacking: lacking.max(shortfall.lacking),
                    ..shortfall
                },
            });
        }
        let balance = rule.decide(&mut word, now, cost)?;
        if cost != 0 {
            state[0] = if own.is_some() { word | IN_NANOS } else { word };
        }
        Ok(balance)
    }

    /// Adds `units` of the store's quota to a state that may come to be in debt by it.
    fn add(&self, word: u64, now: Nanos, units: u64) -> u64 {
        let rule = &self.0;
        let time = rule.units(now);
        if word & IN_NANOS == 0 {
            let tat = word.max(time).saturating_add(units);
            if tat <= time.saturating_add(rule.full) {
                return tat;
            }
            let left = rule.nanos_to_pass(now, tat - time);
            return in_nanos(now.as_u64().saturating_add(left));
        }
        let full_at = (word & !IN_NANOS).max(now.as_u64());
        in_nanos(full_at.saturating_add(self.nanos_for(units)))
    }

    /// How many nanoseconds `units` are worth, cut.
    fn nanos_of(self, units: u64) -> u64 {
        ((u128::from(units) << 63) / u128::from(self.0.rate)) as u64
    }

    /// How many nanoseconds it takes for `units` to pass, rounded up.
    fn nanos_for(self, units: u64) -> u64 {
        let nanos = (u128::from(units) << 63).div_ceil(u128::from(self.0.rate));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// How many units `nanos` are worth, rounded up.
    fn units_of(self, nanos: u64) -> u64 {
        (u128::from(nanos) * u128::from(self.0.rate)).div_ceil(1 << 63) as u64
    }
}

fn in_nanos(full_at: u64) -> u64 {
    full_at.min(IN_NANOS - 1) | IN_NANOS
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
    fn decide(
        &self,
        own: Option<&Quota>,
        state: &mut State<1>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Refused> {
        let quota = own.copied().unwrap_or(self.0.quota());
        if cost > quota.burst_size() {
            return Err(Refused::AboveBurst(self.balance(own, state, now)));
        }
        let decided = if own.is_none() && state[0] & IN_NANOS == 0 {
            self.0.decide(&mut state[0], now, cost)
        } else {
            self.decide_in_nanos(own, state, now, cost)
        };
        decided.map_err(Refused::Spent)
    }

    fn charge(&self, state: &mut State<1>, now: Nanos, cost: u32) {
        if cost != 0 {
            let units = u64::from(cost).saturating_mul(self.0.call);
            state[0] = self.add(state[0], now, units);
        }
    }

    fn balance(&self, own: Option<&Quota>, &[word]: &State<1>, now: Nanos) -> Balance {
        let (rule, applied) = self.applied(own, word, now);
        if word & IN_NANOS == 0 {
            return rule.balance(&applied, now);
        }
        rule.balance_of(self.load(&rule, word, now), now)
    }

    fn slowest(&self, own: Option<&Quota>, state: &State<1>, now: Nanos, _cost: u32) -> Balance {
        self.balance(own, state, now)
    }

    fn balances(&self, _state: &State<1>, _now: Nanos) -> Option<Balances> {
        None
    }

    fn plan(
        &self,
        own: Option<&Quota>,
        state: &mut State<1>,
        from: Nanos,
        cost: u32,
    ) -> Option<Nanos> {
        let (rule, word) = self.applied(own, state[0], from);
        if cost > rule.quota().burst_size() {
            return None;
        }
        let load = self.load(&rule, state[0], from);
        let lacking = (load + u64::from(cost) * rule.call).saturating_sub(rule.full);
        let marked = state[0] & IN_NANOS != 0 || own.is_some();
        let instant = if marked && lacking > 0 {
            from.plus(Duration::from_nanos(rule.nanos_to_pass(from, lacking)))
        } else {
            rule.ready(&word, from, cost)
        };
        let (_, mut word) = self.applied(own, state[0], instant);
        rule.charge(&mut word, instant, cost);
        state[0] = if own.is_some() { word | IN_NANOS } else { word };
        Some(instant)
    }

    fn marks(&self, state: &State<1>, _now: Nanos) -> PerQuota {
        let mut marks = [0; MOST_WORDS];
        marks[0] = state[0];
        marks
    }

    /// By the core, where both charge and state are in its units. Otherwise in nanoseconds, which
    /// a unit is at most worth: cut where they are not the same, which gives back no more.
    fn refund(
        &self,
        own: Option<&Quota>,
        state: &mut State<1>,
        now: Nanos,
        cost: u32,
        charge: &Charge,
    ) -> PerQuota {
        let (mark, before) = (charge.marks[0], charge.before[0]);
        let mut given = [0; MOST_WORDS];
        if (mark | state[0]) & IN_NANOS == 0 {
            given[0] = self.0.refund(&mut state[0], now, cost, mark, before);
            return given;
        }
        let (call, time) = if mark & IN_NANOS == 0 {
            (self.0.call, self.0.units(now))
        } else {
            let own = own.copied().unwrap_or(self.0.quota());
            (Gcra::in_nanos(own).call, now.as_u64())
        };
        let unpaid = (mark & !IN_NANOS)
            .saturating_sub(before)
            .saturating_sub(time);
        let amount = u64::from(cost).saturating_mul(call).min(unpaid);
        let nanos = if mark & IN_NANOS == 0 {
            self.nanos_of(amount)
        } else {
            amount
        };
        // As many units are worth no more than as many nanoseconds.
        let full_at = (state[0] & !IN_NANOS).saturating_sub(nanos);
        state[0] = full_at | state[0] & IN_NANOS;
        given[0] = if mark & IN_NANOS == 0 {
            amount
        } else {
            self.units_of(amount)
        };
        given
    }

    fn carry(&self, before: &Self, state: State<1>, now: Nanos) -> State<1> {
        let [word] = state;
        if before.is_fresh(state, now) {
            [0]
        } else if word & IN_NANOS != 0 || self.0 == before.0 {
            // Under a quota of its own, which has not changed, or in debt; or the same as before,
            // where carrying would round the state up a little each time.
            state
        } else {
            [self.0.carry(&before.0, &word, now)]
        }
    }
}
