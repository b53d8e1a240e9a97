use super::Quota;
use super::algorithm::{Balance, Gcra, Scale, Shortfall, is_marked};
use crate::clock::Nanos;
use crate::sync::{AtomicU64, Ordering};

/// Stands in for the state while there is none to decide by; above every state there is.
pub(super) const SEALED: u64 = u64::MAX;

/// A state and the numbers it means something under, which may be replaced while others decide;
/// [`LiveGcra`](super::live::LiveGcra) says how. Sealed until the first are published.
#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) state: AtomicU64,
    rate: AtomicU64,
    call: AtomicU64,
    full: AtomicU64,
    last: AtomicU64,
    /// How far the word is above the state that the rule means.
    offset: AtomicU64,
    period: AtomicU64,
    /// Limit and burst.
    sizes: AtomicU64,
}

impl Replaced {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU64::new(SEALED),
            rate: AtomicU64::new(0),
            call: AtomicU64::new(0),
            full: AtomicU64::new(0),
            last: AtomicU64::new(0),
            offset: AtomicU64::new(0),
            period: AtomicU64::new(0),
            sizes: AtomicU64::new(0),
        }
    }

    /// Writes the numbers; the state is sealed meanwhile.
    pub(super) fn publish(&self, rule: &Gcra, offset: u64) {
        let [period, sizes] = rule.quota().to_words();
        self.rate.store(rule.rate, Ordering::Release);
        self.call.store(rule.call, Ordering::Release);
        self.full.store(rule.full, Ordering::Release);
        self.last.store(rule.last, Ordering::Release);
        self.offset.store(offset, Ordering::Release);
        self.period.store(period, Ordering::Release);
        self.sizes.store(sizes, Ordering::Release);
    }

    /// The numbers as they stand; a mixture of two quotas while they are being replaced.
    fn rule(&self) -> Gcra {
        let rate = self.rate.load(Ordering::Acquire);
        let last = self.last.load(Ordering::Acquire);
        Gcra {
            rate,
            call: self.call.load(Ordering::Acquire),
            full: self.full.load(Ordering::Acquire),
            last,
            whole: Gcra::whole(rate, last),
            quota: Quota::from_words([
                self.period.load(Ordering::Acquire),
                self.sizes.load(Ordering::Acquire),
            ]),
            scale: Scale::Quota,
        }
    }

    /// Charges `cost` at `now`, or says what it lacks; `None` where it takes the lock, as
    /// [`Gcra::attempt`].
    #[inline(never)] // one call more, and the way of a limiter as built stays short
    pub(super) fn decide(&self, now: Nanos, cost: u32) -> Option<Result<Balance, Shortfall>> {
        loop {
            let state = self.state.load(Ordering::Acquire);
            if is_marked(state) {
                return None;
            }
            let offset = self.offset.load(Ordering::Acquire);
            let plain = state.wrapping_sub(offset);
            let rule = self.rule();
            match rule.attempt(plain, now, cost) {
                Ok(step) if swap(&self.state, state, step.next.wrapping_add(offset)).is_ok() => {
                    return Some(Ok(rule.left_by(&step, now)));
                }
                Err(shortfall) if self.state.load(Ordering::Relaxed) == state => {
                    return shortfall.map(Err);
                }
                // Another state, so perhaps other numbers.
                _ => {}
            }
        }
    }
}

/// Swaps `state` for `next`, or says what is there instead. May fail without a reason.
#[inline]
pub(super) fn swap(word: &AtomicU64, state: u64, next: u64) -> Result<u64, u64> {
    word.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire)
}
