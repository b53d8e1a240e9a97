//! Rate limiting: how often something may be done, decided exactly, by any number of threads.
//!
//! A [`Quota`] says how many calls in how long. A [`RateLimiter`] holds one (or several, as one
//! decision) and is asked before each call; a [`KeyedRateLimiter`] holds one state per client,
//! tenant or route; a [`RateLimitLayer`] puts either in front of a [`tower_service::Service`].
//!
//! Nothing runs in the background. What refills is derived from the time when it is asked for, in
//! whole numbers: no timer task can die, no rounding adds up.
//!
//! # When the limit is reached
//!
//! The call is refused with [`RateLimited`], which says by which limiter and quota, and
//! [how long to wait](RateLimited::retry_after): after that long, and not a nanosecond earlier,
//! the same call is admitted, if nobody else comes. A refusal spends nothing; with a single GCRA
//! quota it does not even write to memory.
//!
//! A caller that would rather [wait](RateLimiter::wait) is served in the order of asking, within
//! the time it gives; what cannot be served in time is refused at once. Before a new quota is
//! enforced it can be tried out in [shadow mode](RateLimiterBuilder::shadow), which refuses
//! nothing and counts what it would have refused.
//!
//! # Algorithms
//!
//! | quota | at most | state | use it when |
//! |---|---|---|---|
//! | `Quota::per_second(n)`: [GCRA](Algorithm::Gcra) | `burst + n × t` in any span `t` | one word, no lock | almost always |
//! | [`.fixed_window()`](Quota::fixed_window) | `n` a window, `2n` across an edge | two words | the contract says "per calendar minute", or an older system did it so |
//! | [`.sliding_window()`](Quota::sliding_window) | `n + ⌈n × t / p⌉` in any span `t` up to the period `p`; `n` for even traffic | two words | a fixed window without its jump at the edge |
//! | [`.sliding_log()`](Quota::sliding_log) | `n` in any period, exactly | 16 bytes a call | an upstream counts exactly and punishes one too many |
//!
//! Each is proved against a slow model: every span at every admission, at any rate from one in 36
//! years to one a nanosecond, with clocks that repeat and go back. [`Algorithm`] states each
//! promise and its source.
//!
//! The algorithms know neither locks nor threads nor clocks; they are handed a state and the
//! time. Where the state lives is apart from them: in one atomic word, under a short lock, in a
//! slot of the keyed store, and one day outside of the process.
//!
//! # Difference from tower's own
//!
//! [`tower::limit::RateLimit`](https://docs.rs/tower/latest/tower/limit/rate/struct.RateLimit.html)
//! counts in a fixed window kept in the service. It cannot be cloned, so to share it takes
//! `Buffer` and its task; a layer that is applied per connection makes a limit per connection; it
//! makes callers wait in `poll_ready` and never refuses; up to twice the limit passes at the edge
//! of a window. Here the state belongs to the limiter and is shared by all clones, a refusal is
//! the default and waiting an option, and burst and rate are apart. Use tower's where one task
//! owns one service and is only to be slowed down.
//!
//! # What clones share
//!
//! Clones of a limiter are the same limiter: state, queue, quota, name. So are all services made
//! from one layer and its clones. A second `new` is a second limit.
//!
//! # Cancel safety
//!
//! Deciding takes one step and holds nothing. Dropping a [wait](Acquire) gives up its place or
//! its turn, wherever in the queue it stands, and the rest move up. Dropping a [`Reservation`]
//! gives back what time has not. A layer's response future that is dropped leaves what its call
//! cost spent: the call was made.
//!
//! # Choosing values
//!
//! - **Rate**: what the thing behind can bear for hours, not what it bears at its best.
//! - **Burst**: how many calls may come at once after an idle spell. The default is the limit, so
//!   that after a quiet period up to *twice* the limit passes within one period (a full bucket
//!   and what refills meanwhile). Too small, and clients that fetch ten things at a time are
//!   refused while they are far below their rate; 1 spaces calls evenly.
//! - **Two quotas** rather than a clever one: 10 a second against bursts and 1,000 an hour
//!   against patience, by [`RateLimiterBuilder::quota`].
//! - **Wait**: below the timeout of the caller, or it waits for an answer that it will not hear.
//!
//! # Time
//!
//! Quotas are limited to one call per nanosecond and to 36 years for a full bucket; beyond
//! that [`ConfigError`](crate::ConfigError) names the limit. Clocks that go back never refill and
//! never lengthen a quoted wait beyond the time to full. After decades without a restart (36
//! years at the very least) time stands still: nothing is admitted for free.
//!
//! # Panics and errors
//!
//! The short forms of [`Quota`] panic at the caller's line with the text of the error that their
//! `try_` forms return, and so do a [`KeyedRateLimiter`] made by `new` of a sliding log and a
//! clock set on a layer whose limiter is shared. A wait panics that has to sleep outside of a tokio
//! runtime. Nothing else does. A panic in a function given to a layer reaches its caller, and nothing is lost by it.
//!
//! # Examples
//!
//! Two quotas, one decision:
//!
//! ```
//! use std::time::Duration;
//! use tower_sluice::clock::Clock;
//! use tower_sluice::rate_limit::{Quota, RateLimiter};
//!
//! let time = Clock::manual();
//! let search = RateLimiter::builder(Quota::per_second(2))
//!     .quota(Quota::per_hour(3).fixed_window())
//!     .name("search")
//!     .clock(&time)
//!     .build()?;
//! search.check_n(2)?;
//! time.advance(Duration::from_secs(1));
//! search.check()?;
//! let refusal = search.check().unwrap_err();
//! assert_eq!(refusal.quota().to_string(), "3 per 3600s, fixed window");
//! assert_eq!(refusal.retry_after(), Some(Duration::from_secs(3_599)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A quota replaced while the limiter runs:
//!
//! ```
//! use tower_sluice::rate_limit::{Quota, RateLimiter};
//!
//! let limiter = RateLimiter::new(Quota::per_minute(60));
//! limiter.check_n(60)?;
//! limiter.set_quota(Quota::per_minute(600))?;
//! assert_eq!(limiter.snapshot().remaining(), 0, "no fresh burst; but ten a second from here on");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acquire;
mod algorithm;
mod allowed;
mod annotate;
mod answer;
mod builder;
mod choice;
mod decide;
mod engine;
pub mod error;
pub mod event;
pub mod future;
#[cfg(all(test, sluice_loom))]
mod interleavings;
mod keyed;
mod layer;
mod ledger;
mod limiter;
mod live;
mod manner;
mod queue;
mod quota;
mod rare;
mod refunds;
mod registry;
mod replaced;
mod report;
mod reserve;
mod retime;
mod service;
mod snapshot;
mod wait;
mod watch;

pub use acquire::Acquire;
pub use algorithm::Algorithm;
pub use allowed::{Allowed, Standing};
pub use annotate::Annotate;
pub use builder::RateLimiterBuilder;
pub use decide::{Costed, Decide, Queue, Skipping};
pub use error::{RateLimited, RateLimitedReason};
pub use keyed::{
    Fingerprint, Hashed, IntoKeyChoice, Key, KeyChoice, KeyHasher, Keyed, KeyedRateLimiter,
    KeyedRateLimiterBuilder, KeyedRef, KeyedReservation, KeyedStats, KeyedWait, KeyedWith,
    StoredKey,
};
pub use layer::{RateLimitLayer, Refusing, Waiting};
pub use limiter::RateLimiter;
pub use quota::Quota;
pub use registry::RateLimiters;
pub use reserve::Reservation;
pub use retime::Retime;
pub use service::RateLimit;
pub use snapshot::Snapshot;
