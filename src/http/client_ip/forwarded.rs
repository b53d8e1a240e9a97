//! [`Forwarded`](https://www.rfc-editor.org/rfc/rfc7239#section-4), read from the right.
//!
//! Deliberately backward also within a line: read forward, a quote that the client leaves open
//! would swallow what the proxies append after it.

use std::borrow::Cow;
use std::net::IpAddr;

use ::http::{HeaderMap, header};

use super::node;

/// The `for` of each element of all lines, nearest first; `None` for one that is no address.
pub(super) fn from_the_right(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    headers
        .get_all(header::FORWARDED)
        .into_iter()
        .rev()
        .flat_map(|line| Backward::elements(line.as_bytes()))
        .map(forwarded_for)
}

/// The parts of a text between separators that stand outside quotes, last first.
struct Backward<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Backward<'a> {
    fn elements(line: &'a [u8]) -> Self {
        Self {
            rest: Some(line),
            separator: b',',
        }
    }

    fn pairs(element: &'a [u8]) -> Self {
        Self {
            rest: Some(element),
            separator: b';',
        }
    }
}

impl<'a> Iterator for Backward<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.rest?;
        let mut quoted = false;
        for (at, &byte) in text.iter().enumerate().rev() {
            match byte {
                // Outside quotes there are no escapes, so a quote met there closes a string.
                b'"' => quoted = !quoted || is_escaped(&text[..at]),
                byte if byte == self.separator && !quoted => {
                    self.rest = Some(&text[..at]);
                    return Some(&text[at + 1..]);
                }
                _ => {}
            }
        }
        self.rest = None;
        Some(text)
    }
}

/// Whether what follows `before` is escaped: an odd number of backslashes stands at its end.
fn is_escaped(before: &[u8]) -> bool {
    let backslashes = before.iter().rev().take_while(|&&byte| byte == b'\\');
    backslashes.count() % 2 == 1
}

/// The address that one element names by its `for`. An element that has none, or two, or one
/// that is malformed, names no address.
fn forwarded_for(element: &[u8]) -> Option<IpAddr> {
    let mut found = None;
    for pair in Backward::pairs(element).map(<[u8]>::trim_ascii) {
        // The grammar lets a pair be left out, and its semicolons stand.
        if pair.is_empty() {
            continue;
        }
        let (name, value) = split_once(pair, b'=')?;
        if name.trim_ascii().eq_ignore_ascii_case(b"for") {
            if found.is_some() {
                return None;
            }
            found = Some(unquoted(value.trim_ascii())?);
        }
    }
    node::address(&found?)
}

fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&byte| byte == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

/// The content of a quoted string, or a token as it is.
fn unquoted(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(rest) = value.strip_prefix(b"\"") else {
        return Some(Cow::Borrowed(value));
    };
    let inner = rest.strip_suffix(b"\"")?;
    if !inner.contains(&b'\\') {
        return Some(Cow::Borrowed(inner));
    }
    // An address needs no escapes, but may have them; one too long for an address has no use.
    let mut out = Vec::with_capacity(inner.len().min(64));
    let mut bytes = inner.iter();
    while let Some(&byte) = bytes.next() {
        out.push(if byte == b'\\' { *bytes.next()? } else { byte });
        if out.len() > 64 {
            return None;
        }
    }
    Some(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use ::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn read(lines: &[&str]) -> Vec<Option<String>> {
        let mut headers = HeaderMap::new();
        for line in lines {
            let value = HeaderValue::from_bytes(line.as_bytes()).expect("a header value");
            headers.append(header::FORWARDED, value);
        }
        from_the_right(&headers)
            .map(|address| address.map(|address| address.to_string()))
            .collect()
    }

    fn some(address: &str) -> Option<String> {
        Some(address.to_owned())
    }

    #[test]
    fn the_examples_of_the_rfc_are_read() {
        // RFC 7239, sections 4 and 7.1.
        assert_eq!(read(&["for=\"_gazonk\""]), [None]);
        assert_eq!(
            read(&["For=\"[2001:db8:cafe::17]:4711\""]),
            [some("2001:db8:cafe::17")]
        );
        assert_eq!(
            read(&["for=192.0.2.60;proto=http;by=203.0.113.43"]),
            [some("192.0.2.60")]
        );
        assert_eq!(
            read(&["for=192.0.2.43, for=198.51.100.17"]),
            [some("198.51.100.17"), some("192.0.2.43")]
        );
        assert_eq!(
            read(&["for=192.0.2.43", "for=198.51.100.17"]),
            [some("198.51.100.17"), some("192.0.2.43")],
            "lines are one list"
        );
    }

    #[test]
    fn separators_in_quotes_do_not_separate() {
        assert_eq!(
            read(&[r#"for=1.1.1.1, host="a,b;c";for="2.2.2.2:1""#]),
            [some("2.2.2.2"), some("1.1.1.1")]
        );
        assert_eq!(
            read(&[r#"for=1.1.1.1, host="a\",b\\";for=2.2.2.2"#]),
            [some("2.2.2.2"), some("1.1.1.1")],
            "an escaped quote does not end the string"
        );
        assert_eq!(read(&[r#"for="1.1.1\.1""#]), [some("1.1.1.1")]);
    }

    #[test]
    fn pairs_may_be_left_empty() {
        // RFC 7239, section 4: `[ forwarded-pair ] *( ";" [ forwarded-pair ] )`.
        for line in [
            "for=1.1.1.1;",
            ";for=1.1.1.1",
            "for=1.1.1.1;;proto=http",
            "proto=http; for=1.1.1.1 ; ;",
        ] {
            assert_eq!(read(&[line]), [some("1.1.1.1")], "{line:?}");
        }
        assert_eq!(read(&[";"]), [None], "no pair at all names nobody");
    }

    #[test]
    fn malformed_elements_name_no_address() {
        for line in [
            "",
            "for",
            "for=",
            "by=1.1.1.1",
            "for=1.1.1.1;for=2.2.2.2",
            "for=1.1.1.1;junk",
            "for=unknown",
            "for=\"1.1.1.1",
            "for=\"1.1.1.1\\",
            "for=1.1.1.1\"",
            "1.1.1.1",
        ] {
            assert_eq!(read(&[line]), [None], "{line:?}");
        }
    }

    #[test]
    fn a_quote_left_open_by_the_client_swallows_nothing() {
        assert_eq!(
            read(&[r#"for="6.6.6.6, for=2.2.2.2"#])[0],
            some("2.2.2.2"),
            "what the proxy appended stands"
        );
    }

    proptest! {
        #[test]
        fn what_a_client_writes_never_changes_what_the_proxy_appended(
            forged in "[ -~]{0,60}",
            quoted in any::<bool>(),
            appended in any::<std::net::Ipv4Addr>(),
        ) {
            let quote = if quoted { "\"" } else { "" };
            let line = format!("{forged}, proto=http;for={quote}{appended}{quote}");
            prop_assert_eq!(&read(&[&line])[0], &Some(appended.to_string()));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(
            line in prop::collection::vec(prop::sample::select(b"for=\",;\\ 1.:[]_\xff\t".to_vec()), 0..80),
        ) {
            if let Ok(value) = HeaderValue::from_bytes(&line) {
                let mut headers = HeaderMap::new();
                headers.append(header::FORWARDED, value);
                let commas = line.iter().filter(|&&byte| byte == b',').count();
                prop_assert!(from_the_right(&headers).count() <= commas + 1);
            }
        }
    }
}
