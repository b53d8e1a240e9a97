use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::call_end::CallEnd;
use super::error::CircuitOpenReason;
use super::snapshot::Snapshot;
use super::state::{Asked, Transition};
use crate::Name;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Something that happened in a breaker, told after the fact and outside of all its locks.
///
/// The transitions of one breaker form a chain: each begins in the state that the one before
/// ended in. Each admitted call makes exactly one of [`Completed`](CircuitEventKind::Completed)
/// and [`Discarded`](CircuitEventKind::Discarded).
///
/// Events wait while a listener is at an earlier one. No more than 4,096 of calls do: those that
/// come then are dropped, and [counted](Snapshot::events_dropped). Transitions always wait, so
/// their chain has no gap.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CircuitEvent {
    /// The breaker's name.
    pub name: Name,
    /// What happened.
    pub kind: CircuitEventKind,
}

/// What happened in a breaker.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CircuitEventKind {
    /// The state changed.
    Transition {
        /// From what to what, and why.
        transition: Transition,
        /// The breaker as it was right after.
        snapshot: Box<Snapshot>,
    },
    /// A call was refused.
    Refused {
        /// What the caller was told.
        reason: CircuitOpenReason,
        /// The time left, where one is known.
        retry_after: Option<Duration>,
    },
    /// A call was admitted only because the breaker is disabled.
    WouldHaveRefused {
        /// What the caller would have been told.
        reason: CircuitOpenReason,
    },
    /// An admitted call ended.
    Completed {
        /// How.
        end: CallEnd,
        /// Whether it took as long as the slow threshold, or longer.
        slow: bool,
        /// How long it took, from its admission.
        elapsed: Duration,
        /// How long until the head of its answer was in, where it ended later than that.
        to_head: Option<Duration>,
        /// How long it had waited to be admitted; not in `elapsed`.
        waited: Duration,
    },
    /// An admitted call ended too late to count: the state it was admitted in was left, or its
    /// probe's slot taken back.
    Discarded {
        /// How it ended.
        end: CallEnd,
        /// Whether it was slow.
        slow: bool,
        /// How long it took.
        elapsed: Duration,
        /// How long until the head of its answer was in.
        to_head: Option<Duration>,
        /// How long it had waited.
        waited: Duration,
    },
}

/// Hears of what happens in a breaker.
pub(super) type Listener = Arc<dyn Fn(&CircuitEvent) + Send + Sync>;

/// The listeners of a breaker, and the events that they have not heard yet.
///
/// Events are queued while the state is locked, in the order of what they tell, and delivered
/// after, by one thread at a time: who finds another delivering leaves its own to it. So a
/// listener may call back into the breaker, and hears of that when it has returned.
pub(super) struct Events {
    listeners: Box<[Listener]>,
    queue: Mutex<Queue>,
    panics: AtomicU64,
    dropped: AtomicU64,
}

/// Half a megabyte: long for a listener that is merely slow, and no more than one that hangs may
/// cost each breaker.
const MOST_WAITING: usize = 4_096;
/// Room that an empty queue keeps.
const KEPT: usize = 64;

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Entry>,
    /// How many of them are no transitions.
    of_calls: usize,
    delivering: bool,
}

#[derive(Debug)]
enum Entry {
    Ready(CircuitEvent),
    /// A transition to open whose time the user's function is being asked for; later events wait
    /// behind it.
    Held(Asked, CircuitEvent),
}

impl Events {
    pub(super) fn new(listeners: Vec<Listener>) -> Self {
        Self {
            listeners: listeners.into(),
            queue: Mutex::new(Queue::default()),
            panics: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Whether anyone listens; if not, no event need be made.
    #[inline]
    pub(super) fn are_heard(&self) -> bool {
        !self.listeners.is_empty()
    }

    pub(super) fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    pub(super) fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// How many events were dropped, as too many waited.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn push(&self, event: CircuitEvent) {
        if self.are_heard() && !self.queue.lock().push(event) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Keeps the place of an event that cannot be told before `asked` is answered.
    pub(super) fn hold(&self, asked: Asked, event: CircuitEvent) {
        if self.are_heard() {
            let held = Entry::Held(asked, event);
            self.queue.lock().waiting.push_back(held);
        }
    }

    /// Lets the event go that waits for the answer to `asked`.
    pub(super) fn fill(&self, asked: Asked, retry_after: Option<Duration>) {
        let mut queue = self.queue.lock();
        let held = queue.waiting.iter_mut().find_map(|entry| match entry {
            Entry::Held(held, _) if *held == asked => Some(entry),
            _ => None,
        });
        let Some(place) = held else { return };
        if let Entry::Held(_, event) = place {
            let mut event = event.clone();
            if let CircuitEventKind::Transition { snapshot, .. } = &mut event.kind {
                snapshot.retry_after = retry_after;
            }
            *place = Entry::Ready(event);
        }
    }

    /// Delivers what is queued, unless another thread, or an outer call on this one, is at it.
    pub(super) fn deliver(&self) {
        if !self.are_heard() {
            return;
        }
        let mut first = true;
        while let Some(event) = self.take(first) {
            first = false;
            for listener in &self.listeners {
                let heard = catch_unwind(AssertUnwindSafe(|| listener(&event)));
                if let Err(payload) = heard {
                    self.count_panic();
                    // Deliberately not dropped: what it holds may panic as it goes, and the
                    // queue would be left as being delivered for ever.
                    std::mem::forget(payload);
                }
            }
        }
    }

    /// The next event to deliver. The end of the queue and the end of delivering are one step, or
    /// an event queued between the two would lie there unheard.
    fn take(&self, first: bool) -> Option<CircuitEvent> {
        let mut queue = self.queue.lock();
        if first && queue.delivering {
            return None;
        }
        let ready = matches!(queue.waiting.front(), Some(Entry::Ready(_)));
        queue.delivering = ready;
        match queue.waiting.pop_front() {
            Some(Entry::Ready(event)) => {
                queue.of_calls -= usize::from(event.kind.is_of_call());
                Some(event)
            }
            Some(held) => {
                queue.waiting.push_front(held);
                None
            }
            None => {
                queue.waiting.shrink_to(KEPT);
                None
            }
        }
    }
}

impl Queue {
    /// Says whether there was room.
    fn push(&mut self, event: CircuitEvent) -> bool {
        let of_call = event.kind.is_of_call();
        if of_call && self.of_calls == MOST_WAITING {
            return false;
        }
        self.of_calls += usize::from(of_call);
        self.waiting.push_back(Entry::Ready(event));
        true
    }
}

impl CircuitEventKind {
    fn is_of_call(&self) -> bool {
        !matches!(self, Self::Transition { .. })
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Events({} listeners)", self.listeners.len())
    }
}

impl fmt::Display for CircuitEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "circuit {}: ", self.name)?;
        match &self.kind {
            CircuitEventKind::Transition { transition, .. } => transition.fmt(f),
            CircuitEventKind::Refused { reason, .. } => write!(f, "refused ({reason:?})"),
            CircuitEventKind::WouldHaveRefused { reason } => {
                write!(f, "would have refused ({reason:?})")
            }
            CircuitEventKind::Completed { end, elapsed, .. } => {
                write!(f, "{end} after {elapsed:?}")
            }
            CircuitEventKind::Discarded { end, elapsed, .. } => {
                write!(f, "{end} after {elapsed:?}, too late to count")
            }
        }
    }
}
