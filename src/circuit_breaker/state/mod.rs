//! The state machine: pure. It is handed the time, and its answers say what was decided; it
//! reads no clock, takes no lock and tells nobody.
//!
//! | from | to | when | where |
//! |---|---|---|---|
//! | closed | open | a condition is met | `Machine::trip` |
//! | open | half-open | a probe is due and a call arrives, or `drive` looks | `Machine::arrive`, `Machine::advance` |
//! | half-open | closed | enough probes ended well | `Machine::end_probe` |
//! | half-open | open | a probe failed, or ran too long | `Machine::end_probe`, `Machine::settle` |
//! | any | open, closed | by hand | `command` |
//!
//! Each of them begins a new epoch; what carries an older one changes nothing here.

mod arrival;
mod command;
mod half_open;
mod machine;
mod opening;
mod policy_change;
mod ramp;
mod reason;

pub(crate) use arrival::{Arrival, Inner};
pub(crate) use command::Commands;
pub(crate) use half_open::{ProbeEnd, Verdict};
pub(crate) use machine::{Machine, Phase, Rules};
pub(crate) use opening::Asked;
pub use reason::{CircuitState, Command, Transition, TransitionReason};
