use super::machine::{Machine, Phase, Rules};
use super::opening::Asked;
use super::{Transition, TransitionReason};
use crate::circuit_breaker::policy::OpenTime;
use crate::clock::Nanos;

impl Machine {
    /// Goes by other rules from here on, in the state as it is. Only what the new rules would
    /// leave without a way out is given one: half-open to closed, if as many probes have succeeded
    /// as are now needed; an open state without an end is given the end that a new one would have
    /// had.
    pub(crate) fn go_by(&mut self, now: Nanos, rules: Rules<'_>) -> Option<Transition> {
        let policy = rules.policy;
        match &mut self.phase {
            Phase::Closed { .. } => None,
            Phase::HalfOpen(half) => {
                half.by_time |= policy.recover_every.is_none();
                let enough = half.successes >= policy.probes;
                enough.then(|| self.close(now, policy.ramp_up, TransitionReason::Recovered))
            }
            Phase::Open(open) => {
                let endless = open.until == Nanos::MAX && open.asked.is_none();
                if endless && !self.commands.force_open() {
                    self.end_open_time(rules);
                }
                None
            }
        }
    }

    fn end_open_time(&mut self, rules: Rules<'_>) {
        let (epoch, trips) = (self.epoch, self.attempts);
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        match &rules.policy.open_time {
            None => {}
            Some(OpenTime::Growing(growing)) => {
                let base = growing.next(None);
                let time = growing.jittered(base, super::opening::draw(rules.seed, epoch));
                open.until = open.since.plus(time);
                self.grown = Some(base);
                self.last_open = time;
            }
            Some(OpenTime::Function(_)) => {
                let reason = self.reason.unwrap_or(TransitionReason::Reset);
                open.asked = Some(Asked::new(epoch, trips, reason));
            }
        }
    }
}
