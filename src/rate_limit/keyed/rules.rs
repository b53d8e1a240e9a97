use super::shards::Rules;
use super::table::State;
use crate::clock::Nanos;
use crate::rate_limit::Quota;
use crate::rate_limit::algorithm::{Balance, Shortfall};

/// The most quotas a key can be under: each keeps a word at least.
pub(super) const MOST_WORDS: usize = 8;

/// A number for each quota, in order.
pub(super) type PerQuota = [u64; MOST_WORDS];

/// Quotas as a store of keys applies them to `W` words.
pub(super) trait KeyRules<const W: usize>: Rules<W> + Clone {
    /// Charges `cost` to `state` under the store's quotas, or under `own`: to all or to none.
    fn decide(
        &self,
        own: Option<&Quota>,
        state: &mut State<W>,
        now: Nanos,
        cost: u32,
    ) -> Result<Balance, Refused>;

    /// Charges `cost` under the store's quotas, whether it fits or not.
    fn charge(&self, state: &mut State<W>, now: Nanos, cost: u32);

    /// What is left: of several quotas, of the one that leaves the fewest calls.
    fn balance(&self, own: Option<&Quota>, state: &State<W>, now: Nanos) -> Balance;

    /// What is left of the quota that is the last to admit `cost`.
    fn slowest(&self, own: Option<&Quota>, state: &State<W>, now: Nanos, cost: u32) -> Balance;

    /// What is left of each, where there are several.
    fn balances(&self, state: &State<W>, now: Nanos) -> Option<Balances>;

    /// Charges `cost` at the first instant from `from` on at which it fits, if it ever does.
    fn plan(
        &self,
        own: Option<&Quota>,
        state: &mut State<W>,
        from: Nanos,
        cost: u32,
    ) -> Option<Nanos>;

    /// What identifies, to `refund`, a charge made just now.
    fn marks(&self, state: &State<W>, now: Nanos) -> PerQuota;

    /// Gives back up to `cost` of a charge made under the same quotas, as far as time has not
    /// given it back yet; `before` has been given back since of charges before it. Returns how
    /// much it gave.
    fn refund(
        &self,
        own: Option<&Quota>,
        state: &mut State<W>,
        now: Nanos,
        cost: u32,
        charge: &Charge,
    ) -> PerQuota;

    /// The state under these rules of one that was kept under `before`.
    fn carry(&self, before: &Self, state: State<W>, now: Nanos) -> State<W>;
}

/// Why the quotas of a key did not admit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// By the quota with the longest wait.
    Spent(Shortfall),
    AboveBurst(Balance),
    NoRoom(Balance),
}

/// A charge that some of is to be given back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Charge {
    pub(super) marks: PerQuota,
    pub(super) before: PerQuota,
}

/// How several quotas stand, in order. No list on the heap: it is made under a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Balances {
    list: [Balance; MOST_WORDS],
    len: usize,
}

impl Balances {
    /// At least one, at most [`MOST_WORDS`].
    pub(super) fn new(mut balances: impl Iterator<Item = Balance>) -> Option<Self> {
        let mut list = [balances.next()?; MOST_WORDS];
        let mut len = 1;
        for balance in balances {
            list[len] = balance;
            len += 1;
        }
        Some(Self { list, len })
    }

    pub(super) fn as_slice(&self) -> &[Balance] {
        &self.list[..self.len]
    }
}
