use std::net::IpAddr;

use ::http::{HeaderMap, HeaderName};

use super::node;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The entries of all lines, nearest first; `None` for one that is no address.
pub(super) fn from_the_right(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    headers
        .get_all(X_FORWARDED_FOR)
        .into_iter()
        .rev()
        .flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','))
        .map(|entry| node::address(entry.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use ::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn headers(lines: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            let value = HeaderValue::from_bytes(line).expect("a header value");
            headers.append(X_FORWARDED_FOR, value);
        }
        headers
    }

    #[test]
    fn repeated_lines_are_one_list() {
        let headers = headers(&[b"1.1.1.1, 2.2.2.2", b"junk,\t4.4.4.4 "]);
        let read: Vec<_> = from_the_right(&headers).collect();
        let ip = |text: &str| Some(text.parse().expect("an address"));
        assert_eq!(
            read,
            [ip("4.4.4.4"), None, ip("2.2.2.2"), ip("1.1.1.1")],
            "the last line was written by the nearest proxy"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            lines in prop::collection::vec(prop::collection::vec(32_u8..=255, 0..60), 0..4),
        ) {
            let mut headers = HeaderMap::new();
            let mut entries = 0;
            for line in &lines {
                if let Ok(value) = HeaderValue::from_bytes(line) {
                    entries += 1 + line.iter().filter(|&&byte| byte == b',').count();
                    headers.append(X_FORWARDED_FOR, value);
                }
            }
            prop_assert_eq!(from_the_right(&headers).count(), entries);
        }

        #[test]
        fn what_a_client_writes_never_changes_what_the_proxy_appended(
            forged in "[ -~]{0,60}",
            appended in any::<std::net::Ipv4Addr>(),
        ) {
            let line = format!("{forged}, {appended}");
            let headers = headers(&[line.as_bytes()]);
            prop_assert_eq!(
                from_the_right(&headers).next(),
                Some(Some(appended.into()))
            );
        }
    }
}
