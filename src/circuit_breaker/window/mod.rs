//! What the rates are taken over. `time` and `count` are pure; `shared` lets threads count side
//! by side.

mod count;
mod shared;
pub(crate) mod stripes;
mod tally;
#[cfg(all(test, not(sluice_loom)))]
mod tests;
mod time;

pub(crate) use count::CountWindow;
pub(crate) use shared::{Landed, Mark, Windows};
pub(crate) use tally::Tally;
pub(crate) use time::TimeWindow;
