//! One GCRA quota shared by threads: one atomic word of state, and numbers that may be replaced.
//!
//! # As built
//!
//! Until its quota is replaced, which most never are, a limiter decides by numbers that nothing
//! writes: a decision reads the word, and swaps it where it admits.
//!
//! # Replacing the quota
//!
//! The first `set_quota` swaps [`SEALED`] into that word, for good: from then on its askers go on
//! to a second word, whose numbers are atomics. The state means something only together with the
//! numbers of its quota, so a decision must never mix two of them, although it takes no lock. The
//! state itself is the proof:
//!
//! - `set_quota` first swaps the state for [`SEALED`], then writes the numbers, then stores the
//!   new state. It never stores a value that the word has held before under another quota: it
//!   adds an offset to the new quota's states that puts them all above the old ones (only after a
//!   debt of decades does it start again below).
//! - A decision reads the state, then the numbers. To admit, it swaps the state it read for the
//!   next one: if that succeeds, the word held that state all along and the numbers belong to
//!   it. To refuse, it reads the state once more, for the same reason. It writes nothing.
//!
//! Refunds lower the state, but only under the numbers it was made with, so a value that comes
//! back within one quota is still right.

use super::Quota;
use super::algorithm::{Balance, Gcra, Rule, Shortfall, unmarked};
use super::engine::Grant;
use super::ledger::Refused;
use super::refunds::Refunds;
use super::replaced::{Replaced, SEALED, swap};
use crate::clock::Nanos;
use crate::sync::{AtomicU64, Mutex, Ordering};

#[derive(Debug)]
pub(crate) struct LiveGcra {
    state: AtomicU64,
    built: Gcra,
    replaced: Replaced,
    control: Mutex<Control>,
}

/// What only those who change the quota or give back calls use.
#[derive(Debug)]
struct Control {
    rule: Gcra,
    /// How far the word is above the state that the rule means.
    offset: u64,
    /// The highest state the word has held.
    peak: u64,
    /// Counts changes of quota; a grant from before one gives nothing back.
    generation: u64,
    refunds: Refunds,
}

impl LiveGcra {
    pub(crate) fn new(quota: Quota) -> Self {
        let built = Gcra::scaled(quota);
        Self {
            state: AtomicU64::new(0),
            built,
            replaced: Replaced::new(),
            control: Mutex::new(Control {
                rule: built,
                offset: 0,
                peak: 0,
                generation: 0,
                refunds: Refunds::default(),
            }),
        }
    }

    /// A word that is sealed for good: whoever asks it is sent to the slow path.
    pub(crate) fn closed(quota: Quota) -> Self {
        let live = Self::new(quota);
        live.state.store(SEALED, Ordering::Release);
        live
    }

