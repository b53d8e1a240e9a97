use std::sync::OnceLock;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::{CountWindow, Tally, TimeWindow, stripes};
use crate::circuit_breaker::policy::{CircuitPolicy, Counts, WindowKind};
use crate::clock::Nanos;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// No epoch: nothing lands.
const SHUT: u64 = u64::MAX;

/// The windows of one breaker, as threads share them.
///
/// Time windows count in stripes, one a core or nearly, each under a short lock on cache lines of
/// its own; the ring of calls is one, as its order is its meaning. Each carries the epoch it
/// counts for, looked at under its lock: a result of an earlier epoch cannot land in a window
/// that was emptied since, however late its thread runs on.
#[derive(Debug)]
pub(crate) struct Windows {
    /// Made when first needed: a breaker that neither keeps a time window nor reads the clock has
    /// none.
    stripes: OnceLock<Box<[CachePadded<Mutex<Stripe>>]>>,
    ring: Mutex<Ring>,
    /// The latest reading that began a bucket in any stripe, so that all are summed at one time.
    newest: AtomicU64,
}

#[derive(Debug)]
struct Stripe {
    epoch: u64,
    /// `None` where the stripes hold the last elapsed time and nothing else.
    window: Option<TimeWindow>,
    last: Option<Last>,
}

#[derive(Debug)]
struct Ring {
    epoch: u64,
    window: CountWindow,
    last: Option<Last>,
}

/// The elapsed time of a call in nanoseconds, and when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    ended: Nanos,
    elapsed: u64,
}

/// One call to be counted: when it ended and how long it took, where that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) epoch: u64,
    pub(crate) tally: Tally,
    pub(crate) ended: Nanos,
    pub(crate) elapsed: Option<Duration>,
}

impl Mark {
    fn last(&self) -> Option<Last> {
        let ended = self.ended;
        let elapsed = self.elapsed?;
        let elapsed = Nanos::saturating(elapsed).as_u64();
        Some(Last { ended, elapsed })
    }
}

/// Whether a call was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Landed {
    Yes,
    /// The window counts for another epoch.
    Late,
}

impl Windows {
    pub(crate) fn new() -> Self {
        Self {
            stripes: OnceLock::new(),
            ring: Mutex::new(Ring {
                epoch: SHUT,
                window: CountWindow::default(),
                last: None,
            }),
            newest: AtomicU64::new(0),
        }
    }

    /// Makes room for what `policy` counts. A window of the kind and size that is kept already
    /// stays as it is; any other starts empty, for `epoch` if one is counted for.
    pub(crate) fn fit(&self, policy: &CircuitPolicy, timed: bool, epoch: Option<u64>) {
        let epoch = epoch.unwrap_or(SHUT);
        let newest = self.newest();
        let rates = policy.has_rates();
        let time = match policy.window {
            WindowKind::Time(window) if rates => Some(Nanos::saturating(window)),
            _ => None,
        };
        let calls = match policy.window {
            WindowKind::Calls(calls) if rates => calls,
            _ => 0,
        };
        if timed {
            self.stripes.get_or_init(|| new_stripes(stripes::count()));
        }
        for stripe in self.stripes.get().into_iter().flatten() {
            stripe.lock().fit(time, newest, epoch);
        }
        self.fit_ring(calls, epoch);
    }

    fn fit_ring(&self, calls: u32, epoch: u64) {
        if self.ring.lock().window.capacity() == calls as usize {
            self.ring.lock().epoch = epoch;
            return;
        }
        let mut window = CountWindow::new(calls);
        {
            let mut ring = self.ring.lock();
            std::mem::swap(&mut ring.window, &mut window);
            ring.epoch = epoch;
        }
    }

    /// Empties all windows and counts for `epoch` from here on, or for none.
    pub(crate) fn restart(&self, epoch: Option<u64>) {
        let epoch = epoch.unwrap_or(SHUT);
        for stripe in self.stripes.get().into_iter().flatten() {
            let mut stripe = stripe.lock();
            stripe.epoch = epoch;
            if let Some(window) = &mut stripe.window {
                window.clear();
            }
        }
        let mut ring = self.ring.lock();
        ring.epoch = epoch;
        ring.window.clear();
    }

    /// Counts a call that neither failed nor was slow in this thread's stripe. Where the clock
    /// went back it goes into the stripe's newest bucket, however old, until that one's end:
    /// whether another stripe has seen a later time is not looked up.
    #[inline]
    pub(crate) fn mark_good(&self, epoch: u64, ended: Nanos, elapsed: u64) -> Landed {
        let last = Last { ended, elapsed };
        self.in_stripe(stripes::of_thread(), |stripe| {
            stripe.last = Some(last);
            self.count(stripe, epoch, ended, Tally::default())
        })
    }

