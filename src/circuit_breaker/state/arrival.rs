use std::time::Duration;

use super::half_open::{HalfOpen, Probe};
use super::machine::{Machine, Phase, Rules};
use super::{Transition, TransitionReason};
use crate::circuit_breaker::error::CircuitOpenReason;
use crate::clock::Nanos;

/// Whether the inner service of the instance that a call arrives at was polled ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inner {
    Ready,
    /// It was left alone, because the circuit was open when the instance was polled.
    Unpolled,
}

/// What is to become of a call that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Goes through and is counted.
    Pass,
    /// Goes through and is not counted, by hand.
    PassUncounted,
    /// Goes through as the probe of this number.
    Probe(u64),
    Refuse {
        reason: CircuitOpenReason,
        retry_after: Option<Duration>,
    },
}

impl Arrival {
    fn refuse(reason: CircuitOpenReason, retry_after: Option<Duration>) -> Self {
        Self::Refuse {
            reason,
            retry_after,
        }
    }

    /// A probe, or any call, that an unpolled inner service cannot take: it stays due.
    fn not_ready() -> Self {
        Self::refuse(CircuitOpenReason::NotReady, Some(Duration::ZERO))
    }
}

impl Machine {
    /// Decides on a call that arrives at `now`; [`settle`](Self::settle) goes before. The second
    /// value is the transition made for it: open to half-open, when it is the first probe.
    pub(crate) fn arrive(
        &mut self,
        now: Nanos,
        inner: Inner,
        rules: Rules<'_>,
    ) -> (Arrival, Option<Transition>) {
        if self.commands.force_open() {
            let reason = CircuitOpenReason::Forced;
            return (Arrival::refuse(reason, None), None);
        }
        if let Phase::Closed { ramp, .. } = &mut self.phase {
            if inner == Inner::Unpolled {
                return (Arrival::not_ready(), None);
            }
            if self.commands.force_closed() {
                return (Arrival::PassUncounted, None);
            }
            ramp.take_if(|ramp| ramp.is_over(now));
            let admitted = ramp.as_mut().is_none_or(|ramp| ramp.admits(now));
            let refused = Arrival::refuse(CircuitOpenReason::RampingUp, None);
            return (if admitted { Arrival::Pass } else { refused }, None);
        }
        if rules.policy.recover_every.is_some() {
            self.arrivals = self.arrivals.saturating_add(1);
        }
        if let Some(refused) = self.not_due(now, self.arrivals, rules) {
            return (refused, None);
        }
        if inner == Inner::Unpolled {
            return (Arrival::not_ready(), None);
        }
        let transition = self.half_open(now, rules);
        let serial = self.send_probe(now, false, rules);
        (Arrival::Probe(serial), transition)
    }

    /// Whether a call that arrived at `now` would be refused without its inner service being
    /// needed. Changes nothing.
    pub(crate) fn would_refuse(&self, now: Nanos, rules: Rules<'_>) -> bool {
        if self.commands.force_open() {
            return true;
        }
        let arrivals = self.arrivals.saturating_add(1);
        self.not_due(now, arrivals, rules).is_some()
    }

    /// The refusal of a call that finds no probe due; `None` where it may be one, or the circuit
    /// is closed. `arrivals` has the call in.
    fn not_due(&self, now: Nanos, arrivals: u64, rules: Rules<'_>) -> Option<Arrival> {
        let counted = rules.policy.recover_every;
        let counted = counted.is_some_and(|every| arrivals >= every);
        let (until, by_time, in_flight, room) = match &self.phase {
            Phase::Closed { .. } => return None,
            Phase::Open(open) => (open.until, false, 0, true),
            Phase::HalfOpen(half) => {
                let spent = half.out.len() + half.successes as usize;
                let room = spent < rules.policy.probes as usize;
                (half.until, half.by_time, half.out.len(), room)
            }
        };
        let by_time = by_time || is_over(until, now);
        // One probe for each count of arrivals, and so one at a time, unless time is up too.
        if room && (by_time || (counted && in_flight == 0)) {
            return None;
        }
        let out = in_flight > 0 || by_time;
        Some(match out {
            true => Arrival::refuse(CircuitOpenReason::ProbesOut, None),
            false => Arrival::refuse(CircuitOpenReason::Open, time_left(until, now)),
        })
    }

