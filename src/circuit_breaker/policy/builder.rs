use std::time::Duration;

use super::open_time::OpenTimeFn;
use super::value::Cancel;
use crate::circuit_breaker::TransitionReason;

/// Builds a [`CircuitPolicy`](super::CircuitPolicy). Setters may come in any order and never cancel one another: what
/// does not go together is an error of [`build`](Self::build), as is anything out of range.
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it is built"]
pub struct CircuitPolicyBuilder {
    pub(super) consecutive: Option<u32>,
    pub(super) failure_rate: Option<f64>,
    pub(super) slow_rate: Option<f64>,
    pub(super) slow_threshold: Option<Duration>,
    pub(super) window: Option<Duration>,
    pub(super) window_calls: Option<u32>,
    pub(super) min_calls: Option<u32>,
    pub(super) open_for: Option<Duration>,
    pub(super) open_growth: Option<f64>,
    pub(super) open_cap: Option<Duration>,
    pub(super) open_jitter: Option<f64>,
    pub(super) open_time: Option<OpenTimeFn>,
    pub(super) recover_every: Option<u64>,
    pub(super) probes: Option<u32>,
    pub(super) probe_timeout: Option<Duration>,
    pub(super) cancel: Option<Cancel>,
    pub(super) ramp_up: Option<Duration>,
    pub(super) count_overdue: bool,
    pub(super) retry_after_cap: Option<Duration>,
    pub(super) jitter_seed: Option<u64>,
}

impl CircuitPolicyBuilder {
    /// Trips at `calls` (1 or more) failing outcomes in a row: failures, and slow calls where a
    /// [slow threshold](Self::slow_threshold) is set. Ignored outcomes neither count nor break
    /// the row.
    pub fn consecutive(mut self, calls: u32) -> Self {
        self.consecutive = Some(calls);
        self
    }

    /// Trips when failures are at or above `share`, in (0, 1], of the calls in the window, once
    /// [`min_calls`](Self::min_calls) are in it. Default, where no condition is named: 0.5.
    pub fn failure_rate(mut self, share: f64) -> Self {
        self.failure_rate = Some(share);
        self
    }

    /// Trips when slow calls are at or above `share`, in (0, 1], of the calls in the window,
    /// likewise. Needs a [slow threshold](Self::slow_threshold).
    pub fn slow_rate(mut self, share: f64) -> Self {
        self.slow_rate = Some(share);
        self
    }

    /// Calls that take `threshold` (above zero) or longer are slow, whatever their outcome; with
    /// [`Duration::MAX`] none is, whatever the clock reads. Default: none are. Needs a condition that asks: [`consecutive`](Self::consecutive) or
    /// [`slow_rate`](Self::slow_rate).
    pub fn slow_threshold(mut self, threshold: Duration) -> Self {
        self.slow_threshold = Some(threshold);
        self
    }

    /// Takes the rates over the last `window` (1 ms or more), in ten buckets: between nine and
    /// ten tenths of it, as the newest bucket fills. Default: 10 s.
    pub fn window(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }

    /// Takes the rates over the last `calls` (1 to 1,048,576) outcomes instead of over a time.
    pub fn window_calls(mut self, calls: u32) -> Self {
        self.window_calls = Some(calls);
        self
    }

    /// Judges no rate before `calls` (1 or more; at most [`window_calls`](Self::window_calls))
    /// are in the window. Default: 20, or all of a smaller window of calls.
    pub fn min_calls(mut self, calls: u32) -> Self {
        self.min_calls = Some(calls);
        self
    }

    /// Stays open for `time` (above zero) after the first trip. [`Duration::MAX`], or any time from
    /// 584 years, which is where the clock ends, is for ever.
    /// Default, where no way of recovering is named: 5 s.
    pub fn open_for(mut self, time: Duration) -> Self {
        self.open_for = Some(time);
        self
    }

