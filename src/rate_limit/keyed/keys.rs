use std::cell::Cell;

use crossbeam_utils::CachePadded;

use super::KeyedStats;
use super::hasher::KeyHasher;
use super::one_word::OneWord;
use super::rules::{Balances, Charge, KeyRules, PerQuota, Refused};
use super::shards::{InForce, Shards};
use super::stored::StoredKey;
use super::table::State;
use crate::WhenFull;
use crate::clock::Nanos;
use crate::rate_limit::algorithm::{Balance, Shortfall};
use crate::rate_limit::{Quota, Standing};
use crate::sync::{AtomicU64, Mutex, Ordering};

/// The store of keys, `W` words each, and what stands in for it when it is full.
pub(super) struct Keys<K, P, const W: usize> {
    pub(super) shards: Shards<K, P, W>,
    when_full: WhenFull,
    spill: CachePadded<Spill<P, W>>,
}

struct Spill<P, const W: usize> {
    overspill: Mutex<Overspill<P, W>>,
    overflowed: AtomicU64,
    refused: AtomicU64,
}

/// The state that all keys without a place share.
#[derive(Clone)]
struct Overspill<P, const W: usize> {
    rules: P,
    state: State<W>,
    /// The latest reading at which new rules made the state zero: a call that read the clock before
    /// decides as of then.
    zero_at: Nanos,
}

/// An admission, or what to refuse with, and how all quotas stand where there are several.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) outcome: Outcome,
    pub(super) standings: Vec<Standing>,
}

type Outcome = Result<Balance, Refused>;

/// Where a decision leaves how all quotas stood: not in its answer, as most have nothing to leave.
type Seen = Cell<Option<Balances>>;

/// A call that waits, to be planned for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) own: Option<&'a Quota>,
    pub(super) cost: u32,
    /// Those behind it need not reckon with a turn that is later.
    pub(super) until: Nanos,
}

/// A charge that some of may be given back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) generation: u64,
    pub(super) marks: PerQuota,
}

impl<K: StoredKey> Keys<K, OneWord, 1> {
    #[inline]
    pub(super) fn hasher(&self) -> &KeyHasher {
        self.shards.hasher()
    }

    /// Decides where a known key makes it plain; `None` where that takes `decide`.
    #[inline(always)] // part of `KeyedRateLimiter::check_at`
    pub(super) fn decide_plain(
        &self,
        key: K,
        now: Nanos,
        cost: u32,
    ) -> Option<Result<Balance, Shortfall>> {
        let place = self.shards.place(key);
        let decided = self
            .shards
            .update_known(place, key, now, |in_force, state| {
                in_force.rules.decide_plain(state, now, cost)
            });
        match decided? {
            Ok(balance) => Some(Ok(balance)),
            Err(shortfall) => shortfall.map(Err),
        }
    }
}

impl<K: StoredKey, P: KeyRules<W>, const W: usize> Keys<K, P, W> {
    pub(super) fn new(rules: P, max_keys: usize, when_full: WhenFull) -> Self {
        Self {
            shards: Shards::new(rules.clone(), max_keys),
            when_full,
            spill: CachePadded::new(Spill {
                overspill: Mutex::new(Overspill {
                    rules,
                    state: [0; W],
                    zero_at: Nanos::ZERO,
                }),
                overflowed: AtomicU64::new(0),
                refused: AtomicU64::new(0),
            }),
        }
    }

    pub(super) fn decide(&self, key: K, own: Option<&Quota>, now: Nanos, cost: u32) -> Decision {
        let seen = Seen::default();
        let outcome = self.shards.update(
            key,
            now,
            |in_force, state, now| decide(&in_force.rules, own, state, now, cost, &seen),
            || self.decide_without_room(own, now, cost, &seen),
        );
        Decision::new(outcome, &seen)
    }

    /// Charges `cost` at `now` if it fits at `at` too, an instant not later. What goes to the
    /// shared state cannot be given back.
    pub(super) fn grant(
        &self,
        key: K,
        own: Option<&Quota>,
        at: Nanos,
        now: Nanos,
        cost: u32,
    ) -> (Decision, Option<Granted>) {
        let seen = Seen::default();
        let grant = |in_force: &InForce<P>, state: &mut State<W>, now: Nanos| {
            let rules = &in_force.rules;
            let mut early = *state;
            if let late @ Err(_) = rules.decide(own, &mut early, at.min(now), cost) {
                // What does not fit now either is refused as of now.
                let late = rules.decide(own, &mut state.clone(), now, cost).and(late);
                seen.set(rules.balances(state, now));
                return (late, None);
            }
            let outcome = decide(rules, own, state, now, cost, &seen);
            let granted = outcome.is_ok().then(|| Granted {
                generation: in_force.generation,
                marks: rules.marks(state, now),
            });
            (outcome, granted)
        };
        let without_room = || (self.decide_without_room(own, now, cost, &seen), None);
        let (outcome, granted) = self.shards.update(key, now, grant, without_room);
        (Decision::new(outcome, &seen), granted)
    }

    /// Gives back up to `cost` of a charge, as far as time has not given it back yet; how much.
    pub(super) fn refund(
        &self,
        key: K,
        own: Option<&Quota>,
        now: impl FnOnce() -> Nanos,
        cost: u32,
        generation: u64,
        charge: &Charge,
    ) -> Option<PerQuota> {
        self.shards.relieve(key, now, |in_force, state, now| {
            if in_force.generation != generation {
                return PerQuota::default();
            }
            in_force.rules.refund(own, state, now, cost, charge)
        })
    }

