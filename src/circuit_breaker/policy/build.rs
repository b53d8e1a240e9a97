use std::time::Duration;

use super::builder::CircuitPolicyBuilder;
use super::open_time::{Growing, OpenTime};
use super::rate::Rate;
use super::value::{CircuitPolicy, WindowKind};
use crate::ConfigError;

const DEFAULT_RATE: f64 = 0.5;
const DEFAULT_WINDOW: Duration = Duration::from_secs(10);
const DEFAULT_MIN_CALLS: u32 = 20;
const DEFAULT_OPEN: Duration = Duration::from_secs(5);
const DEFAULT_CAP: Duration = Duration::from_secs(60);
const DEFAULT_FACTOR: f64 = 2.0;
const DEFAULT_JITTER: f64 = 0.2;
const DEFAULT_PROBES: u32 = 3;
const DEFAULT_PROBE_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_RETRY_AFTER_CAP: Duration = Duration::from_secs(300);
/// 256 KiB of outcomes; a longer memory than that is a matter of time, not of calls.
const MAX_WINDOW_CALLS: u32 = 1 << 20;
/// Each probe in flight has an entry that is looked for one by one.
const MAX_PROBES: u32 = 10_000;
/// Ten buckets of 100 µs; shorter ones would see a clock's grain rather than calls.
const MIN_WINDOW: Duration = Duration::from_millis(1);

impl CircuitPolicyBuilder {
    /// Checks the whole and makes the policy.
    ///
    /// # Errors
    ///
    /// Names the first field that is out of its range, or that nothing would use.
    pub fn build(self) -> Result<CircuitPolicy, ConfigError> {
        let conditions = self.conditions()?;
        let window = self.checked_window(conditions.has_rates())?;
        let min_calls = self.checked_min_calls(window, conditions.has_rates())?;
        self.check_slow(&conditions)?;
        above_zero("probe_timeout", self.probe_timeout)?;
        above_zero("ramp_up", self.ramp_up)?;
        above_zero("retry_after_cap", self.retry_after_cap)?;
        within("probes", self.probes, 1, MAX_PROBES, "1 to 10,000")?;
        within(
            "recover_every",
            self.recover_every,
            1,
            u64::MAX,
            "1 or more",
        )?;
        Ok(CircuitPolicy {
            open_time: self.checked_open_time()?,
            consecutive: self.consecutive,
            failure_rate: conditions.failure_rate,
            slow_rate: conditions.slow_rate,
            slow_threshold: self.slow_threshold,
            window,
            min_calls,
            recover_every: self.recover_every,
            probes: self.probes.unwrap_or(DEFAULT_PROBES),
            probe_timeout: self.probe_timeout.unwrap_or(DEFAULT_PROBE_TIMEOUT),
            cancel: self.cancel.unwrap_or_default(),
            ramp_up: self.ramp_up,
            count_overdue: self.count_overdue,
            retry_after_cap: self.retry_after_cap.unwrap_or(DEFAULT_RETRY_AFTER_CAP),
            jitter_seed: self.jitter_seed,
        })
    }

    fn conditions(&self) -> Result<Rates, ConfigError> {
        within("consecutive", self.consecutive, 1, u32::MAX, "1 or more")?;
        let named = self.consecutive.is_some() || self.slow_rate.is_some();
        let failure_rate = match self.failure_rate {
            None if !named => Some(DEFAULT_RATE),
            given => given,
        };
        Ok(Rates {
            failure_rate: rate("failure_rate", failure_rate)?,
            slow_rate: rate("slow_rate", self.slow_rate)?,
        })
    }

    fn checked_window(&self, used: bool) -> Result<WindowKind, ConfigError> {
        within(
            "window_calls",
            self.window_calls,
            1,
            MAX_WINDOW_CALLS,
            "1 to 1,048,576",
        )?;
        if let Some(short) = self.window.filter(|&window| window < MIN_WINDOW) {
            return Err(ConfigError::new("window", short, "1 ms or more"));
        }
        unused(
            "window",
            self.window,
            used,
            "left out where no rate is judged",
        )?;
        unused(
            "window_calls",
            self.window_calls,
            used,
            "left out where no rate is judged",
        )?;
        match (self.window, self.window_calls) {
            (Some(_), Some(calls)) => Err(ConfigError::new(
                "window_calls",
                calls,
                "left out where `window` is given",
            )),
            (window, None) => Ok(WindowKind::Time(window.unwrap_or(DEFAULT_WINDOW))),
            (None, Some(calls)) => Ok(WindowKind::Calls(calls)),
        }
    }

