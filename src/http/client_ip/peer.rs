use std::net::{IpAddr, SocketAddr};

use ::http::{Extensions, Request};

use super::{peer_axum, peer_tonic};

/// Finds the address of the other end of the connection that a request came in by.
///
/// Closures `Fn(&Request<B>) -> Option<IpAddr>` are peers.
pub trait Peer<B> {
    /// The address, or `None` where the connection has none or nobody noted it.
    fn peer(&self, request: &Request<B>) -> Option<IpAddr>;
}

impl<B, F: Fn(&Request<B>) -> Option<IpAddr>> Peer<B> for F {
    fn peer(&self, request: &Request<B>) -> Option<IpAddr> {
        self(request)
    }
}

/// Looks among the request's extensions, where servers note the peer: for axum's
/// `ConnectInfo<SocketAddr>` (feature `axum`), tonic's `TcpConnectInfo` (feature `tonic`), and a
/// plain [`SocketAddr`] or [`IpAddr`], in this order.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownPeer;

impl<B> Peer<B> for KnownPeer {
    fn peer(&self, request: &Request<B>) -> Option<IpAddr> {
        let extensions = request.extensions();
        peer_axum::peer(extensions)
            .or_else(|| peer_tonic::peer(extensions))
            .or_else(|| plain(extensions))
    }
}

fn plain(extensions: &Extensions) -> Option<IpAddr> {
    match extensions.get::<SocketAddr>() {
        Some(socket) => Some(socket.ip()),
        None => extensions.get::<IpAddr>().copied(),
    }
}
