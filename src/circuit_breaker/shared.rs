use std::sync::Arc;
use std::time::Duration;

use super::alarm::Alarm;
use super::counters::Counters;
use super::event::{Events, Listener};
use super::gate::Gate;
use super::overdue::Overdue;
use super::plan::Plan;
use super::policy::{CircuitPolicy, Counts};
use super::ready_queue::ReadyQueue;
use super::registry::{OpenPart, OpenShare};
use super::snapshot::Snapshot;
use super::standing::{Standing, Way};
use super::state::{Machine, Phase, Rules};
use super::turn::Turn;
use super::waiters::Waiters;
use super::window::Windows;
use crate::Name;
use crate::clock::{Clock, Nanos};
use crate::sync::{AtomicU32, Mutex, Ordering};

/// What all handles of one breaker share.
///
/// Calls that pass a closed circuit look at `gate`, which only changes write, and count in
/// `windows`; everything else happens under the lock of `core`, in a
/// [`Turn`]. Locks are taken in the order core, then a window's, then the
/// queue's of events.
// Aligned, so that the count of handles before it, which each call through the layer writes twice,
// is on no line that calls only read.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Shared {
    pub(super) name: Name,
    pub(super) clock: Clock,
    pub(super) gate: Gate,
    /// Failing outcomes in a row. Written under the lock only, and before the gate, which tells
    /// those that succeed whether there is a row to end.
    pub(super) run: AtomicU32,
    pub(super) windows: Windows,
    pub(super) counters: Option<Counters>,
    pub(super) events: Events,
    pub(super) waiters: Waiters,
    /// Instances in back-pressure mode that wait, and what wakes them when time is up.
    pub(super) queue: ReadyQueue,
    pub(super) alarm: Alarm,
    core: Mutex<Core>,
}

/// What is not on the healthy path.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) machine: Machine,
    pub(super) policy: CircuitPolicy,
    pub(super) seed: u64,
    pub(super) overdue: Overdue,
    /// The window as it was when it tripped the circuit.
    pub(super) tripped: Counts,
    /// Its part in what may be open at once among the breakers of its registry.
    pub(super) part: OpenPart,
}

impl Core {
    pub(super) fn rules(&self) -> Rules<'_> {
        Rules {
            policy: &self.policy,
            seed: self.policy.jitter_seed.unwrap_or(self.seed),
        }
    }

    /// The run time from which on a call in flight counts as slow, if any does.
    pub(super) fn overdue_at(&self) -> Option<Duration> {
        let threshold = self.policy.slow_threshold;
        threshold.filter(|_| self.policy.count_overdue)
    }

    /// Takes out the oldest call that is to be counted as slow while it runs, if one is.
    pub(super) fn take_overdue(&mut self, now: Nanos) -> bool {
        let threshold = self.overdue_at();
        threshold.is_some_and(|threshold| self.overdue.take(now, threshold))
    }

    /// The state machine, and what it goes by.
    pub(super) fn split(&mut self) -> (&mut Machine, Rules<'_>) {
        let rules = Rules {
            policy: &self.policy,
            seed: self.policy.jitter_seed.unwrap_or(self.seed),
        };
        (&mut self.machine, rules)
    }
}

impl Shared {
    pub(super) fn new(
        name: Name,
        policy: CircuitPolicy,
        clock: Clock,
        counted: bool,
        listeners: Vec<Listener>,
        share: Option<Arc<OpenShare>>,
    ) -> Self {
        let shared = Self {
            name,
            clock,
            gate: Gate::new(),
            run: AtomicU32::new(0),
            windows: Windows::new(),
            counters: counted.then(Counters::new),
            events: Events::new(listeners),
            waiters: Waiters::new(),
            queue: ReadyQueue::default(),
            alarm: Alarm::default(),
            core: Mutex::new(Core {
                machine: Machine::new(),
                policy,
                seed: fastrand::u64(..),
                overdue: Overdue::default(),
                tripped: Counts::default(),
                part: OpenPart::of(share),
            }),
        };
        shared.fit(&shared.core.lock());
        shared
    }

