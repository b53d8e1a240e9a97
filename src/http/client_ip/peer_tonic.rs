use std::net::IpAddr;

use ::http::Extensions;
use tonic::transport::server::TcpConnectInfo;

/// What tonic's server notes of a TCP connection.
pub(super) fn peer(extensions: &Extensions) -> Option<IpAddr> {
    let info = extensions.get::<TcpConnectInfo>()?;
    info.remote_addr().map(|socket| socket.ip())
}