    fn checked_min_calls(&self, window: WindowKind, used: bool) -> Result<u32, ConfigError> {
        unused(
            "min_calls",
            self.min_calls,
            used,
            "left out where no rate is judged",
        )?;
        let most = match window {
            WindowKind::Time(_) => u32::MAX,
            WindowKind::Calls(calls) => calls,
        };
        let allowed = "1 or more, and no more than `window_calls`";
        within("min_calls", self.min_calls, 1, most, allowed)?;
        Ok(self.min_calls.unwrap_or(DEFAULT_MIN_CALLS.min(most)))
    }

    fn check_slow(&self, rates: &Rates) -> Result<(), ConfigError> {
        above_zero("slow_threshold", self.slow_threshold)?;
        let asked = self.consecutive.is_some() || rates.slow_rate.is_some();
        let allowed = "left out where neither `consecutive` nor `slow_rate` is judged";
        unused("slow_threshold", self.slow_threshold, asked, allowed)?;
        let known = self.slow_threshold.is_some();
        unused(
            "slow_rate",
            self.slow_rate,
            known,
            "left out where no `slow_threshold` is given",
        )?;
        let overdue = self.count_overdue.then_some(true);
        unused(
            "count_overdue",
            overdue,
            known,
            "left out where no `slow_threshold` is given",
        )
    }

    fn checked_open_time(&self) -> Result<Option<OpenTime>, ConfigError> {
        above_zero("open_for", self.open_for)?;
        let growing =
            self.open_for.is_some() || (self.recover_every.is_none() && self.open_time.is_none());
        let allowed = "left out where nothing uses `open_for`";
        unused("open_growth", self.open_growth, growing, allowed)?;
        unused("open_cap", self.open_cap, growing, allowed)?;
        unused("open_jitter", self.open_jitter, growing, allowed)?;
        unused("jitter_seed", self.jitter_seed, growing, allowed)?;
        match &self.open_time {
            Some(_) if self.open_for.is_some() => Err(ConfigError::new(
                "open_for",
                self.open_for,
                "left out where `open_time` is given",
            )),
            Some(f) => Ok(Some(OpenTime::Function(f.clone()))),
            None if growing => self.growing().map(OpenTime::Growing).map(Some),
            None => Ok(None),
        }
    }

    fn growing(&self) -> Result<Growing, ConfigError> {
        let initial = self.open_for.unwrap_or(DEFAULT_OPEN);
        let cap = self.open_cap.unwrap_or(DEFAULT_CAP.max(initial));
        if cap < initial {
            return Err(ConfigError::new(
                "open_cap",
                cap,
                "the first open time or more",
            ));
        }
        let factor = self.open_growth.unwrap_or(DEFAULT_FACTOR);
        if !(1.0..=100.0).contains(&factor) {
            return Err(ConfigError::new("open_growth", factor, "1 to 100"));
        }
        let jitter = self.open_jitter.unwrap_or(DEFAULT_JITTER);
        if !(0.0..1.0).contains(&jitter) {
            return Err(ConfigError::new(
                "open_jitter",
                jitter,
                "0 or more, and below 1",
            ));
        }
        Ok(Growing {
            initial,
            factor: (factor * 1e6).round() as u64,
            cap,
            // Floored: rounding up could make 0.9999999 a whole, and an open time of nothing.
            jitter: (jitter * 1e6) as u64,
        })
    }
}

struct Rates {
    failure_rate: Option<Rate>,
    slow_rate: Option<Rate>,
}

impl Rates {
    fn has_rates(&self) -> bool {
        self.failure_rate.is_some() || self.slow_rate.is_some()
    }
}

fn rate(field: &'static str, share: Option<f64>) -> Result<Option<Rate>, ConfigError> {
    let checked = |share| {
        Rate::new(share).ok_or_else(|| ConfigError::new(field, share, "above 0, and at most 1"))
    };
    share.map(checked).transpose()
}

fn within<T: PartialOrd + std::fmt::Debug>(
    field: &'static str,
    value: Option<T>,
    least: T,
    most: T,
    allowed: &'static str,
) -> Result<(), ConfigError> {
    match value {
        Some(value) if value < least || value > most => {
            Err(ConfigError::new(field, value, allowed))
        }
        _ => Ok(()),
    }
}

fn above_zero(field: &'static str, value: Option<Duration>) -> Result<(), ConfigError> {
    let least = Duration::from_nanos(1);
    within(field, value, least, Duration::MAX, "above zero")
}

fn unused<T: std::fmt::Debug>(
    field: &'static str,
    value: Option<T>,
    used: bool,
    allowed: &'static str,
) -> Result<(), ConfigError> {
    match value {
        Some(value) if !used => Err(ConfigError::new(field, value, allowed)),
        _ => Ok(()),
    }
}