    /// Counts `mark` in this thread's stripe.
    pub(crate) fn mark_stripe(&self, mark: Mark) -> Landed {
        self.mark_stripe_of(stripes::of_thread(), mark)
    }

    /// Counts `mark` in the stripe of a thread of that number, at the latest time that any has
    /// seen: after the clock went back it would else lie in a bucket that is over in the sum.
    pub(crate) fn mark_stripe_of(&self, thread: usize, mark: Mark) -> Landed {
        let newest = self.newest();
        self.in_stripe(thread, |stripe| {
            stripe.last = mark.last().or(stripe.last);
            self.count(stripe, mark.epoch, mark.ended.max(newest), mark.tally)
        })
    }

    #[inline]
    fn in_stripe(&self, thread: usize, count: impl FnOnce(&mut Stripe) -> Landed) -> Landed {
        let stripes = self.stripes.get().map_or(&[][..], |stripes| &stripes[..]);
        // Their number is a power of two, or none.
        match stripes.get(thread & stripes.len().wrapping_sub(1)) {
            Some(stripe) => count(&mut stripe.lock()),
            None => Landed::Late,
        }
    }

    #[inline]
    fn count(&self, stripe: &mut Stripe, epoch: u64, ended: Nanos, tally: Tally) -> Landed {
        if stripe.epoch != epoch {
            return Landed::Late;
        }
        if let Some(window) = &mut stripe.window {
            if window.is_past(ended) {
                self.roll(window, ended);
            }
            window.add(tally);
        }
        Landed::Yes
    }

    #[cold]
    fn roll(&self, window: &mut TimeWindow, now: Nanos) {
        let newest = self.newest.fetch_max(now.as_u64(), Ordering::Relaxed);
        window.roll(window.tick_at(now.max(Nanos::new(newest))));
    }

    fn newest(&self) -> Nanos {
        Nanos::new(self.newest.load(Ordering::Relaxed))
    }

    /// Counts a call that neither failed nor was slow, and was not timed, in the ring.
    #[inline]
    pub(crate) fn mark_good_in_ring(&self, epoch: u64) -> Landed {
        let mut ring = self.ring.lock();
        if ring.epoch != epoch {
            return Landed::Late;
        }
        ring.window.add(Tally::default());
        Landed::Yes
    }

    /// Counts `mark` in the ring.
    #[inline]
    pub(crate) fn mark_ring(&self, mark: Mark) -> Landed {
        let mut ring = self.ring.lock();
        ring.last = mark.last().or(ring.last);
        if ring.epoch != mark.epoch {
            return Landed::Late;
        }
        ring.window.add(mark.tally);
        Landed::Yes
    }

    /// Keeps the elapsed time of a call that counts in no window.
    pub(crate) fn note_elapsed(&self, ended: Nanos, elapsed: Duration) {
        self.mark_stripe(Mark {
            epoch: SHUT - 1,
            tally: Tally::default(),
            ended,
            elapsed: Some(elapsed),
        });
    }

    /// What all windows hold at `now`. Changes nothing.
    pub(crate) fn counts(&self, now: Nanos) -> Counts {
        let mut counts = self.ring.lock().window.total();
        let newest = self.newest();
        for stripe in self.stripes.get().into_iter().flatten() {
            let stripe = stripe.lock();
            if let Some(window) = &stripe.window {
                counts = counts.join(window.total_at(window.tick_at(now.max(newest))));
            }
        }
        counts
    }

    /// The elapsed time of the call that ended last.
    pub(crate) fn last_elapsed(&self) -> Option<Duration> {
        let mut last = self.ring.lock().last;
        for stripe in self.stripes.get().into_iter().flatten() {
            let other = stripe.lock().last;
            if other.map(|o| o.ended) > last.map(|l| l.ended) {
                last = other;
            }
        }
        last.map(|last| Duration::from_nanos(last.elapsed))
    }
}

impl Stripe {
    fn fit(&mut self, window: Option<Nanos>, newest: Nanos, epoch: u64) {
        // As of the latest reading, at which all are summed: after the clock went back, what is
        // counted in an earlier bucket would be seen by nobody.
        let wanted = window.map(|window| TimeWindow::begun_at(window, newest));
        let same = match (&self.window, &wanted) {
            (Some(kept), Some(wanted)) => kept.width() == wanted.width(),
            (None, None) => true,
            _ => false,
        };
        if !same {
            self.window = wanted;
        }
        self.epoch = epoch;
    }
}

fn new_stripes(count: usize) -> Box<[CachePadded<Mutex<Stripe>>]> {
    let stripe = || Stripe {
        epoch: SHUT,
        window: None,
        last: None,
    };
    (0..count)
        .map(|_| CachePadded::new(Mutex::new(stripe())))
        .collect()
}
