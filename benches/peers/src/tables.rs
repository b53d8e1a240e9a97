//! The tables of single calls, by name.

use crate::measure::Contender;
use crate::{breakers, http_calls, limits};

/// A path, and who is tried on it; the floor first.
pub type Table = (&'static str, fn() -> Vec<Contender>);

const MILLION: u64 = 1_000_000;

pub const TABLES: &[Table] = &[
    ("limiter, allow", limits::direct_allow),
    ("limiter, refuse", limits::direct_refuse),
    ("limiter, 1 key", || limits::keyed(1, limits::uniform)),
    ("limiter, 1,000 keys, uniform", || {
        limits::keyed(1_000, limits::uniform)
    }),
    ("limiter, 1,000 keys, Zipf", || {
        limits::keyed(1_000, limits::zipf)
    }),
    ("limiter, 1,000 string keys", || {
        limits::keyed_strings(1_000, limits::uniform)
    }),
    ("limiter, 1,000,000 keys, uniform", || {
        limits::keyed(MILLION, limits::uniform)
    }),
    ("limiter, 1,000,000 keys, Zipf", || {
        limits::keyed(MILLION, limits::zipf)
    }),
    ("limiter, 1,000,000 string keys", || {
        limits::keyed_strings(MILLION, limits::uniform)
    }),
    ("limit layer, allow", limits::layer_allow),
    ("limit layer, refuse", limits::layer_refuse),
    ("HTTP limit, allow", http_calls::allow),
    ("HTTP limit, refuse with Retry-After", http_calls::refuse),
    (
        "breaker by hand, closed, success, elapsed recorded",
        breakers::by_hand_closed,
    ),
    ("breaker by hand, open, refusal", breakers::by_hand_open),
    (
        "breaker layer, closed, success, elapsed recorded",
        breakers::closed_success,
    ),
    (
        "breaker layer, closed, every other call fails",
        breakers::closed_failure,
    ),
    (
        "breaker layer, closed, success, nothing uses time",
        breakers::closed_success_untimed,
    ),
    ("breaker layer, open, refusal", breakers::open_refuse),
];
