//! Circuit breaking: calls to a callee that keeps failing are refused at once, until a few of them
//! show that it has recovered.
//!
//! A caller that goes on calling a dead callee waits for time-outs, holds its own resources
//! meanwhile, and adds load to what is trying to come back. A breaker counts how calls end. When
//! a condition of its [`CircuitPolicy`] is met the circuit *opens*: calls are refused with
//! [`CircuitOpen`], which says for how long. Then it is *half-open*: a few calls pass as *probes*,
//! and their outcomes *close* it or open it again. The pattern is from Michael Nygard's [Release
//! It!], and was made known by Martin Fowler's [CircuitBreaker]; why refusing early matters is told
//! in the SRE book's chapter on [cascading failures].
//!
//! It comes as a Tower layer, [`CircuitBreakerLayer`], and as a plain handle, [`CircuitBreaker`],
//! with no Tower around it; both measure the time of each call. Many circuits, one a key, are kept
//! by [`CircuitBreakers`].
//!
//! # Conditions
//!
//! Any number at once; each is judged when an outcome is recorded that fails, with that outcome in.
//! A success never trips.
//!
//! | condition | trips when | costs a success |
//! |---|---|---|
//! | [`consecutive(n)`](CircuitPolicyBuilder::consecutive) | n outcomes in a row failed or were slow | one load |
//! | [`failure_rate(r)`](CircuitPolicyBuilder::failure_rate) | failures / calls ≥ r in the window, once [`min_calls`](CircuitPolicyBuilder::min_calls) are in it | one write, see below |
//! | [`slow_rate(r)`](CircuitPolicyBuilder::slow_rate) | slow calls / calls ≥ r, likewise | the same |
//!
//! A call is *slow* if it took as long as the
//! [`slow_threshold`](CircuitPolicyBuilder::slow_threshold), or longer, whatever its outcome. One
//! that was slow and failed adds one to each rate and one to the total. An ignored outcome adds
//! nothing.
//!
//! A window of time, [`window`](CircuitPolicyBuilder::window), is ten buckets whose edges are whole
//! multiples of a tenth of it. An event on an edge belongs to the bucket that begins there, so what
//! is exactly a window old is out. Each core counts for itself; the decision on a failing outcome
//! sums them all. A window of calls,
//! [`window_calls`](CircuitPolicyBuilder::window_calls), is a true ring: it keeps the exact order
//! of outcomes under one short lock, and so does not scale with cores. Neither allocates after it
//! was made, and both cost the same at any size. An average that decays would need less memory
//! than either; it was left aside because a short burst hides in it.
//!
//! # While open
//!
//! Recovery is by time ([`open_for`](CircuitPolicyBuilder::open_for): 5 s, doubling to 60 s, give
//! or take 20 %), by arrivals ([`recover_every`](CircuitPolicyBuilder::recover_every): every n-th
//! call is a probe), or by whichever comes first. Nothing runs in the background: when a probe is
//! due the state still reads open, with a [`retry_after`](Snapshot::retry_after) of zero, until a
//! call arrives or [`drive`](CircuitBreaker::drive) looks.
//!
//! While half-open at most [`probes`](CircuitPolicyBuilder::probes) calls are in flight or spent.
//! That many successes close; one that fails opens again; an ignored or a cancelled one gives its
//! slot back, and there is no limit to how many may. A probe that runs longer than
//! [`probe_timeout`](CircuitPolicyBuilder::probe_timeout) fails at that deadline, whenever it is
//! noticed, and its own result is then [stale](Recorded::Stale). The minimum of calls has no say.
//!
//! Each change of state begins a new *epoch*. A result of an earlier one changes no count and no
//! state: listeners hear of it as [discarded](CircuitEventKind::Discarded), the caller as
//! [`Recorded::Stale`].
//!
//! By hand, [`force_open`](CircuitBreaker::force_open) wins over
//! [`force_close`](CircuitBreaker::force_close) and that over
//! [`disable`](CircuitBreaker::disable), the shadow mode; [`release`](CircuitBreaker::release) ends
//! all three.
//!
//! # Difference from tower's own
//!
//! tower has no circuit breaker. Its `LoadShed` refuses while the inner service is not ready, which
//! says how busy it is, not whether it works; its `ConcurrencyLimit` bounds how many calls hang on
//! a dead callee, and goes well with a breaker.
//!
//! # What clones share
//!
//! All of the state. A clone of a [`CircuitBreaker`] is the same breaker; a layer's services, and
//! their clones, are behind the layer's one breaker. Two layers are two breakers, unless both are
//! made from one handle.
//!
//! # Cancel safety
//!
//! Each admitted call is held by one permit, which records once. Dropped before that, the call is
//! recorded as cancelled with the time it ran, and counts by the policy's [`Cancel`] rule: by
//! default as slow if it had run past the slow threshold, and not at all otherwise. A panic is a
//! failure. A probe's slot comes back in every case.
//!
//! # Choosing values
//!
//! - **Rates or rows.** A rate over time suits steady traffic and needs a minimum of calls to mean
//!   anything: at 20 a window of 10 s needs 2 calls a second. With fewer, use
//!   [`consecutive`](CircuitPolicyBuilder::consecutive), or a window of calls. A row alone misses a
//!   callee that fails every other call.
//! - **Threshold.** Far above the rate of failures on a good day. Too low, the breaker is itself
//!   the outage; at 1.0 a single success in the window holds it closed.
//! - **Window.** Long enough that quiet hours bring the minimum of calls, short enough that the
//!   successes of before do not hide an outage: 5 to 60 s. Below a second or so one pause of a
//!   garbage collector looks like an outage.
//! - **Slow threshold.** Well below the caller's own time-out, or hanging calls are cancelled
//!   before they are slow. [`count_overdue`](CircuitPolicyBuilder::count_overdue) counts them while
//!   they hang.
//! - **Open time.** About what a restart of the callee takes. Too short, probes are most of its
//!   load; too long, callers see an outage that is over. Leave the jitter on where many callers
//!   share a callee, and add [`ramp_up`](CircuitPolicyBuilder::ramp_up) where its caches start
//!   cold.
//! - **Probes.** More of them judge better and recover later. With
//!   [`recover_every`](CircuitPolicyBuilder::recover_every) each takes n more arrivals.
//!
//! # Panics
//!
//! Listeners' panics are caught and counted. A panic of the user's open-time function goes to the
//! caller whose outcome opened the circuit, or who came first after the time had. Neither spoils the
//! breaker.
//!
//! # Errors
//!
//! [`CircuitOpen`] is the refusal: an answer, not a fault. A policy that cannot be carried out is a
//! [`ConfigError`](crate::ConfigError) from [`build`](CircuitPolicyBuilder::build).
//!
//! # Examples
//!
//! By hand, on a clock that a test moves:
//!
//! ```
//! use std::time::Duration;
//! use tower_sluice::circuit_breaker::{CircuitBreaker, CircuitPolicy, CircuitState};
//! use tower_sluice::clock::Clock;
//!
//! let time = Clock::manual();
//! let policy = CircuitPolicy::builder()
//!     .consecutive(2)
//!     .open_for(Duration::from_secs(5))
//!     .open_jitter(0.0)
//!     .probes(1)
//!     .build()?;
//! let breaker = CircuitBreaker::builder("billing", policy).clock(&time).build();
//!
//! for _ in 0..2 {
//!     breaker.try_acquire()?.failure();
//! }
//! let refused = breaker.try_acquire().unwrap_err();
//! assert_eq!(refused.retry_after(), Some(Duration::from_secs(5)));
//!
//! time.advance(Duration::from_secs(5));
//! let probe = breaker.try_acquire()?;
//! assert_eq!(breaker.state(), CircuitState::HalfOpen);
//! probe.success();
//! assert_eq!(breaker.state(), CircuitState::Closed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Around a future, with someone who listens:
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use std::sync::Arc;
//! use tower_sluice::circuit_breaker::{CircuitBreaker, CircuitEventKind, CircuitPolicy};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tower_sluice::ConfigError> {
//! let opened = Arc::new(AtomicU32::new(0));
//! let seen = opened.clone();
//! let policy = CircuitPolicy::builder().consecutive(1).build()?;
//! let breaker = CircuitBreaker::builder("search", policy)
//!     .on_event(move |event| {
//!         if let CircuitEventKind::Transition { transition, .. } = &event.kind {
//!             println!("{event}"); // circuit search: closed to open: failing outcomes in a row
//!             seen.fetch_add(u32::from(transition.to.to_string() == "open"), Ordering::Relaxed);
//!         }
//!     })
//!     .build();
//!
//! let answer = breaker.call(async { Err::<u32, _>("connection reset") }).await;
//! assert_eq!(answer.unwrap_err().into_inner(), Some("connection reset"));
//!
//! let answer = breaker.call(async { Ok::<_, &str>(7) }).await;
//! assert_eq!(answer.unwrap_err().refused().unwrap().name(), "search");
//! assert_eq!(opened.load(Ordering::Relaxed), 1);
//! # Ok(())
//! # }
//! ```
//!
//! As a layer, see [`CircuitBreakerLayer`].
//!
//! [Release It!]: https://pragprog.com/titles/mnee2/release-it-second-edition/
//! [CircuitBreaker]: https://martinfowler.com/bliki/CircuitBreaker.html
//! [cascading failures]: https://sre.google/sre-book/addressing-cascading-failures/

