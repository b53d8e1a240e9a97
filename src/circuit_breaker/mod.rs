//! Circuit breaking.

mod admission;
mod breaker;
mod builder;
mod call;
mod call_end;
mod classify;
mod control;
mod counters;
mod drive;
pub mod error;
mod event;
mod gate;
mod overdue;
mod permit;
mod plan;
mod policy;
mod record;
mod shared;
mod snapshot;
mod state;
mod ticket;
mod turn;
mod wait;
mod waiters;
mod window;

pub use breaker::CircuitBreaker;
pub use builder::CircuitBreakerBuilder;
pub use call::Call;
pub use call_end::CallEnd;
pub use classify::{Classify, ErrorsAsFailures, Head, Outcome};
pub use drive::Drive;
pub use error::{CircuitOpen, CircuitOpenReason};
pub use event::{CircuitEvent, CircuitEventKind};
pub use permit::{OwnedPermit, Permit, Recorded};
pub use policy::{Cancel, CircuitPolicy, CircuitPolicyBuilder};
pub use snapshot::{Snapshot, Totals};
pub use state::{CircuitState, Command, Transition, TransitionReason};
pub use wait::WhenClosed;

#[allow(unused_imports)] // the layer's share, until it stands
pub(crate) use permit::{Admitted, Reservation};
#[allow(unused_imports)] // as above
pub(crate) use wait::ReadyWait;
