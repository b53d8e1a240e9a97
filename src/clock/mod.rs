//! The one source of time.
//!
//! Everything that counts or decides is handed a [`Nanos`]; only the handles and the layers read
//! a [`Clock`]. The default follows tokio's time, so that `tokio::time::pause` moves it; it needs
//! no runtime. [`Clock::manual`] stands still until it is moved.
//!
//! A reading earlier than one before it is never an error: differences stop at zero and sums at
//! [`Nanos::MAX`], some 584 years after the clock was made.

mod anchor;
mod manual;
mod nanos;
mod sleep;
mod source;
#[cfg(feature = "quanta")]
mod tsc;

pub use manual::ManualClock;
pub use nanos::Nanos;
pub(crate) use sleep::Sleep;
pub use source::Clock;
