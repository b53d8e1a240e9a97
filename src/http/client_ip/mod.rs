//! Whose call it is, by address.
//!
//! The peer's address is the client's, unless proxies stand before the server: then it is the
//! proxy's, and the client's stands in a header that the client can write too. So nothing a
//! header says is believed until the user states which proxies to [`Trust`]; the entries are then
//! read from the right, where the nearest proxy wrote, and only as far as the trust goes.
//!
//! An address is brought to one form before it becomes a key: IPv4 in IPv6
//! ([mapped](https://www.rfc-editor.org/rfc/rfc4291#section-2.5.5.2) or
//! [NAT64](https://www.rfc-editor.org/rfc/rfc6052#section-2.1)) is unwrapped, and IPv6 is cut to a
//! prefix, since whoever holds one address holds the whole of its /64.

mod canonical;
mod forwarded;
mod node;
mod peer;
#[cfg(feature = "axum")]
mod peer_axum;
#[cfg(not(feature = "axum"))]
#[path = "peer_none.rs"]
mod peer_axum;
// One nothing stands in for both frameworks.
#[cfg(not(feature = "tonic"))]
#[path = "peer_none.rs"]
#[allow(clippy::duplicate_mod)]
mod peer_tonic;
#[cfg(feature = "tonic")]
mod peer_tonic;
mod source;
mod trust;
mod x_forwarded_for;

pub use peer::{KnownPeer, Peer};
pub use source::ClientIp;
pub use trust::Trust;
