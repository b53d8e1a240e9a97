use super::rules::{Balances, Charge, KeyRules, MOST_WORDS, PerQuota, Refused};
use super::shards::Rules;
use super::table::State;
use crate::clock::Nanos;
use crate::rate_limit::Quota;
use crate::rate_limit::algorithm::{
    Algorithm, Balance, FixedWindow, Gcra, Rule, Shortfall, SlidingWindow,
};

/// Any quotas but a lone GCRA one, each with its own words of a key's state: GCRA one, a window
/// two.
///
/// Where there is one it may be a window, and a key may have another quota of its own, which reads
/// the words as the store's does: the end of a window is an instant, and a count is a count.
#[derive(Clone, Debug)]
pub(super) struct Lanes(Box<[Lane]>);

#[derive(Clone, Copy, Debug)]
struct Lane {
    rule: LaneRule,
    /// The first of its words.
    at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum LaneRule {
    Gcra(Gcra),
    Fixed(FixedWindow),
    Sliding(SlidingWindow),
}

/// How many words of state a quota takes.
pub(super) fn words_of(quota: &Quota) -> usize {
    match quota.algorithm() {
        Algorithm::Gcra => 1,
        _ => 2,
    }
}

impl From<Quota> for LaneRule {
    /// Of anything but a sliding log.
    fn from(quota: Quota) -> Self {
        match quota.algorithm() {
            Algorithm::Gcra => Self::Gcra(Gcra::scaled(quota)),
            Algorithm::SlidingWindow => Self::Sliding(SlidingWindow::new(quota)),
            _ => Self::Fixed(FixedWindow::new(quota)),
        }
    }
}

impl Lanes {
    pub(super) fn new(quotas: &[Quota]) -> Self {
        let mut words = 0;
        let lanes = quotas.iter().map(|quota| {
            let at = words;
            words += words_of(quota);
            Lane {
                rule: (*quota).into(),
                at,
            }
        });
        Self(lanes.collect())
    }

    /// The lanes; of a key with a quota of its own, that one in place of the only one.
    fn all<'a>(&'a self, own: Option<&Quota>) -> impl Iterator<Item = Lane> + use<'a> {
        let own = own.map(|own| LaneRule::from(*own));
        self.0.iter().map(move |lane| Lane {
            rule: own.unwrap_or(lane.rule),
            ..*lane
        })
    }
}

/// Calls `$body` with the lane's rule and its words of the state.
macro_rules! with_lane {
    ($lane:expr, $words:expr, $rule:ident, $state:ident => $body:expr) => {
        match &$lane.rule {
            LaneRule::Gcra($rule) => {
                let $state = &mut $words[$lane.at];
                $body
            }
            LaneRule::Fixed($rule) => {
                let $state = window(&mut $words, $lane.at);
                $body
            }
            LaneRule::Sliding($rule) => {
                let $state = window(&mut $words, $lane.at);
                $body
            }
        }
    };
}

fn window<const W: usize>(words: &mut State<W>, at: usize) -> &mut [u64; 2] {
    let two = words
        .get_mut(at..at + 2)
        .and_then(|two| two.try_into().ok());
    two.expect("a store has words for all its quotas")
}

impl Lane {
    fn quota(&self) -> Quota {
        match &self.rule {
            LaneRule::Gcra(rule) => rule.quota(),
            LaneRule::Fixed(rule) => rule.quota(),
            LaneRule::Sliding(rule) => rule.quota(),
        }
    }

    fn burst(&self) -> u32 {
        self.quota().burst_size()
    }

    fn fits<const W: usize>(
        &self,
        mut words: State<W>,
        now: Nanos,
        cost: u32,
    ) -> Result<(), Shortfall> {
        with_lane!(self, words, rule, state => rule.fits(state, now, cost))
    }

    fn charge<const W: usize>(&self, words: &mut State<W>, now: Nanos, cost: u32) {
        with_lane!(self, *words, rule, state => rule.charge(state, now, cost));
    }

    fn balance<const W: usize>(&self, mut words: State<W>, now: Nanos) -> Balance {
        with_lane!(self, words, rule, state => rule.balance(state, now))
    }

    fn ready<const W: usize>(&self, mut words: State<W>, from: Nanos, cost: u32) -> Nanos {
        with_lane!(self, words, rule, state => rule.ready(state, from, cost))
    }

