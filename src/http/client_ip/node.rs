use std::net::IpAddr;

/// Reads one entry of a forwarding header: an address, with or without brackets and port.
///
/// `None` for everything else: names, `unknown`, obfuscated identifiers, zones, rubbish.
pub(super) fn address(entry: &[u8]) -> Option<IpAddr> {
    // The longest is `[` + 45 + `]:65535`; more is not worth reading.
    if entry.len() > 64 {
        return None;
    }
    let text = std::str::from_utf8(entry).ok()?;
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host.parse().map(IpAddr::V6).ok()?, port)
        }
        // More than one colon is IPv6 without brackets, which has no port.
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => {
                let port = &text[text.len() - port.len() - 1..];
                (host.parse().map(IpAddr::V4).ok()?, port)
            }
            _ => (text.parse().ok()?, ""),
        },
    };
    is_port(port).then_some(host)
}

/// Nothing, or `:` and a port: a number, or a made-up one as of RFC 7239, section 6.
fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        None => text.is_empty(),
        Some(port) => {
            let made_up = port.strip_prefix('_').is_some_and(|rest| !rest.is_empty());
            made_up || port.parse::<u16>().is_ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_or_without_brackets_and_port() {
        for (entry, read) in [
            ("1.2.3.4", "1.2.3.4"),
            ("1.2.3.4:8080", "1.2.3.4"),
            ("1.2.3.4:_hidden", "1.2.3.4"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
        ] {
            let read: IpAddr = read.parse().expect("an address");
            assert_eq!(address(entry.as_bytes()), Some(read), "{entry}");
        }
    }

    #[test]
    fn everything_else_is_no_address() {
        for entry in [
            "",
            "unknown",
            "_obfuscated",
            "a.onion",
            "fe80::1%eth0",
            "[fe80::1%25eth0]",
            "999.1.1.1",
            "1.2.3",
            "1.2.3.4:",
            "1.2.3.4:_",
            "1.2.3.4:99999",
            "1.2.3.4:80:80",
            "[1.2.3.4]",
            "[2001:db8::1",
            "2001:db8::1]",
            "[2001:db8::1]443",
            "[]",
            ":",
            "[",
        ] {
            assert_eq!(address(entry.as_bytes()), None, "{entry:?}");
        }
        assert_eq!(address(b"1.2.3.4\xff"), None, "not UTF-8");
        assert_eq!(address(&[b'1'; 65]), None, "too long to be one");
    }
}
