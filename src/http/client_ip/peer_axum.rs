use std::net::{IpAddr, SocketAddr};

use ::http::Extensions;
use axum::extract::ConnectInfo;
use axum::extract::connect_info::MockConnectInfo;

/// Where axum's own extractor looks too: the connection, or what a test put in its place.
pub(super) fn peer(extensions: &Extensions) -> Option<IpAddr> {
    let real = extensions.get::<ConnectInfo<SocketAddr>>();
    let socket = match real {
        Some(ConnectInfo(socket)) => socket,
        None => {
            let MockConnectInfo(socket) = extensions.get::<MockConnectInfo<SocketAddr>>()?;
            socket
        }
    };
    Some(socket.ip())
}