    /// Puts this lane's words, kept under `before`, under its own rule.
    fn carry<const W: usize>(&self, before: &Self, words: &mut State<W>, now: Nanos) {
        if self.rule == before.rule {
            return;
        }
        match (&self.rule, &before.rule) {
            (LaneRule::Gcra(rule), LaneRule::Gcra(before)) => {
                words[self.at] = rule.carry(before, &words[self.at], now);
            }
            (LaneRule::Fixed(rule), LaneRule::Fixed(before)) => {
                let state = window(words, self.at);
                *state = rule.carry(before, state, now);
            }
            (LaneRule::Sliding(rule), LaneRule::Sliding(before)) => {
                let state = window(words, self.at);
                *state = rule.carry(before, state, now);
            }
            // Quotas are only ever replaced by others of the same algorithms.
            _ => {}
        }
    }
}

impl<const W: usize> Rules<W> for Lanes {
    fn is_fresh(&self, mut words: State<W>, now: Nanos) -> bool {
        self.0
            .iter()
            .all(|lane| with_lane!(lane, words, rule, state => rule.is_fresh(state, now)))
    }
}

impl<const W: usize> KeyRules<W> for Lanes {
    fn decide(
        &self,
        own: Option<&Quota>,
        words: &mut State<W>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Refused> {
        if let Some(lane) = self.all(own).find(|lane| lane.burst() < cost) {
            return Err(Refused::AboveBurst(lane.balance(*words, now)));
        }
        let lacking = |lane: Lane| lane.fits(*words, now, cost).err();
        let lacking = self.all(own).filter_map(lacking);
        if let Some(longest) = lacking.max_by_key(Shortfall::retry_after) {
            return Err(Refused::Spent(longest));
        }
        self.all(own).for_each(|lane| lane.charge(words, now, cost));
        Ok(self.balance(own, words, now))
    }

    fn charge(&self, words: &mut State<W>, now: Nanos, cost: u32) {
        self.all(None)
            .for_each(|lane| lane.charge(words, now, cost));
    }

    fn balance(&self, own: Option<&Quota>, words: &State<W>, now: Nanos) -> Balance {
        let balances = self.all(own).map(|lane| lane.balance(*words, now));
        let tightest = balances.min_by_key(Balance::remaining);
        tightest.expect("a limiter has a quota")
    }

    fn slowest(&self, own: Option<&Quota>, words: &State<W>, now: Nanos, cost: u32) -> Balance {
        let ready = |lane: &Lane| lane.ready(*words, now, cost.min(lane.burst()));
        let slowest = self.all(own).max_by_key(ready);
        slowest.expect("a limiter has a quota").balance(*words, now)
    }

    fn balances(&self, words: &State<W>, now: Nanos) -> Option<Balances> {
        if self.0.len() == 1 {
            return None;
        }
        Balances::new(self.0.iter().map(|lane| lane.balance(*words, now)))
    }

    fn plan(
        &self,
        own: Option<&Quota>,
        words: &mut State<W>,
        from: Nanos,
        cost: u32,
    ) -> Option<Nanos> {
        if self.all(own).any(|lane| lane.burst() < cost) {
            return None;
        }
        // What fits at some instant still fits later, so the latest of the first ones is it.
        let ready = self
            .all(own)
            .map(|lane| lane.ready(*words, from, cost))
            .max()?;
        self.all(own)
            .for_each(|lane| lane.charge(words, ready, cost));
        Some(ready)
    }

    fn marks(&self, words: &State<W>, now: Nanos) -> PerQuota {
        let (mut words, mut marks) = (*words, [0; MOST_WORDS]);
        for (lane, mark) in self.0.iter().zip(&mut marks) {
            *mark = with_lane!(lane, words, rule, state => rule.mark(state, now));
        }
        marks
    }

    fn refund(
        &self,
        own: Option<&Quota>,
        words: &mut State<W>,
        now: Nanos,
        cost: u32,
        charge: &Charge,
    ) -> PerQuota {
        let mut given = [0; MOST_WORDS];
        for (n, lane) in self.all(own).enumerate() {
            let (mark, before) = (charge.marks[n], charge.before[n]);
            given[n] = with_lane!(lane, *words, rule, state => {
                rule.refund(state, now, cost, mark, before)
            });
            // A window without counts holds nothing that a fresh one does not.
            if words_of(&lane.quota()) == 2 && words[lane.at + 1] == 0 {
                words[lane.at] = 0;
            }
        }
        given
    }

    fn carry(&self, before: &Self, mut words: State<W>, now: Nanos) -> State<W> {
        if before.is_fresh(words, now) {
            return [0; W];
        }
        for (lane, before) in self.0.iter().zip(&before.0) {
            lane.carry(before, &mut words, now);
        }
        words
    }
}
