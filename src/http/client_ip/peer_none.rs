use std::net::IpAddr;

use ::http::Extensions;

/// Without its feature a framework notes nothing that we could read.
pub(super) fn peer(_extensions: &Extensions) -> Option<IpAddr> {
    None
}
