use std::net::IpAddr;

use ::http::Request;

use super::canonical::{cut, unwrapped};
use super::peer::{KnownPeer, Peer};
use super::{Trust, forwarded, x_forwarded_for};
use crate::ConfigError;

/// Finds the address of the client that made a request; see the [module](super) for what is
/// believed and why.
///
/// ```
/// use std::net::IpAddr;
/// use http::Request;
/// use tower_sluice::http::{ClientIp, Trust};
///
/// let client = ClientIp::x_forwarded_for(Trust::networks(["10.0.0.0/8".parse()?]));
/// let request = Request::builder()
///     .header("x-forwarded-for", "6.6.6.6, 7.7.7.7, 10.0.0.2")
///     .extension("10.0.0.1".parse::<IpAddr>()?)
///     .body(())?;
/// assert_eq!(client.find(&request), Some("7.7.7.7".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nobody is told apart until it is asked for a key"]
pub struct ClientIp<P = KnownPeer> {
    peer: P,
    header: Header,
    ipv6_prefix: u8,
}

#[derive(Clone, Debug)]
enum Header {
    None,
    XForwardedFor(Trust),
    Forwarded(Trust),
}

/// What one subscriber line or one rented machine commonly gets; shorter assignments exist, longer
/// ones hardly.
const DEFAULT_IPV6_PREFIX: u8 = 64;

impl ClientIp {
    /// The client is the peer; no header is believed. Right where no proxy stands before the
    /// server, and safe, if unfair to those behind it, where one does.
    pub const fn peer() -> Self {
        Self::by(Header::None)
    }

    /// The client stands in `X-Forwarded-For`, as far as `trust` goes.
    pub const fn x_forwarded_for(trust: Trust) -> Self {
        Self::by(Header::XForwardedFor(trust))
    }

    /// The client stands in [`Forwarded`](https://www.rfc-editor.org/rfc/rfc7239), as far as
    /// `trust` goes.
    pub const fn forwarded(trust: Trust) -> Self {
        Self::by(Header::Forwarded(trust))
    }

    const fn by(header: Header) -> Self {
        Self {
            peer: KnownPeer,
            header,
            ipv6_prefix: DEFAULT_IPV6_PREFIX,
        }
    }
}

impl<P> ClientIp<P> {
    /// Finds the peer's address by `peer`, a closure `Fn(&Request<B>) -> Option<IpAddr>`. Default:
    /// [`KnownPeer`].
    pub fn peer_by<Other>(self, peer: Other) -> ClientIp<Other> {
        ClientIp {
            peer,
            header: self.header,
            ipv6_prefix: self.ipv6_prefix,
        }
    }

    /// Takes IPv6 addresses that agree in their first `bits` bits for one client (0 to 128,
    /// default 64).
    ///
    /// A longer prefix lets whoever holds a /64 step past the limit by changing address; a
    /// shorter one lets neighbours share a limit.
    ///
    /// # Panics
    ///
    /// If `bits` is above 128; [`try_ipv6_prefix`](Self::try_ipv6_prefix) returns that as an
    /// error.
    #[track_caller]
    pub fn ipv6_prefix(self, bits: u8) -> Self {
        match self.try_ipv6_prefix(bits) {
            Ok(client) => client,
            Err(error) => panic!("{error}"),
        }
    }

    /// Takes IPv6 addresses that agree in their first `bits` bits for one client, as
    /// [`ipv6_prefix`](Self::ipv6_prefix).
    ///
    /// # Errors
    ///
    /// If `bits` is above 128.
    pub fn try_ipv6_prefix(mut self, bits: u8) -> Result<Self, ConfigError> {
        if bits > 128 {
            return Err(ConfigError::new("ipv6_prefix", bits, "0 to 128"));
        }
        self.ipv6_prefix = bits;
        Ok(self)
    }

    /// The client's address, unwrapped and cut to the prefix; `None` where there is none.
    ///
    /// Takes time in proportion to the header's length at most, and allocates nothing for
    /// well-formed headers.
    pub fn find<B>(&self, request: &Request<B>) -> Option<IpAddr>
    where
        P: Peer<B>,
    {
        let peer = self.peer.peer(request);
        let headers = request.headers();
        let client = match &self.header {
            Header::None => peer.map(unwrapped),
            Header::XForwardedFor(trust) => {
                trust.client(peer, x_forwarded_for::from_the_right(headers))
            }
            Header::Forwarded(trust) => trust.client(peer, forwarded::from_the_right(headers)),
        };
        client.map(|client| cut(client, self.ipv6_prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(peer: &str, header: (&str, &str)) -> Request<()> {
        Request::builder()
            .header(header.0, header.1)
            .extension(peer.parse::<IpAddr>().expect("an address"))
            .body(())
            .expect("a request")
    }

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn by_default_no_header_is_believed() {
        for name in ["x-forwarded-for", "forwarded"] {
            let request = request("192.0.2.1", (name, "for=7.7.7.7"));
            assert_eq!(ClientIp::peer().find(&request), ip("192.0.2.1"));
        }
    }

    #[test]
    fn each_constructor_reads_its_own_header_only() {
        let x = request("192.0.2.1", ("x-forwarded-for", "7.7.7.7"));
        let forwarded = request("192.0.2.1", ("forwarded", "for=7.7.7.7"));
        let by_x = ClientIp::x_forwarded_for(Trust::hops(1));
        let by_forwarded = ClientIp::forwarded(Trust::hops(1));
        assert_eq!(by_x.find(&x), ip("7.7.7.7"));
        assert_eq!(by_x.find(&forwarded), ip("192.0.2.1"));
        assert_eq!(by_forwarded.find(&forwarded), ip("7.7.7.7"));
        assert_eq!(by_forwarded.find(&x), ip("192.0.2.1"));
    }

    #[test]
    fn addresses_are_unwrapped_and_cut() {
        let client = ClientIp::peer();
        let find = |client: &ClientIp, peer| client.find(&request(peer, ("via", "x")));
        assert_eq!(find(&client, "::ffff:192.0.2.1"), ip("192.0.2.1"));
        assert_eq!(find(&client, "2001:db8::dead:beef"), ip("2001:db8::"));
        let client = client.ipv6_prefix(128);
        assert_eq!(
            find(&client, "2001:db8::dead:beef"),
            ip("2001:db8::dead:beef")
        );
    }

    #[test]
    fn a_closure_may_say_who_the_peer_is() {
        let client = ClientIp::peer().peer_by(|request: &Request<u8>| match request.body() {
            0 => None,
            last => Some(IpAddr::from([10, 0, 0, *last])),
        });
        assert_eq!(client.find(&Request::new(7)), ip("10.0.0.7"));
        assert_eq!(client.find(&Request::new(0)), None);
    }

    #[test]
    fn a_prefix_above_128_is_an_error() {
        let error = ClientIp::peer().try_ipv6_prefix(129).expect_err("129");
        assert_eq!(
            error.to_string(),
            "`ipv6_prefix` is 129, but must be 0 to 128"
        );
    }
}