mod admission;
mod admit;
mod alarm;
mod breaker;
mod builder;
mod call;
mod call_end;
mod classify;
mod control;
mod counters;
mod drive;
mod end;
pub mod error;
pub mod error_chain;
mod event;
pub mod future;
mod gate;
pub(crate) mod guard;
mod in_flight;
mod keyed;
mod layer;
#[cfg(all(test, sluice_loom))]
mod loom_tests;
#[cfg(all(test, sluice_loom))]
mod loom_time;
mod overdue;
mod pending;
mod permit;
mod plan;
mod policy;
mod ready_queue;
mod record;
mod registry;
mod service;
mod settings;
mod shared;
mod skip;
mod snapshot;
mod standing;
mod state;
mod ticket;
mod turn;
mod wait;
mod waiters;
mod window;

pub use admit::{Admit, Single};
pub use breaker::CircuitBreaker;
pub use builder::CircuitBreakerBuilder;
pub use call::Call;
pub use call_end::CallEnd;
pub use classify::{Classify, ErrorsAsFailures, Head, Outcome, RefusalsIgnored};
pub use drive::Drive;
#[doc(hidden)]
pub use end::Answered;
#[cfg(feature = "http")]
pub(crate) use end::sealed as ends_at_sealed;
pub use end::{AtHead, EndsAt};
pub use error::{CircuitOpen, CircuitOpenReason};
pub use event::{CircuitEvent, CircuitEventKind};
pub use keyed::{FindBreaker, KeyFn, KeyRefFn, KeyWithFn, Keyed};
pub use layer::CircuitBreakerLayer;
pub use pending::PendingWhileOpen;
pub use permit::{OwnedPermit, Permit, Recorded};
pub use policy::{Cancel, CircuitPolicy, CircuitPolicyBuilder};
pub use registry::{CircuitBreakers, CircuitBreakersBuilder, Iter, RegistryError};
pub use service::CircuitBreakerService;
pub use skip::{NoSkip, Skip, SkipIf};
pub use snapshot::{Snapshot, Totals};
pub use state::{CircuitState, Command, Transition, TransitionReason};
pub use wait::WhenClosed;

#[doc(hidden)]
pub use permit::Admitted;
pub(crate) use permit::Reservation;
