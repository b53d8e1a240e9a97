//! Circuit breaking.

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
mod guard;
mod keyed;
mod layer;
#[cfg(all(test, sluice_loom))]
mod loom_tests;
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
mod snapshot;
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
pub use snapshot::{Snapshot, Totals};
pub use state::{CircuitState, Command, Transition, TransitionReason};
pub use wait::WhenClosed;

#[doc(hidden)]
pub use permit::Admitted;
pub(crate) use permit::Reservation;