    /// Charges `cost` at `now`, or says what it lacks. One load, and one swap where it admits.
    ///
    /// `Err(None)` where it takes [`decide_locked`](Self::decide_locked): a word sealed or in debt,
    /// a cost of 0 or above the burst.
    #[inline(always)] // part of `RateLimiter::check_at`
    pub(crate) fn decide(&self, now: Nanos, cost: u32) -> Result<Balance, Option<Shortfall>> {
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            match self.built.attempt(state, now, cost) {
                Ok(step) => match swap(&self.state, state, step.next) {
                    Ok(_) => return Ok(self.built.left_by(&step, now)),
                    Err(changed) => state = changed,
                },
                Err(Some(shortfall)) => return Err(Some(shortfall)),
                Err(None) => break,
            }
        }
        match self.replaced.decide(now, cost) {
            Some(decided) => decided.map_err(Some),
            None => Err(None),
        }
    }

    /// As [`decide`](Self::decide), for every case, while nobody replaces the quota.
    pub(crate) fn decide_locked(&self, now: Nanos, cost: u32) -> Result<Balance, Refused> {
        let mut control = self.control.lock();
        self.update(&mut control, |rule, state| {
            if cost > rule.quota.burst_size() {
                return Err(Refused::AboveBurst(rule.balance(state, now)));
            }
            rule.decide(state, now, cost).map_err(Refused::Spent)
        })
    }

    /// Where the state is.
    fn word(&self, control: &Control) -> &AtomicU64 {
        if control.generation == 0 {
            &self.state
        } else {
            &self.replaced.state
        }
    }

    /// The state and the numbers it was made with.
    pub(crate) fn read(&self) -> (Gcra, u64) {
        let control = self.control.lock();
        let word = self.word(&control).load(Ordering::Acquire);
        (control.rule, word - control.offset)
    }

    /// Applies `change` to the state, as one step, while nobody replaces the quota.
    fn update<T>(&self, control: &mut Control, change: impl Fn(&Gcra, &mut u64) -> T) -> T {
        let word = self.word(control);
        loop {
            let state = word.load(Ordering::Acquire);
            let mut next = state - control.offset;
            let answer = change(&control.rule, &mut next);
            next = raised(next, control.offset);
            if next == state || swap(word, state, next).is_ok() {
                control.peak = control.peak.max(unmarked(state)).max(unmarked(next));
                return answer;
            }
        }
    }

    /// Charges `cost` at `now` if it fits at `at` too, an instant not later.
    pub(crate) fn grant(
        &self,
        at: Nanos,
        now: Nanos,
        cost: u32,
    ) -> Result<(Balance, Grant), Refused> {
        let mut control = self.control.lock();
        self.update(&mut control, |rule, state| {
            if cost > rule.quota.burst_size() {
                return Err(Refused::AboveBurst(rule.balance(state, now)));
            }
            rule.fits(state, at, cost).map_err(Refused::Spent)?;
            let balance = rule.decide(state, now, cost).map_err(Refused::Spent)?;
            Ok((balance, rule.mark(state, now)))
        })
        .map(|(balance, state)| {
            let grant = Grant {
                generation: control.generation,
                first: control.refunds.mark(state),
                rest: Vec::new(),
            };
            (balance, grant)
        })
    }

    /// Gives back up to `cost` of `grant`, as far as time has not given it back yet.
    pub(crate) fn refund(&self, grant: &Grant, now: impl Fn() -> Nanos, cost: u32) {
        let mut control = self.control.lock();
        if grant.generation != control.generation {
            return;
        }
        let before = control.refunds.before(&grant.first);
        let given = self.update(&mut control, |rule, state| {
            rule.refund(state, now(), cost, grant.first.state, before)
        });
        control.refunds.gave(&grant.first, given);
    }

    /// Charges `cost` whether it fits or not.
    pub(crate) fn charge(&self, now: Nanos, cost: u32) {
        let mut control = self.control.lock();
        self.update(&mut control, |rule, state| rule.charge(state, now, cost));
    }

    /// Replaces the quota. The time to full stays, but for no more than the new quota's own.
    pub(crate) fn set_quota(&self, quota: Quota, now: Nanos) {
        let mut control = self.control.lock();
        if control.rule.quota() == quota {
            return;
        }
        // From here to the last line nobody decides; they wait for the lock we hold.
        let old = self.word(&control).swap(SEALED, Ordering::AcqRel);
        control.peak = control.peak.max(unmarked(old));
        let rule = Gcra::scaled(quota);
        let plain = rule.carry(&control.rule, &(old - control.offset), now);
        control.offset = offset_for(plain, control.peak + 1);
        control.rule = rule.leaving(control.offset);
        let state = plain + control.offset;
        control.peak = state;
        control.generation += 1;
        self.replaced.publish(&control.rule, control.offset);
        self.replaced.state.store(state, Ordering::Release);
    }
}

/// The word for `state`. The largest debt leaves no room above it: it loses what is beyond.
fn raised(state: u64, offset: u64) -> u64 {
    let mark = state - unmarked(state);
    mark | (unmarked(state) + offset).min(HIGHEST)
}

/// The highest state without its mark: with it, it is not yet [`SEALED`].
const HIGHEST: u64 = unmarked(SEALED) - 1;

/// The highest offset: it leaves 2^61 units, 36 years, below the mark.
const HIGHEST_OFFSET: u64 = 1 << 61;

/// What puts `state`, and all that follow, at `least` or above; nothing where that is decades
/// ahead, where a debt has been: then the count starts again from the time.
fn offset_for(state: u64, least: u64) -> u64 {
    if least <= HIGHEST_OFFSET {
        least.saturating_sub(state)
    } else {
        0
    }
}
