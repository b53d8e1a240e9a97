//! The pure cores: each decides from a quota, a state and the time, and nothing else.
//!
//! All share one shape, [`Rule`], so that whoever keeps the state (one atomic word, a lock, a
//! slot of the keyed store) is apart from what decides.

mod balance;
mod fixed_window;
mod gcra;
mod kind;
mod rule;
mod sliding_log;
mod sliding_window;
mod window;

pub(crate) use balance::{Balance, Mark, Scale, Shortfall};
pub(crate) use fixed_window::FixedWindow;
pub(crate) use gcra::Gcra;
pub(in crate::rate_limit) use gcra::{is_marked, unmarked};
pub use kind::Algorithm;
pub(crate) use rule::{AnyRule, AnyState, Rule};
pub(crate) use sliding_log::{Log, SlidingLog};
pub(crate) use sliding_window::SlidingWindow;

#[cfg(all(test, not(sluice_loom)))]
mod tests;
