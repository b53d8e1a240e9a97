use crossbeam_utils::CachePadded;

use super::call_end::CallEnd;
use super::snapshot::Totals;
use super::window::stripes;
use crate::sync::{AtomicU64, Ordering};

/// Sums since a breaker was made, kept in stripes like the time window, so that counting does not
/// make the cores wait for one another.
#[derive(Debug)]
pub(super) struct Counters(Box<[CachePadded<Stripe>]>);

#[derive(Debug, Default)]
struct Stripe {
    admitted: AtomicU64,
    refused: AtomicU64,
    would_have_refused: AtomicU64,
    successes: AtomicU64,
    failures: AtomicU64,
    ignored: AtomicU64,
    cancelled: AtomicU64,
    panicked: AtomicU64,
    slow: AtomicU64,
    stale: AtomicU64,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self(
            (0..stripes::count())
                .map(|_| CachePadded::default())
                .collect(),
        )
    }

    fn stripe(&self) -> &Stripe {
        &self.0[stripes::of_thread() & (self.0.len() - 1)]
    }

    pub(super) fn admit(&self) {
        self.stripe().admitted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refuse(&self) {
        self.stripe().refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn would_refuse(&self) {
        self.stripe()
            .would_have_refused
            .fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self, end: CallEnd, slow: bool, stale: bool) {
        let stripe = self.stripe();
        let count = match end {
            CallEnd::Success => &stripe.successes,
            CallEnd::Failure => &stripe.failures,
            CallEnd::Ignored => &stripe.ignored,
            CallEnd::Cancelled => &stripe.cancelled,
            CallEnd::Panicked => &stripe.panicked,
        };
        count.fetch_add(1, Ordering::Release);
        if slow {
            stripe.slow.fetch_add(1, Ordering::Relaxed);
        }
        if stale {
            stripe.stale.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn totals(&self) -> Totals {
        let sum = |field: fn(&Stripe) -> &AtomicU64| {
            self.0
                .iter()
                .map(|stripe| field(stripe).load(Ordering::Acquire))
                .sum::<u64>()
        };
        // Ends before admissions: a call that ends in between is then seen in flight, never as
        // one less than none.
        let mut totals = Totals {
            successes: sum(|s| &s.successes),
            failures: sum(|s| &s.failures),
            ignored: sum(|s| &s.ignored),
            cancelled: sum(|s| &s.cancelled),
            panicked: sum(|s| &s.panicked),
            slow: sum(|s| &s.slow),
            stale: sum(|s| &s.stale),
            refused: sum(|s| &s.refused),
            would_have_refused: sum(|s| &s.would_have_refused),
            admitted: sum(|s| &s.admitted),
            in_flight: 0,
        };
        let ended = totals.successes + totals.failures + totals.ignored;
        let ended = ended + totals.cancelled + totals.panicked;
        totals.in_flight = totals.admitted.saturating_sub(ended);
        totals
    }
}