    /// Takes the lock, for what happens at `now`.
    pub(super) fn turn(&self, now: Nanos) -> Turn<'_> {
        Turn::new(self, self.core.lock(), now)
    }

    /// Makes the healthy path go by the policy in `core`.
    pub(super) fn fit(&self, core: &Core) {
        let counting = core.machine.counting();
        let timed = self.plan(core).timed();
        self.windows.fit(&core.policy, timed, counting);
        self.gate.set_slow(core.policy.slow_threshold);
        self.set_gate(core);
    }

    /// Tells calls what the state machine and the policy say of them all.
    pub(super) fn set_gate(&self, core: &Core) {
        let row = self.run.load(Ordering::Relaxed) != 0;
        let way = self.way(core);
        if let (Way::RefuseInTime, Phase::Open(open)) = (way, core.machine.phase()) {
            self.gate.set_until(open.until());
        }
        let (epoch, plan) = (core.machine.epoch(), self.plan(core));
        self.gate.set(Standing::new(epoch, way, plan, row));
    }

    /// `run` failing outcomes in a row have been counted.
    pub(super) fn set_run(&self, core: &Core, run: u32) {
        let before = self.run.load(Ordering::Relaxed);
        self.run.store(run, Ordering::Relaxed);
        if (before == 0) != (run == 0) {
            self.set_gate(core);
        }
    }

    fn plan(&self, core: &Core) -> Plan {
        Plan::new(
            &core.policy,
            self.counters.is_some(),
            self.events.are_heard(),
        )
    }

    fn way(&self, core: &Core) -> Way {
        let commands = core.machine.commands();
        // Every refusal is told to someone, or counted.
        let noted = self.events.are_heard() || self.counters.is_some();
        match core.machine.phase() {
            _ if commands.force_open() && !noted => Way::RefuseForced,
            _ if commands.force_open() => Way::Ask,
            _ if commands.force_closed() => Way::PassUncounted,
            Phase::Closed { ramp: None, .. } if !core.policy.count_overdue => Way::Pass,
            Phase::Open(open)
                if !noted
                    && !commands.shadow()
                    && core.policy.recover_every.is_none()
                    && core.machine.asked().is_none() =>
            {
                match open.until() {
                    Nanos::MAX => Way::RefuseForEver,
                    _ => Way::RefuseInTime,
                }
            }
            _ => Way::Ask,
        }
    }

    /// What `read` finds in the state machine as it is at `now`, though nothing has made what the
    /// time decided happen yet.
    pub(super) fn view<T>(&self, now: Nanos, read: impl FnOnce(&Core, &Machine) -> T) -> T {
        let core = self.core.lock();
        match core.machine.next_change() {
            Some(change) if change <= now => {
                let mut settled = core.machine.clone();
                settled.settle(now, core.rules());
                read(&core, &settled)
            }
            _ => read(&core, &core.machine),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let now = self.clock.now();
        self.view(now, |core, machine| self.snapshot_of(core, machine, now))
    }

    pub(super) fn snapshot_of(&self, core: &Core, machine: &Machine, now: Nanos) -> Snapshot {
        let (counts, out, good) = match machine.phase() {
            Phase::Closed { .. } => (self.windows.counts(now), 0, 0),
            Phase::Open(_) => (core.tripped, 0, 0),
            Phase::HalfOpen(half) => (Counts::default(), half.in_flight(), half.successes()),
        };
        let known = core.policy.has_rates() && counts.calls >= u64::from(core.policy.min_calls);
        let rate = |part: u64| known.then(|| part as f64 / counts.calls as f64);
        Snapshot {
            name: self.name.clone(),
            state: machine.state(),
            reason: machine.reason(),
            command: machine.commands().strongest(),
            calls: counts.calls,
            failures: counts.failures,
            slow: counts.slow,
            consecutive: self.run.load(Ordering::Relaxed),
            failure_rate: rate(counts.failures),
            slow_rate: core.policy.slow_threshold.and_then(|_| rate(counts.slow)),
            retry_after: machine.retry_after(now),
            epoch: machine.epoch(),
            trips: machine.trips(),
            probes_in_flight: out as u32,
            probes_succeeded: good,
            last_elapsed: self.windows.last_elapsed(),
            totals: self.counters.as_ref().map(Counters::totals),
            listener_panics: self.events.panics(),
            events_dropped: self.events.dropped(),
        }
    }

    /// Whether the breaker equals one just made, but for successes that it has counted.
    pub(super) fn is_fresh(&self) -> bool {
        let now = self.clock.now();
        self.view(now, |core, machine| {
            let counts = self.windows.counts(now);
            machine.is_fresh(now)
                && self.run.load(Ordering::Relaxed) == 0
                && counts.failures == 0
                && counts.slow == 0
                && core.overdue.is_empty()
        })
    }
}

impl Drop for Shared {
    /// The last handle went: a driver that waits for the next change has nothing left to wait
    /// for.
    fn drop(&mut self) {
        self.waiters.wake();
    }
}

/// An open time for want of a better: the user's function panicked.
pub(super) const FALLBACK_OPEN: Duration = Duration::from_secs(5);
