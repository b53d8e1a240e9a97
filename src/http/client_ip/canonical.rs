use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Unwraps an IPv4 address written as IPv6: mapped (`::ffff:1.2.3.4`) or through NAT64
/// (`64:ff9b::1.2.3.4`). Left as they are, all such clients would share one /64.
pub(super) fn unwrapped(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let embedded = match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            (u32::from(high) << 16) | u32::from(low)
        }
        _ => return address,
    };
    IpAddr::V4(Ipv4Addr::from_bits(embedded))
}

/// Keeps the first `prefix` bits of an IPv6 address; IPv4 stays whole.
pub(super) fn cut(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => {
            let host_bits = 128_u32.saturating_sub(prefix.into());
            // A shift by all 128 bits would overflow; the zero-length prefix keeps nothing.
            let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn ipv4_in_ipv6_is_unwrapped() {
        for (wrapped, plain) in [
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("64:ff9b::192.0.2.1", "192.0.2.1"),
            ("192.0.2.1", "192.0.2.1"),
            // Neither mapped nor NAT64: compatible (deprecated), local NAT64, loopback.
            ("::192.0.2.1", "::192.0.2.1"),
            ("64:ff9b:1::192.0.2.1", "64:ff9b:1::192.0.2.1"),
            ("::1", "::1"),
        ] {
            assert_eq!(unwrapped(ip(wrapped)), ip(plain), "{wrapped}");
        }
    }

    #[test]
    fn ipv6_is_cut_at_any_bit() {
        let full = ip("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff");
        for (prefix, kept) in [
            (0, "::"),
            (1, "::"),
            (64, "2001:db8:ffff:ffff::"),
            (65, "2001:db8:ffff:ffff:8000::"),
            (127, "2001:db8:ffff:ffff:ffff:ffff:ffff:fffe"),
            (128, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            assert_eq!(cut(full, prefix), ip(kept), "/{prefix}");
        }
        assert_eq!(cut(ip("192.0.2.1"), 0), ip("192.0.2.1"), "IPv4 stays whole");
    }
}
