//! What becomes of a request in which no key is found: the user's decision, never a silent one.

use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};

use ::http::Request;

use super::client_ip::{ClientIp, Peer};
use crate::rate_limit::{Hashed, KeyChoice};

/// Limits by the key that `find` finds and refuses requests without one, with the reason
/// [`NoKey`](crate::rate_limit::RateLimitedReason::NoKey), which responders answer like any spent
/// quota (429) but without a wait; for `keyed_with(quota, http::or_refuse(http::header(name)))`.
pub fn or_refuse<Request, K: Hash>(
    find: impl Fn(&Request) -> Option<K> + Clone,
) -> impl Fn(&Request) -> KeyChoice<Hashed<K>> + Clone {
    move |request| find(request).map_or(KeyChoice::Refuse, |key| KeyChoice::Limit(Hashed(key)))
}

/// Limits by the key that `find` finds and lets requests without one pass; for
/// `keyed_with(quota, http::or_unlimited(http::header(name)))`.
pub fn or_unlimited<Request, K: Hash>(
    find: impl Fn(&Request) -> Option<K> + Clone,
) -> impl Fn(&Request) -> KeyChoice<Hashed<K>> + Clone {
    move |request| find(request).map_or(KeyChoice::NotLimited, |key| KeyChoice::Limit(Hashed(key)))
}

/// Limits by the key that `find` finds, and all requests without one together; for
/// `keyed(quota, http::or_shared(http::header(name)))`.
pub fn or_shared<Request, K: Hash>(
    find: impl Fn(&Request) -> Option<K> + Clone,
) -> impl Fn(&Request) -> Hashed<Option<K>> + Clone {
    move |request| Hashed(find(request))
}

impl<P: Clone> ClientIp<P> {
    /// Limits by client and refuses requests whose client has no address; for
    /// `keyed_with(quota, client.or_refuse())`.
    pub fn or_refuse<B>(self) -> impl Fn(&Request<B>) -> KeyChoice<IpAddr> + Clone
    where
        P: Peer<B>,
    {
        move |request| {
            self.find(request)
                .map_or(KeyChoice::Refuse, KeyChoice::Limit)
        }
    }

    /// Limits by client and lets requests pass whose client has no address; for
    /// `keyed_with(quota, client.or_unlimited())`.
    pub fn or_unlimited<B>(self) -> impl Fn(&Request<B>) -> KeyChoice<IpAddr> + Clone
    where
        P: Peer<B>,
    {
        move |request| {
            self.find(request)
                .map_or(KeyChoice::NotLimited, KeyChoice::Limit)
        }
    }

    /// Limits by client, and all requests whose client has no address together, as if they came
    /// from `0.0.0.0`; for `keyed(quota, client.or_shared())`.
    pub fn or_shared<B>(self) -> impl Fn(&Request<B>) -> IpAddr + Clone
    where
        P: Peer<B>,
    {
        move |request| {
            self.find(request)
                .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
        }
    }
}