    /// Makes each open time that follows a failed recovery `factor` (1 to 100) times the last.
    /// Default: 2. The growth starts anew after a recovery that held: one after which the circuit
    /// stayed closed at least as long as it had last been opened for.
    pub fn open_growth(mut self, factor: f64) -> Self {
        self.open_growth = Some(factor);
        self
    }

    /// Grows no open time beyond `cap` (the first open time or more). Default: 60 s, or the first
    /// open time where that is longer. From 584 years on it is no cap: the open time may grow until
    /// it is for ever.
    pub fn open_cap(mut self, cap: Duration) -> Self {
        self.open_cap = Some(cap);
        self
    }

    /// Moves each open time, after growth and cap, by up to `share` (0 to below 1) either way, so
    /// that many breakers do not probe in step. Default: 0.2.
    pub fn open_jitter(mut self, share: f64) -> Self {
        self.open_jitter = Some(share);
        self
    }

    /// Draws the jitter from `seed`: the same seed and history give the same open times. Default:
    /// a seed of each breaker's own.
    pub fn jitter_seed(mut self, seed: u64) -> Self {
        self.jitter_seed = Some(seed);
        self
    }

    /// Asks `f` for each open time, in place of [`open_for`](Self::open_for) and its growth. It is
    /// given how many times the circuit opened since the last recovery that held (1 at first), and
    /// why it opens now. It runs outside of all locks; until it answers the circuit refuses with no
    /// known wait.
    ///
    /// A panic of `f` reaches the caller whose outcome opened the circuit, or who came first after
    /// the time had: a probe ran too long, a call is overdue. The circuit then stays open for 5 s;
    /// a call that ends then, and a command, have had their effect, and one that arrives is not
    /// admitted. Zero is taken as one nanosecond.
    pub fn open_time<F>(mut self, f: F) -> Self
    where
        F: Fn(u32, TransitionReason) -> Duration + Send + Sync + 'static,
    {
        self.open_time = Some(OpenTimeFn::new(f));
        self
    }

    /// While open, makes every `arrivals`-th (1 or more) call that arrives a probe; needs no time
    /// to pass and suits clients that come in bursts. Alone it is the only way of recovering;
    /// beside [`open_for`](Self::open_for) whichever comes first admits a probe.
    pub fn recover_every(mut self, arrivals: u64) -> Self {
        self.recover_every = Some(arrivals);
        self
    }

    /// Closes after `probes` (1 to 10,000) probes end well, and lets no more than that out at
    /// once. Default: 3.
    pub fn probes(mut self, probes: u32) -> Self {
        self.probes = Some(probes);
        self
    }

    /// Takes a probe that runs for `time` (above zero) as failing; its own result is then
    /// discarded. Default: 30 s. [`Duration::MAX`] waits for ever.
    pub fn probe_timeout(mut self, time: Duration) -> Self {
        self.probe_timeout = Some(time);
        self
    }

    /// Counts a dropped call by `rule`. Default: [`Cancel::SlowIfOverdue`].
    pub fn cancel(mut self, rule: Cancel) -> Self {
        self.cancel = Some(rule);
        self
    }

    /// After closing, lets the admitted share of calls grow from a tenth to all over `time` (above
    /// zero), refusals spread evenly. Default: all calls at once.
    pub fn ramp_up(mut self, time: Duration) -> Self {
        self.ramp_up = Some(time);
        self
    }

    /// Counts a call as slow as soon as it runs past the slow threshold, not only when it ends: a
    /// total hang trips before the first response. Such a call is counted once, then; its own end
    /// reaches only the events. Looked at by each arrival and by
    /// [`drive`](crate::circuit_breaker::CircuitBreaker::drive). Default: off; on, each call takes
    /// a short lock at its start and its end.
    pub fn count_overdue(mut self) -> Self {
        self.count_overdue = true;
        self
    }

    /// Heeds no upstream `Retry-After` beyond `cap` (above zero), where a classifier reports one
    /// as a floor for the open time. Default: 5 min.
    pub fn retry_after_cap(mut self, cap: Duration) -> Self {
        self.retry_after_cap = Some(cap);
        self
    }
}
