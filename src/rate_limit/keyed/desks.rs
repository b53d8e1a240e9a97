use std::collections::HashMap;

use crossbeam_utils::CachePadded;

use super::keys::Granted;
use super::rules::{Charge, PerQuota};
use super::stored::StoredKey;
use crate::rate_limit::algorithm::Mark;
use crate::rate_limit::queue::{WaitQueue, Wakes};
use crate::rate_limit::refunds::Refunds;
use crate::rate_limit::{Allowed, Quota, RateLimited};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};

/// Calls of different keys that wait rarely meet at one lock.
const SHARDS: usize = 16;
/// What a shard's map may hold for nobody; above, a burst of waiting calls is given back.
const KEPT_ROOM: usize = 64;

/// What a waiting call is told.
pub(super) type Verdict = Result<(Allowed, Option<Grant>), RateLimited>;

/// The calls that wait of a key, each with its own quota if it brought one.
pub(super) type KeyQueue = WaitQueue<Verdict, Option<Quota>>;

/// What is known of keys beside their states: who waits, and what may be given back.
pub(super) struct Desks<K> {
    shards: Box<[Shard<K>]>,
    /// Over all keys.
    waiting: AtomicUsize,
    most: usize,
    next_id: AtomicU64,
}

type Shard<K> = CachePadded<Mutex<HashMap<K, Desk>>>;

/// One key's; it goes when nobody waits and nothing can come back.
pub(super) struct Desk {
    pub(super) queue: KeyQueue,
    pub(super) books: Books,
    /// How many of the queue are counted among all that wait.
    seats: usize,
}

/// What has been given back to a key, as far as later refunds must know of it.
pub(super) struct Books {
    id: u64,
    /// Charges that may still be given back.
    open: usize,
    first: Refunds,
    rest: Vec<Refunds>,
}

/// What an admitted charge left in the books, for giving some of it back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Grant {
    books: u64,
    pub(super) generation: u64,
    first: Mark,
    rest: Vec<Mark>,
}

impl<K: StoredKey> Desks<K> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            shards: std::iter::repeat_with(Default::default)
                .take(SHARDS)
                .collect(),
            waiting: AtomicUsize::new(0),
            most,
            next_id: AtomicU64::new(0),
        }
    }

    /// How many wait, over all keys.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The keys for which somebody waits.
    pub(super) fn waited_for(&self) -> Vec<(u64, K)> {
        let mut keys = Vec::new();
        for (shard, desks) in (0..).zip(&self.shards) {
            let desks = desks.lock();
            let waited_for = desks.iter().filter(|(_, desk)| desk.seats > 0);
            keys.extend(waited_for.map(|(key, _)| (shard, *key)));
        }
        keys
    }

    /// Runs `work` at the desk of the key at `place`, then wakes whom it says, with no lock held.
    pub(super) fn at<T>(
        &self,
        place: u64,
        key: K,
        work: impl FnOnce(&mut Desk) -> (T, Wakes),
    ) -> T {
        let (answer, wakes) = {
            let mut desks = self.shards[place as usize % SHARDS].lock();
            let desk = desks.entry(key).or_insert_with(|| self.open_desk());
            let answered = work(desk);
            let left = desk.seats - desk.queue.len();
            desk.seats -= left;
            self.waiting.fetch_sub(left, Ordering::Relaxed);
            if desk.queue.is_idle() && desk.books.open == 0 {
                desks.remove(&key);
                if desks.is_empty() && desks.capacity() > KEPT_ROOM {
                    *desks = HashMap::default();
                }
            }
            answered
        };
        wakes.wake();
        answer
    }

    fn open_desk(&self) -> Desk {
        Desk {
            queue: WaitQueue::default(),
            books: self.open_books(),
            seats: 0,
        }
    }

    /// Empty books, in which no earlier grant is known.
    pub(super) fn open_books(&self) -> Books {
        Books {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            open: 0,
            first: Refunds::default(),
            rest: Vec::new(),
        }
    }

    /// Counts one more waiting call, unless as many as may wait already do. The next thing is its
    /// joining the queue of `desk`.
    pub(super) fn take_seat(&self, desk: &mut Desk) -> bool {
        let more = |waiting| (waiting < self.most).then_some(waiting + 1);
        let (order, waiting) = (Ordering::Relaxed, &self.waiting);
        let taken = waiting.fetch_update(order, order, more).is_ok();
        desk.seats += usize::from(taken);
        taken
    }
}

impl Books {
    /// Enters a charge under so many quotas.
    pub(super) fn enter(&mut self, granted: &Granted, quotas: usize) -> Grant {
        self.open += 1;
        self.rest.resize_with(quotas - 1, Refunds::default);
        let [first, rest @ ..] = &granted.marks;
        let rest = self.rest.iter_mut().zip(rest);
        Grant {
            books: self.id,
            generation: granted.generation,
            first: self.first.mark(*first),
            rest: rest.map(|(refunds, mark)| refunds.mark(*mark)).collect(),
        }
    }

    /// Closes a charge; what is to be known for giving some of it back, unless it was forgotten
    /// with the key.
    pub(super) fn close(&mut self, grant: &Grant) -> Option<Charge> {
        if self.id != grant.books {
            return None;
        }
        self.open -= 1;
        let mut charge = Charge::default();
        for (n, (refunds, mark)) in self.lanes(grant).enumerate() {
            charge.marks[n] = mark.state;
            charge.before[n] = refunds.before(mark);
        }
        Some(charge)
    }

    /// Notes what was given back of a charge.
    pub(super) fn gave(&mut self, grant: &Grant, given: &PerQuota) {
        for ((refunds, mark), given) in self.lanes(grant).zip(given) {
            refunds.gave(mark, *given);
        }
    }

    fn lanes<'a>(
        &'a mut self,
        grant: &'a Grant,
    ) -> impl Iterator<Item = (&'a mut Refunds, &'a Mark)> {
        let rest = self.rest.iter_mut().zip(&grant.rest);
        std::iter::once((&mut self.first, &grant.first)).chain(rest)
    }
}
