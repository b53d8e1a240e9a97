//! Whose call it is.

use std::net::IpAddr;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderName, Request, StatusCode};
use tower_sluice::clock::Clock;
use tower_sluice::http::{self as sluice, ClientIp, IpNet, Trust};
use tower_sluice::rate_limit::{KeyedRateLimiter, Quota, RateLimitLayer};

use crate::over::{call, get};

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn from(peer: IpAddr, headers: &[(&str, &[u8])]) -> Request<Body> {
    let mut request = get(headers);
    request.extensions_mut().insert(peer);
    request
}

/// A limit of `limit` a minute per client, with the clock frozen, and what asks it.
fn limited(limit: u32, client: ClientIp) -> (KeyedRateLimiter<IpAddr>, impl Ask) {
    let limiter = KeyedRateLimiter::builder(Quota::per_minute(limit))
        .clock(Clock::manual())
        .build()
        .expect("a valid quota");
    let layer = RateLimitLayer::keyed_with(limiter.clone(), client.or_refuse())
        .respond_with(sluice::respond);
    (limiter, move |request| {
        let response: Response = call(&layer, request);
        response.status() == StatusCode::OK
    })
}

trait Ask: Fn(Request<Body>) -> bool {}
impl<F: Fn(Request<Body>) -> bool> Ask for F {}

fn tens() -> Trust {
    Trust::networks(["10.0.0.0/8".parse::<IpNet>().expect("a network")])
}

#[test]
fn h15_addresses_of_one_ipv6_prefix_are_one_client() {
    let (limiter, passes) = limited(5, ClientIp::peer());
    let passed = (0..1_000_u128)
        .map(|n| IpAddr::V6(((0x2001_0db8 << 96) | (n * 0x1_0001_0001)).into()))
        .filter(|&peer| passes(from(peer, &[])))
        .count();
    assert_eq!(passed, 5, "changing the address changes nothing");
    assert_eq!(limiter.len(), 1, "the store holds one client");
    assert!(
        passes(from(ip("2001:db8:0:1::"), &[])),
        "the next /64 has its own budget"
    );
}

#[test]
fn h15_every_prefix_length_works_and_129_is_an_error() {
    for bits in [0, 1, 64, 127, 128] {
        let (_, passes) = limited(1, ClientIp::peer().ipv6_prefix(bits));
        let base = 0x2001_0db8_u128 << 96;
        let outside = match bits {
            0 => None,
            bits => Some(base ^ (1 << (128 - u32::from(bits)))),
        };
        let inside = match bits {
            128 => None,
            bits => Some(base ^ (1 << (127 - u32::from(bits)))),
        };
        assert!(passes(from(IpAddr::V6(base.into()), &[])));
        for (other, expected) in [(inside, false), (outside, true)] {
            if let Some(other) = other {
                let other = IpAddr::V6(other.into());
                assert_eq!(passes(from(other, &[])), expected, "/{bits} {other}");
            }
        }
    }
    let error = ClientIp::peer().try_ipv6_prefix(129).expect_err("129 bits");
    assert_eq!(error.field(), "ipv6_prefix");
}

#[test]
fn h18_garbage_in_a_forwarding_header_falls_back_to_the_peer() {
    let commas = [b','; 64 * 1024];
    let client = ClientIp::x_forwarded_for(tens());
    let garbage: [&[u8]; 7] = [
        b"",
        b"unknown",
        b"a.onion",
        b"fe80::1%eth0",
        b"999.1.1.1",
        &commas,
        b"\xff\xfe",
    ];
    for value in garbage {
        let (_, passes) = limited(1, client.clone());
        let shown = String::from_utf8_lossy(&value[..value.len().min(20)]);
        assert!(passes(from(ip("10.0.0.1"), &[("x-forwarded-for", value)])));
        assert!(
            !passes(from(ip("10.0.0.1"), &[])),
            "{shown:?} was counted for the peer"
        );
    }
    let dressed: [(&[u8], &str); 2] = [
        (b"1.2.3.4:8080", "1.2.3.4"),
        (b"[2001:db8::1]:443", "2001:db8::1"),
    ];
    for (value, plain) in dressed {
        let (_, passes) = limited(1, client.clone());
        assert!(passes(from(ip("10.0.0.1"), &[("x-forwarded-for", value)])));
        let direct = from(ip(plain), &[]);
        assert!(!passes(direct), "port and brackets are no part of the key");
    }
}