    /// Open to half-open, as a probe is due. Half-open stays.
    fn half_open(&mut self, now: Nanos, rules: Rules<'_>) -> Option<Transition> {
        let until = match &mut self.phase {
            Phase::Closed { .. } => return None,
            Phase::HalfOpen(half) => {
                half.by_time |= is_over(half.until, now);
                return None;
            }
            Phase::Open(open) => open.until,
        };
        let by_time = is_over(until, now);
        let reason = match by_time {
            true => TransitionReason::OpenTimeOver,
            false => TransitionReason::ArrivalsReached,
        };
        let half = HalfOpen {
            until,
            by_time,
            successes: 0,
            out: Vec::with_capacity(rules.policy.probes.min(16) as usize),
        };
        Some(self.enter(Phase::HalfOpen(half), reason))
    }

    fn send_probe(&mut self, now: Nanos, reserved: bool, rules: Rules<'_>) -> u64 {
        let serial = self.serial;
        self.serial += 1;
        self.arrivals = 0;
        if let Phase::HalfOpen(half) = &mut self.phase {
            half.out.push(Probe {
                serial,
                deadline: now.plus(rules.policy.probe_timeout),
                reserved,
            });
        }
        serial
    }

    /// Takes a probe's slot for an instance that answers ready, if one is due by time. No call
    /// has arrived, so none is counted.
    pub(crate) fn reserve(
        &mut self,
        now: Nanos,
        rules: Rules<'_>,
    ) -> Option<(u64, Option<Transition>)> {
        if matches!(self.phase, Phase::Closed { .. }) || self.would_wait(now, rules) {
            return None;
        }
        let transition = self.half_open(now, rules);
        Some((self.send_probe(now, true, rules), transition))
    }

    /// Whether an instance that wants to answer ready must wait.
    pub(crate) fn would_wait(&self, now: Nanos, rules: Rules<'_>) -> bool {
        self.commands.force_open() || self.not_due(now, self.arrivals, rules).is_some()
    }

    /// Open to half-open where the time is up, with no call to be the probe.
    pub(crate) fn advance(&mut self, now: Nanos, rules: Rules<'_>) -> Option<Transition> {
        match &self.phase {
            Phase::Open(open) if is_over(open.until, now) => self.half_open(now, rules),
            _ => None,
        }
    }

    /// When the time alone next changes what is decided; `None` where it does not.
    pub(crate) fn next_change(&self) -> Option<Nanos> {
        match &self.phase {
            Phase::Closed { .. } => None,
            Phase::Open(open) => Some(open.until).filter(|&until| until < Nanos::MAX),
            Phase::HalfOpen(half) => half.deadline(),
        }
    }

    /// When the time alone next lets an instance go on that must wait at `now` to answer ready.
    pub(crate) fn next_ready(&self, now: Nanos) -> Option<Nanos> {
        let next = match &self.phase {
            // Half-open by the count of arrivals: the open time may be still to end.
            Phase::HalfOpen(half) if half.until > now => {
                Some(half.until.min(half.deadline().unwrap_or(Nanos::MAX)))
            }
            _ => self.next_change(),
        };
        next.filter(|&next| next > now && next < Nanos::MAX)
    }

    /// How many instances that want to answer ready may.
    pub(crate) fn room(&self, now: Nanos, rules: Rules<'_>) -> usize {
        if self.would_wait(now, rules) {
            return 0;
        }
        let probes = rules.policy.probes as usize;
        match &self.phase {
            Phase::Closed { .. } => usize::MAX,
            Phase::Open(_) => probes,
            Phase::HalfOpen(half) => {
                probes.saturating_sub(half.out.len() + half.successes as usize)
            }
        }
    }

    /// The time left until a probe is due; `None` where no time is known.
    pub(crate) fn retry_after(&self, now: Nanos) -> Option<Duration> {
        match &self.phase {
            Phase::Open(open) => time_left(open.until, now),
            _ => None,
        }
    }
}

/// Whether `until` has come. The end of time never does, even to a clock that reads it.
pub(super) fn is_over(until: Nanos, now: Nanos) -> bool {
    until < Nanos::MAX && now >= until
}

fn time_left(until: Nanos, now: Nanos) -> Option<Duration> {
    (until < Nanos::MAX).then(|| until.since(now))
}