    /// Charges `cost` whether it fits or not; where there is no room, to the shared state.
    pub(super) fn charge(&self, key: K, now: Nanos, cost: u32) {
        self.shards.update(
            key,
            now,
            |in_force, state, now| in_force.rules.charge(state, now, cost),
            || self.charge_without_room(now, cost),
        );
    }

    fn charge_without_room(&self, now: Nanos, cost: u32) {
        if self.when_full == WhenFull::Refuse {
            return;
        }
        let mut shared = self.spill.overspill.lock();
        let shared = &mut *shared;
        let now = now.max(shared.zero_at);
        shared.rules.charge(&mut shared.state, now, cost);
    }

    #[cold]
    fn decide_without_room(
        &self,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
        seen: &Seen,
    ) -> Outcome {
        let mut shared = self.spill.overspill.lock();
        let Overspill {
            rules,
            state,
            zero_at,
        } = &mut *shared;
        let now = now.max(*zero_at);
        let no_room = || {
            seen.set(rules.balances(&[0; W], now));
            Err(Refused::NoRoom(rules.balance(own, &[0; W], now)))
        };
        if self.when_full == WhenFull::Refuse {
            self.spill.refused.fetch_add(1, Ordering::Relaxed);
            return no_room();
        }
        self.spill.overflowed.fetch_add(1, Ordering::Relaxed);
        // Under the store's quotas: a key's own is for that key. What only fits that one finds no
        // room here, but may when the key has a place.
        match (decide(rules, None, state, now, cost, seen), own) {
            (Err(Refused::AboveBurst(_)), Some(_)) => no_room(),
            (outcome, _) => outcome,
        }
    }

    pub(super) fn peek(&self, key: K, now: Nanos) -> Decision {
        let (in_force, state) = self.shards.read(key);
        let state = state.unwrap_or([0; W]);
        let (rules, seen) = (&in_force.rules, Seen::default());
        let outcome = decide(rules, None, &mut state.clone(), now, 1, &seen);
        seen.set(rules.balances(&state, now));
        Decision::new(outcome.map(|_| rules.balance(None, &state, now)), &seen)
    }

    /// What is left to `key` of the quota that is the last to admit `cost`, and how all stand
    /// where there are several.
    pub(super) fn slowest(
        &self,
        key: K,
        own: Option<&Quota>,
        now: Nanos,
        cost: u32,
    ) -> (Balance, Vec<Standing>) {
        self.looked_up(key, |rules, state, is_own_place| {
            let own = own.filter(|_| is_own_place);
            let slowest = rules.slowest(own, &state, now, cost);
            (slowest, standings(rules.balances(&state, now)))
        })
    }

    pub(super) fn plan<'a>(
        &self,
        key: K,
        now: Nanos,
        queue: impl Iterator<Item = Asked<'a>>,
        mut turn: impl FnMut(Option<Nanos>),
    ) {
        self.looked_up(key, |rules, mut state, is_own_place| {
            let mut from = now;
            for asked in queue {
                let (own, mut after) = (asked.own.filter(|_| is_own_place), state);
                let at = rules.plan(own, &mut after, from, asked.cost);
                // One that costs more than is ever admitted, or comes too late, delays nobody.
                if let Some(at) = at.filter(|at| *at <= asked.until) {
                    (from, state) = (at, after);
                }
                turn(at);
            }
        });
    }

    /// Looks at the state that a call of `key` would be charged to, and says whether that is the
    /// key's own place and not the shared one.
    fn looked_up<T>(&self, key: K, look: impl FnOnce(&P, State<W>, bool) -> T) -> T {
        match self.shards.read(key) {
            (in_force, Ok(state)) => look(&in_force.rules, state, true),
            (in_force, Err(_)) if self.when_full == WhenFull::Refuse => {
                look(&in_force.rules, [0; W], true)
            }
            (_, Err(_)) => {
                let shared = self.spill.overspill.lock().clone();
                look(&shared.rules, shared.state, false)
            }
        }
    }

    pub(super) fn set_rules(&self, rules: P, now: Nanos) {
        {
            let mut shared = self.spill.overspill.lock();
            let state = rules.carry(&shared.rules, shared.state, now);
            if state == [0; W] && shared.state != state {
                shared.zero_at = shared.zero_at.max(now);
            }
            (shared.rules, shared.state) = (rules.clone(), state);
        }
        let carry = |old: &P, new: &P, state| new.carry(old, state, now);
        self.shards.set_rules(rules, now, carry);
    }

    pub(super) fn stats(&self) -> KeyedStats {
        KeyedStats {
            keys: self.shards.len(),
            bytes: size_of::<Self>() + self.shards.bytes(),
            evicted: self.shards.evicted(),
            refused_new: self.spill.refused.load(Ordering::Relaxed),
            overflowed: self.spill.overflowed.load(Ordering::Relaxed),
            held_back: 0,
        }
    }
}

impl Decision {
    fn new(outcome: Outcome, seen: &Seen) -> Self {
        let standings = standings(seen.take());
        Self { outcome, standings }
    }
}

fn standings(balances: Option<Balances>) -> Vec<Standing> {
    let balances = balances.as_ref().map_or(&[][..], Balances::as_slice);
    balances.iter().copied().map(Standing).collect()
}

fn decide<P: KeyRules<W>, const W: usize>(
    rules: &P,
    own: Option<&Quota>,
    state: &mut State<W>,
    now: Nanos,
    cost: u32,
    seen: &Seen,
) -> Outcome {
    let outcome = rules.decide(own, state, now, cost);
    if let balances @ Some(_) = rules.balances(state, now) {
        seen.set(balances);
    }
    outcome
}
