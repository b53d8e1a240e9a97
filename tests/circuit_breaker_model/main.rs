//! The circuit breaker beside a model of it, over random histories: the same decisions, the same
//! counts, the same events.

mod by_hand;
mod model;
mod rules;
mod services;
mod side_by_side;
