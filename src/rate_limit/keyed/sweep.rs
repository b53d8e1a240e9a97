//! Looking for keys that are fresh again: in passing, a bounded piece at a time.

use std::ops::Range;
use std::time::Duration;

use super::shards::{Line, Rules, Shard, Shards};
use super::stored::StoredKey;
use super::table::Swept;
use crate::clock::Nanos;
use crate::sync::Ordering;

/// Calls to a shard, a new key counting for [`NEW_KEY`] of them, that pay for one look at other
/// shards. So a call costs about half a slot's look.
pub(super) const CALLS_PER_LOOK: u32 = 256;
pub(super) const NEW_KEY: u32 = 16;
/// How soon the next look comes after one that found half of what it saw to be fresh.
const CALLS_AFTER_A_FIND: u32 = 8;
/// One look ends after so many slots, or so many shards: empty ones are many in a small store.
const SLOTS_PER_LOOK: usize = 128;
const SHARDS_PER_LOOK: usize = 8;

/// How long a key is kept after it became fresh, while there is room: one that is called again and
/// again is not taken out and put back each time.
const KEPT_FRESH: Duration = Duration::from_secs(10);

impl<K: StoredKey, P: Rules<W>, const W: usize> Shards<K, P, W> {
    /// Takes out every fresh key, shard by shard.
    pub(super) fn sweep_all(&self, now: Nanos) -> usize {
        let shards = self.shards.iter();
        shards
            .map(|Line(shard)| self.sweep(&mut shard.lock(), 0..usize::MAX, now, now).gone)
            .sum()
    }

    /// Sweeps in passing; soon again from the shard at `place` if that found much.
    #[cold]
    #[inline(never)]
    pub(super) fn look_around(&self, place: u64, now: Nanos) {
        if self.sweep_some(since_long(now), now) {
            self.shard(place).lock().calls_left = CALLS_AFTER_A_FIND;
        }
    }

    /// Sweeps the next few slots in turn of what was fresh at `since`; whether that was at least
    /// half of the keys in them.
    pub(super) fn sweep_some(&self, since: Nanos, now: Nanos) -> bool {
        let mut seen = Swept::default();
        for _ in 0..SHARDS_PER_LOOK.min(self.shards.len()) {
            let at = self.shared.next_look.load(Ordering::Relaxed);
            let Line(shard) = &self.shards[at & (self.shards.len() - 1)];
            let mut shard = shard.lock();
            seen += self.sweep_piece(&mut shard, since, now);
            if shard.looked_to == 0 {
                // Through with this one. Not moved on twice by two who finish it at once.
                let (order, next) = (Ordering::Relaxed, at.wrapping_add(1));
                let _ = self
                    .shared
                    .next_look
                    .compare_exchange(at, next, order, order);
            }
            if seen.slots >= SLOTS_PER_LOOK {
                break;
            }
        }
        seen.gone > 0 && seen.gone >= seen.kept
    }

    /// Sweeps the next piece of one shard.
    pub(super) fn sweep_piece(
        &self,
        shard: &mut Shard<K, P, W>,
        since: Nanos,
        now: Nanos,
    ) -> Swept {
        let from = shard.looked_to as usize;
        let swept = self.sweep(shard, from..from + SLOTS_PER_LOOK, since, now);
        let looked_to = from + SLOTS_PER_LOOK;
        shard.looked_to = if looked_to < shard.table.slots() {
            looked_to as u32
        } else {
            0
        };
        swept
    }

    /// Takes out of one shard what has been fresh for long.
    pub(super) fn sweep_long_fresh(&self, shard: &mut Shard<K, P, W>, now: Nanos) {
        self.sweep(shard, 0..usize::MAX, since_long(now), now);
    }

    /// Takes out of some slots what was fresh at `since` already, which is `now` or earlier.
    fn sweep(
        &self,
        shard: &mut Shard<K, P, W>,
        slots: Range<usize>,
        since: Nanos,
        now: Nanos,
    ) -> Swept {
        let rules = &shard.rules.rules;
        let fresh = |state| rules.is_fresh(state, since);
        let swept = shard.table.sweep(slots, fresh, &self.hasher);
        if swept.gone > 0 {
            shard.swept_at = shard.swept_at.max(now);
            let shared = &self.shared;
            shared.keys.fetch_sub(swept.gone, Ordering::Relaxed);
            shared
                .evicted
                .fetch_add(swept.gone as u64, Ordering::Relaxed);
        }
        swept
    }
}

impl<K, P, const W: usize> Shard<K, P, W> {
    /// Counts calls; whether enough have come to pay for a look at other shards.
    #[inline]
    pub(super) fn count_calls(&mut self, calls: u32) -> bool {
        self.calls_left = self.calls_left.saturating_sub(calls);
        let due = self.calls_left == 0;
        if due {
            self.calls_left = CALLS_PER_LOOK;
        }
        due
    }
}

fn since_long(now: Nanos) -> Nanos {
    Nanos::from(now.since(Nanos::from(KEPT_FRESH)))
}
