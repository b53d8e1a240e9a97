use super::{Balance, FixedWindow, Gcra, Log, Shortfall, SlidingLog, SlidingWindow};
use crate::clock::Nanos;
use crate::rate_limit::{Algorithm, Quota};

/// The shape of every core: decides on a state that someone else keeps.
///
/// `cost` is at most the quota's burst throughout; a higher one is refused for ever and never
/// reaches a core. Instants may repeat and go backward: that never refills. A cost of 0 spends
/// nothing and is refused only while a debt is outstanding.
pub(crate) trait Rule {
    /// What is kept per limiter or key. The default is fresh: nothing spent.
    type State: Clone + Default;

    /// Whether `cost` would be admitted now, or what it lacks.
    fn fits(&self, state: &Self::State, now: Nanos, cost: u32) -> Result<(), Shortfall>;

    /// Charges `cost` whether it fits or not. What does not fit is a debt, paid off by waiting.
    fn charge(&self, state: &mut Self::State, now: Nanos, cost: u32);

    /// Charges `cost` if it fits now; otherwise changes nothing and says what it lacks.
    #[inline]
    fn decide(&self, state: &mut Self::State, now: Nanos, cost: u32) -> Result<Balance, Shortfall> {
        self.fits(state, now, cost)?;
        self.charge(state, now, cost);
        Ok(self.balance(state, now))
    }

    /// What is left, spending nothing.
    fn balance(&self, state: &Self::State, now: Nanos) -> Balance;

    /// Whether the state decides as a fresh one would, now and later, so that it may be dropped.
    fn is_fresh(&self, state: &Self::State, now: Nanos) -> bool;

    /// The first instant from `from` on at which `cost` fits, if nobody else comes.
    fn ready(&self, state: &Self::State, from: Nanos, cost: u32) -> Nanos;

    /// What identifies, to [`refund`](Self::refund), a charge made just now.
    fn mark(&self, state: &Self::State, now: Nanos) -> u64;

    /// Gives back up to `cost` of the charge `mark`, as far as time has not given it back yet.
    /// `returned` is what has been given back since then of charges before it, in this rule's units.
    /// Returns how many units it gave.
    fn refund(
        &self,
        state: &mut Self::State,
        now: Nanos,
        cost: u32,
        mark: u64,
        returned: u64,
    ) -> u64;

    /// The state under this rule that has as long to go until it is full as `old` has under
    /// `before`, but no longer than this rule takes to fill.
    fn carry(&self, before: &Self, old: &Self::State, now: Nanos) -> Self::State;
}

/// Any of the rules, for whoever decides under a lock anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnyRule {
    Gcra(Gcra),
    FixedWindow(FixedWindow),
    SlidingWindow(SlidingWindow),
    SlidingLog(SlidingLog),
}

/// The state of any rule. Fresh is all zeros, and an empty log.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnyState {
    words: [u64; 2],
    log: Log,
}

impl From<Quota> for AnyRule {
    fn from(quota: Quota) -> Self {
        match quota.algorithm() {
            Algorithm::Gcra => Self::Gcra(Gcra::scaled(quota)),
            Algorithm::FixedWindow => Self::FixedWindow(FixedWindow::new(quota)),
            Algorithm::SlidingWindow => Self::SlidingWindow(SlidingWindow::new(quota)),
            Algorithm::SlidingLog => Self::SlidingLog(SlidingLog::new(quota)),
        }
    }
}

/// Calls `$method` on whichever rule it is, with the part of `$state` that rule keeps.
macro_rules! dispatch {
    ($self:ident, $rule:ident => $log:expr, $one:expr, $two:expr) => {
        match $self {
            AnyRule::Gcra($rule) => $one,
            AnyRule::FixedWindow($rule) => $two,
            AnyRule::SlidingWindow($rule) => $two,
            AnyRule::SlidingLog($rule) => $log,
        }
    };
}

impl AnyState {
    /// The state of a rule that keeps one word.
    pub(crate) fn of_word(word: u64) -> Self {
        Self {
            words: [word, 0],
            log: Log::default(),
        }
    }
}

impl AnyRule {
    pub(crate) fn quota(&self) -> Quota {
        match self {
            Self::Gcra(rule) => rule.quota(),
            Self::FixedWindow(rule) => rule.quota(),
            Self::SlidingWindow(rule) => rule.quota(),
            Self::SlidingLog(rule) => rule.quota(),
        }
    }
}

impl Rule for AnyRule {
    type State = AnyState;

    fn fits(&self, state: &AnyState, now: Nanos, cost: u32) -> Result<(), Shortfall> {
        dispatch!(self, rule => rule.fits(&state.log, now, cost),
            rule.fits(&state.words[0], now, cost),
            rule.fits(&state.words, now, cost))
    }

    fn balance(&self, state: &AnyState, now: Nanos) -> Balance {
        dispatch!(self, rule => rule.balance(&state.log, now),
            rule.balance(&state.words[0], now),
            rule.balance(&state.words, now))
    }

    fn is_fresh(&self, state: &AnyState, now: Nanos) -> bool {
        dispatch!(self, rule => rule.is_fresh(&state.log, now),
            rule.is_fresh(&state.words[0], now),
            rule.is_fresh(&state.words, now))
    }

    fn ready(&self, state: &AnyState, from: Nanos, cost: u32) -> Nanos {
        dispatch!(self, rule => rule.ready(&state.log, from, cost),
            rule.ready(&state.words[0], from, cost),
            rule.ready(&state.words, from, cost))
    }

    fn charge(&self, state: &mut AnyState, now: Nanos, cost: u32) {
        dispatch!(self, rule => rule.charge(&mut state.log, now, cost),
            rule.charge(&mut state.words[0], now, cost),
            rule.charge(&mut state.words, now, cost));
    }

    fn mark(&self, state: &AnyState, now: Nanos) -> u64 {
        dispatch!(self, rule => rule.mark(&state.log, now),
            rule.mark(&state.words[0], now),
            rule.mark(&state.words, now))
    }

    fn refund(&self, state: &mut AnyState, now: Nanos, cost: u32, mark: u64, returned: u64) -> u64 {
        dispatch!(self, rule => rule.refund(&mut state.log, now, cost, mark, returned),
            rule.refund(&mut state.words[0], now, cost, mark, returned),
            rule.refund(&mut state.words, now, cost, mark, returned))
    }

    fn carry(&self, before: &Self, old: &AnyState, now: Nanos) -> AnyState {
        let mut state = AnyState::default();
        match (self, before) {
            (Self::Gcra(rule), Self::Gcra(before)) => {
                state.words[0] = rule.carry(before, &old.words[0], now);
            }
            (Self::FixedWindow(rule), Self::FixedWindow(before)) => {
                state.words = rule.carry(before, &old.words, now);
            }
            (Self::SlidingWindow(rule), Self::SlidingWindow(before)) => {
                state.words = rule.carry(before, &old.words, now);
            }
            (Self::SlidingLog(rule), Self::SlidingLog(before)) => {
                state.log = rule.carry(before, &old.log, now);
            }
            // A quota is only ever replaced by one of the same algorithm.
            _ => {}
        }
        state
    }
}
