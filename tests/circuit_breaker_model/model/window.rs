use tower_sluice::circuit_breaker::TransitionReason;

use super::{Closed, Counts, HalfOpen, Model, Open};

impl Model {
    fn bucket(&self, now: u64) -> u64 {
        self.rules.window.map_or(0, |w| now / w.div_ceil(10))
    }

    /// What the snapshot shows.
    pub(crate) fn counts(&self) -> Counts {
        match self.state {
            Open => self.tripped,
            HalfOpen => (0, 0, 0),
            Closed => self.in_window(),
        }
    }

    pub(super) fn in_window(&self) -> Counts {
        let newest = self.bucket(self.now.max(self.newest));
        let mut kept = self.outcomes.clone();
        if self.rules.window.is_some() {
            kept.retain(|(bucket, ..)| bucket + 10 > newest);
        } else {
            let calls = self.rules.window_calls.unwrap_or(0) as usize;
            kept.drain(..kept.len().saturating_sub(calls));
        }
        let failed = kept.iter().filter(|(_, failed, _)| *failed).count();
        let slow = kept.iter().filter(|(.., slow)| *slow).count();
        (kept.len() as u64, failed as u64, slow as u64)
    }

    /// Counts an outcome; if it fails, judges.
    pub(super) fn count(&mut self, failed: bool, slow: bool, floor: u64) {
        if self.bucket(self.now) > self.bucket(self.newest) {
            self.newest = self.now;
        }
        let bucket = self.bucket(self.newest);
        self.outcomes.push((bucket, failed, slow));
        let failing = failed || slow;
        let rows = failing && self.rules.consecutive.is_some();
        self.run = if rows { self.run + 1 } else { 0 };
        if let Some(reason) = self.met().filter(|_| failing) {
            self.trip(reason, floor);
        }
    }

    fn met(&self) -> Option<TransitionReason> {
        let (calls, failures, slows) = self.in_window();
        let met = |rate: Option<u64>, part: u64| {
            calls >= self.rules.min_calls && rate.is_some_and(|rate| part * 100 >= rate * calls)
        };
        if self.rules.consecutive.is_some_and(|n| self.run >= n) {
            Some(TransitionReason::Consecutive)
        } else if met(self.rules.failure_rate, failures) {
            Some(TransitionReason::FailureRate)
        } else if met(self.rules.slow_rate, slows) {
            Some(TransitionReason::SlowRate)
        } else {
            None
        }
    }
}
