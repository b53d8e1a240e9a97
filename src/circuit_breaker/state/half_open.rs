use std::time::Duration;

use super::arrival::is_over;
use super::machine::{Machine, Phase, Rules};
use super::{Transition, TransitionReason};
use crate::clock::Nanos;

/// The half-open state. Its slots are counted here and nowhere else: in flight are the probes
/// in `out`, spent are the successes.
#[derive(Clone, Debug)]
pub(crate) struct HalfOpen {
    /// When probes are due by time, as it was while open.
    pub(super) until: Nanos,
    /// Whether probes are due by time; once so, for good, whatever the clock does.
    pub(super) by_time: bool,
    pub(super) successes: u32,
    pub(super) out: Vec<Probe>,
}

/// A probe in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) serial: u64,
    pub(super) deadline: Nanos,
    /// Held by an instance that answered ready and was not called yet.
    pub(super) reserved: bool,
}

/// What a call says of the callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    Failing,
    Nothing,
}

/// What became of a probe's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeEnd {
    Counted(Option<Transition>),
    /// The half-open state it belonged to is over, or its slot was taken back.
    Late,
}

impl HalfOpen {
    pub(crate) fn successes(&self) -> u32 {
        self.successes
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.out.len()
    }

    /// When the first probe in flight is out of time.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let deadlines = self.out.iter().map(|probe| probe.deadline);
        deadlines.min().filter(|&deadline| deadline < Nanos::MAX)
    }

    fn take(&mut self, serial: u64) -> Option<Probe> {
        let place = self.out.iter().position(|probe| probe.serial == serial)?;
        Some(self.out.swap_remove(place))
    }
}

impl Machine {
    /// Makes happen what the time alone has decided by `now`: half-open to open, as of the
    /// deadline of a probe that ran too long. A reservation that was held as long is only taken
    /// back: nothing was asked of the callee.
    pub(crate) fn settle(&mut self, now: Nanos, rules: Rules<'_>) -> Option<Transition> {
        let Phase::HalfOpen(half) = &mut self.phase else {
            return None;
        };
        half.out
            .retain(|probe| !(probe.reserved && is_over(probe.deadline, now)));
        let late = half.deadline().filter(|&deadline| deadline <= now)?;
        Some(self.open(late, TransitionReason::ProbeTimedOut, Duration::ZERO, rules))
    }

    /// Half-open to closed on the last success that was needed; to open on one that fails;
    /// otherwise the slot is free or spent.
    pub(crate) fn end_probe(
        &mut self,
        epoch: u64,
        serial: u64,
        verdict: Verdict,
        now: Nanos,
        floor: Duration,
        rules: Rules<'_>,
    ) -> ProbeEnd {
        let Phase::HalfOpen(half) = &mut self.phase else {
            return ProbeEnd::Late;
        };
        if epoch != self.epoch || half.take(serial).is_none() {
            return ProbeEnd::Late;
        }
        ProbeEnd::Counted(match verdict {
            Verdict::Nothing => None,
            Verdict::Failing => Some(self.open(now, TransitionReason::ProbeFailed, floor, rules)),
            Verdict::Good => {
                half.successes += 1;
                let enough = half.successes >= rules.policy.probes;
                let ramp_up = rules.policy.ramp_up;
                enough.then(|| self.close(now, ramp_up, TransitionReason::Recovered))
            }
        })
    }

    /// Makes a reserved probe one that runs, from `now`. Says whether the slot was still held.
    pub(crate) fn begin_reserved(
        &mut self,
        epoch: u64,
        serial: u64,
        now: Nanos,
        rules: Rules<'_>,
    ) -> bool {
        let Phase::HalfOpen(half) = &mut self.phase else {
            return false;
        };
        let held = half.out.iter_mut().find(|probe| probe.serial == serial);
        match held.filter(|_| epoch == self.epoch) {
            Some(probe) => {
                probe.reserved = false;
                probe.deadline = now.plus(rules.policy.probe_timeout);
                true
            }
            None => false,
        }
    }
}
