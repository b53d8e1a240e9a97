use std::net::IpAddr;

use ipnet::IpNet;

use super::canonical::unwrapped;
use crate::ConfigError;

/// Whose entries in a forwarding header are believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust(Rule);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Hops(usize),
    Networks(Box<[IpNet]>),
}

impl Trust {
    /// Trusts the nearest `hops` proxies, wherever they are: the client is who the farthest of
    /// them says it is, the `hops`-th entry from the right.
    ///
    /// Choose it where every call comes through exactly so many proxies and none can come around
    /// them; a caller who does come around writes the entry itself. With fewer entries the
    /// leftmost is taken.
    ///
    /// # Panics
    ///
    /// If `hops` is 0; [`try_hops`](Self::try_hops) returns that as an error.
    #[track_caller]
    pub fn hops(hops: usize) -> Self {
        Self::try_hops(hops).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Trusts the nearest `hops` proxies, as [`hops`](Self::hops).
    ///
    /// # Errors
    ///
    /// If `hops` is 0: to trust nobody, use the peer's address.
    pub fn try_hops(hops: usize) -> Result<Self, ConfigError> {
        if hops == 0 {
            return Err(ConfigError::new("hops", hops, "1 or more"));
        }
        Ok(Self(Rule::Hops(hops)))
    }

    /// Trusts the proxies in these networks: from the right, the first address that is in none of
    /// them is the client. A peer that is in none of them is the client itself, whatever the
    /// header says.
    ///
    /// Addresses are unwrapped before they are compared, so write `10.0.0.0/8` and not
    /// `::ffff:10.0.0.0/104`. A peer without an address, on a Unix socket say, leaves the client
    /// without one too; [`ClientIp::peer_by`](super::ClientIp::peer_by) can name one for it.
    ///
    /// # Panics
    ///
    /// If there is no network; [`try_networks`](Self::try_networks) returns that as an error.
    #[track_caller]
    pub fn networks(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self::try_networks(networks).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Trusts the proxies in these networks, as [`networks`](Self::networks).
    ///
    /// # Errors
    ///
    /// If there is no network: to trust nobody, use the peer's address.
    pub fn try_networks(networks: impl IntoIterator<Item = IpNet>) -> Result<Self, ConfigError> {
        let networks: Box<[IpNet]> = networks.into_iter().collect();
        if networks.is_empty() {
            return Err(ConfigError::new("networks", networks, "1 or more"));
        }
        Ok(Self(Rule::Networks(networks)))
    }

    /// Walks from the peer leftward through `entries`, nearest first, as far as the trust goes.
    /// An entry that is no address ends the walk at the last good one.
    pub(super) fn client(
        &self,
        peer: Option<IpAddr>,
        entries: impl Iterator<Item = Option<IpAddr>>,
    ) -> Option<IpAddr> {
        let entries = entries.map_while(|entry| entry).map(unwrapped);
        let peer = peer.map(unwrapped);
        match &self.0 {
            Rule::Hops(hops) => entries.take(*hops).last().or(peer),
            Rule::Networks(networks) => {
                let mut client = peer?;
                for entry in entries {
                    if !networks.iter().any(|network| network.contains(&client)) {
                        break;
                    }
                    client = entry;
                }
                Some(client)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// The walk through `entries`, written as in the header: nearest last.
    fn walk(trust: &Trust, peer: Option<&str>, entries: &[&str]) -> Option<IpAddr> {
        let nearest_first = entries.iter().rev().map(|entry| entry.parse().ok());
        trust.client(peer.map(ip), nearest_first)
    }

    fn tens() -> Trust {
        Trust::networks(["10.0.0.0/8".parse().expect("a network")])
    }

    #[test]
    fn trusted_networks_are_walked_through_to_the_first_stranger() {
        let entries = ["6.6.6.6", "7.7.7.7", "10.0.0.2"];
        let client = walk(&tens(), Some("10.0.0.1"), &entries);
        assert_eq!(client, Some(ip("7.7.7.7")));

        let client = walk(&tens(), Some("8.8.8.8"), &entries);
        assert_eq!(
            client,
            Some(ip("8.8.8.8")),
            "a stranger's header is ignored"
        );

        let client = walk(&tens(), Some("::ffff:10.0.0.1"), &["::ffff:7.7.7.7"]);
        assert_eq!(client, Some(ip("7.7.7.7")), "unwrapped, then compared");

        assert_eq!(walk(&tens(), None, &entries), None, "no peer, no trust");
    }

    #[test]
    fn an_unreadable_entry_ends_the_walk_at_the_last_good_one() {
        let client = walk(&tens(), Some("10.0.0.1"), &["7.7.7.7", "junk", "10.0.0.2"]);
        assert_eq!(client, Some(ip("10.0.0.2")));
        let client = walk(&tens(), Some("10.0.0.1"), &["7.7.7.7", ""]);
        assert_eq!(client, Some(ip("10.0.0.1")));
        let client = walk(
            &Trust::hops(3),
            Some("10.0.0.1"),
            &["7.7.7.7", "junk", "10.0.0.2"],
        );
        assert_eq!(client, Some(ip("10.0.0.2")));
    }

    #[test]
    fn only_proxies_end_at_the_farthest_of_them() {
        let client = walk(&tens(), Some("10.0.0.1"), &["10.0.0.3", "10.0.0.2"]);
        assert_eq!(client, Some(ip("10.0.0.3")));
    }

    #[test]
    fn hops_count_from_the_right() {
        let entries = ["6.6.6.6", "7.7.7.7", "10.0.0.2"];
        for (hops, client) in [
            (1, "10.0.0.2"),
            (2, "7.7.7.7"),
            (3, "6.6.6.6"),
            (9, "6.6.6.6"),
        ] {
            let walked = walk(&Trust::hops(hops), Some("10.0.0.1"), &entries);
            assert_eq!(walked, Some(ip(client)), "{hops} hops");
        }
        let client = walk(&Trust::hops(1), Some("10.0.0.1"), &[]);
        assert_eq!(client, Some(ip("10.0.0.1")), "no header: the peer");
        let client = walk(&Trust::hops(1), None, &["7.7.7.7"]);
        assert_eq!(
            client,
            Some(ip("7.7.7.7")),
            "a Unix socket has no peer address"
        );
    }

    #[test]
    fn trust_in_nobody_is_an_error() {
        assert_eq!(Trust::try_hops(0).expect_err("no hop").field(), "hops");
        let error = Trust::try_networks([]).expect_err("no network");
        assert_eq!(error.to_string(), "`networks` is [], but must be 1 or more");
    }
}