#[test]
fn h19_the_client_is_the_first_stranger_from_the_right() {
    let client = ClientIp::x_forwarded_for(tens());
    let (limiter, passes) = limited(1, client.clone());
    let passed = (0..100)
        .filter(|n| {
            let header = format!("6.6.6.{n}, 7.7.7.7, 10.0.0.2");
            let header = [("x-forwarded-for", header.as_bytes())];
            passes(from(ip("10.0.0.1"), &header))
        })
        .count();
    assert_eq!(passed, 1, "what the client writes gives no new budget");
    assert_eq!(limiter.len(), 1);
    assert!(!passes(from(ip("7.7.7.7"), &[])), "the key is 7.7.7.7");

    let find = |peer, headers: &[(&str, &[u8])]| client.find(&from(ip(peer), headers));
    let header = "x-forwarded-for";
    assert_eq!(
        find("8.8.8.8", &[(header, b"6.6.6.6")]),
        Some(ip("8.8.8.8")),
        "a peer outside of the trusted range has its header ignored"
    );
    assert_eq!(
        find(
            "10.0.0.1",
            &[(header, b"6.6.6.6, 7.7.7.7"), (header, b"10.0.0.2")]
        ),
        Some(ip("7.7.7.7")),
        "repeated lines are joined in order"
    );
    assert_eq!(
        find("10.0.0.1", &[(header, b"7.7.7.7, junk, 10.0.0.2")]),
        Some(ip("10.0.0.2")),
        "an unreadable entry stops the walk at the last good hop"
    );
}

#[test]
fn a_missing_key_is_the_users_decision() {
    let name = HeaderName::from_static("x-api-key");
    let frozen = Clock::manual;
    let anonymous = || get(&[]);
    let known = |key: &'static [u8]| get(&[("x-api-key", key)]);

    let refuse = RateLimitLayer::keyed_with(
        Quota::per_minute(1),
        sluice::or_refuse(sluice::header(name.clone())),
    )
    .clock(frozen())
    .respond_with(sluice::respond);
    assert_eq!(call(&refuse, anonymous()).status(), 429);
    assert_eq!(call(&refuse, known(b"a")).status(), 200);
    assert_eq!(call(&refuse, known(b"b")).status(), 200);
    assert_eq!(call(&refuse, known(b"a")).status(), 429);

    let shared = RateLimitLayer::keyed(
        Quota::per_minute(1),
        sluice::or_shared(sluice::header(name.clone())),
    )
    .clock(frozen())
    .respond_with(sluice::respond);
    assert_eq!(call(&shared, anonymous()).status(), 200);
    assert_eq!(call(&shared, known(b"")).status(), 200, "empty is a key");
    assert_eq!(call(&shared, anonymous()).status(), 429, "one for all");

    let unlimited = RateLimitLayer::keyed_with(
        Quota::per_minute(1),
        sluice::or_unlimited(sluice::header(name)),
    )
    .clock(frozen())
    .respond_with(sluice::respond);
    for _ in 0..5 {
        assert_eq!(call(&unlimited, anonymous()).status(), 200);
    }
    assert_eq!(call(&unlimited, known(b"a")).status(), 200);
    assert_eq!(call(&unlimited, known(b"a")).status(), 429);
}

#[test]
fn paths_methods_and_tuples_are_keys() {
    let by_path = RateLimitLayer::keyed_ref(Quota::per_minute(1), sluice::path)
        .clock(Clock::manual())
        .respond_with(sluice::respond);
    assert_eq!(call(&by_path, get(&[])).status(), 200);
    assert_eq!(call(&by_path, get(&[])).status(), 429);

    let by_host = RateLimitLayer::keyed_with(
        Quota::per_minute(1),
        sluice::or_refuse(sluice::host::<Body>),
    )
    .clock(Clock::manual())
    .respond_with(sluice::respond);
    for (host, status) in [("a:1", 200), ("A:2", 429), ("b", 200), ("", 429)] {
        let request = get(&[("host", host.as_bytes())]);
        assert_eq!(call(&by_host, request).status(), status, "{host}");
    }

    let client = ClientIp::peer();
    let by_both = RateLimitLayer::keyed(Quota::per_minute(1), move |request: &Request<Body>| {
        (client.find(request), sluice::method(request).to_owned())
    })
    .clock(Clock::manual())
    .respond_with(sluice::respond);
    let post = |peer: &str| {
        let mut request = from(ip(peer), &[]);
        *request.method_mut() = http::Method::POST;
        request
    };
    assert_eq!(call(&by_both, from(ip("1.1.1.1"), &[])).status(), 200);
    assert_eq!(call(&by_both, post("1.1.1.1")).status(), 200);
    assert_eq!(call(&by_both, post("2.2.2.2")).status(), 200);
    assert_eq!(call(&by_both, post("1.1.1.1")).status(), 429);
}
