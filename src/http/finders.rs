//! What to find a caller or a target by.

use ::http::header::HOST;
use ::http::uri::Authority;
use ::http::{HeaderName, HeaderValue, Request};

/// The path of a request, for `keyed_ref(quota, http::path)`.
///
/// On a server the caller writes it, so every made-up path is a new key; with feature `axum`,
/// `http::matched_path` has only as many as there are routes.
pub fn path<B>(request: &Request<B>) -> &str {
    request.uri().path()
}

/// The method of a request, for `keyed_ref(quota, http::method)`.
pub fn method<B>(request: &Request<B>) -> &str {
    request.method().as_str()
}

/// The host that a request is for and its port, if it names one: the key of a breaker or a limit
/// per host in a client. Cheap to clone, and equal whatever the case of its letters.
///
/// It is the authority of the URI where there is one (clients, HTTP/2), else that of the `Host`
/// header; a user name and password are left out. A port that goes without saying and the same
/// port written out are two keys. On a server the caller writes it.
///
/// ```
/// use http::Request;
///
/// let request = Request::get("http://Example.com:8080/x").body(()).unwrap();
/// let authority = tower_sluice::http::authority(&request).unwrap();
/// assert_eq!(authority, "example.com:8080");
/// assert_eq!(authority.host(), "Example.com");
/// ```
pub fn authority<B>(request: &Request<B>) -> Option<Authority> {
    let host = match request.uri().authority() {
        Some(authority) if !authority.as_str().contains('@') => return Some(authority.clone()),
        Some(authority) => authority.as_str().as_bytes(),
        None => request.headers().get(HOST)?.as_bytes(),
    };
    // Whose name stands there must not tell calls to one host apart, nor end up in a log.
    let host = host.rsplit(|&byte| byte == b'@').next()?;
    Authority::try_from(host).ok()
}

/// The host that a request is for, whatever its port: [`authority`] without the port, and found
/// where that is found.
///
/// ```
/// use http::Request;
///
/// let request = Request::get("/").header("host", "Example.com:8080").body(()).unwrap();
/// assert_eq!(tower_sluice::http::host(&request).unwrap(), "example.com");
/// ```
pub fn host<B>(request: &Request<B>) -> Option<Authority> {
    let authority = authority(request)?;
    match authority.host() {
        "" => None,
        host if host.len() == authority.as_str().len() => Some(authority),
        host => Authority::try_from(host).ok(),
    }
}

/// Finds the value of a header, such as an API key; for [`or_refuse`](super::or_refuse) and its
/// like. Of repeated lines it takes the first.
///
/// Check the key before the limit is asked: a limit by a header that nobody checks gives every
/// made-up value a quota of its own.
pub fn header<B>(name: HeaderName) -> impl Fn(&Request<B>) -> Option<HeaderValue> + Clone {
    move |request| request.headers().get(&name).cloned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_authority_is_that_of_the_uri_or_else_of_the_host_header() {
        let find = |uri: &str, host: &[u8]| {
            let request = Request::get(uri)
                .header("host", host)
                .body(())
                .expect("a request");
            authority(&request).map(|authority| authority.to_string())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            find("http://a:1/x", b"b"),
            some("a:1"),
            "the URI comes first"
        );
        assert_eq!(
            find("http://me:secret@a:1/x", b"b"),
            some("a:1"),
            "no user, no password"
        );
        assert_eq!(find("/x", b"b:2"), some("b:2"));
        assert_eq!(find("/x", b"[::1]:2"), some("[::1]:2"));
        assert_eq!(find("/x", b""), None);
        assert_eq!(find("/x", b"not a host"), None);
        assert_eq!(find("/x", b"\xff"), None);
        assert_eq!(authority(&Request::new(())), None);
    }

    #[test]
    fn the_host_is_the_authority_without_its_port() {
        let find = |uri: &str, header: &[u8]| {
            let request = Request::get(uri).header("host", header).body(());
            host(&request.expect("a request"))
        };
        let is = |text: &str| Authority::try_from(text).ok();
        for (uri, header, found) in [
            ("http://A.example:1/x", &b"b"[..], is("a.example")),
            ("http://me:secret@a:1/x", b"b", is("a")),
            ("/x", b"b:2", is("B")),
            ("/x", b"b:", is("b")),
            ("/x", b"b", is("b")),
            ("/x", b"[::1]:2", is("[::1]")),
            ("/x", b":80", None),
            ("/x", b"", None),
            ("/x", b"not a host", None),
        ] {
            assert_eq!(find(uri, header), found, "{uri} {header:?}");
        }
        assert_eq!(host(&Request::new(())), None);
    }

    proptest! {
        #[test]
        fn any_host_is_read_without_a_panic(host in prop::collection::vec(32_u8..=255, 0..60)) {
            if let Ok(value) = HeaderValue::from_bytes(&host) {
                let request = Request::get("/").header(HOST, value).body(()).expect("a request");
                let found = authority(&request);
                let same = |found: Authority| host.ends_with(found.as_str().as_bytes());
                prop_assert!(found.is_none_or(same), "as it is written, or not at all");
            }
        }
    }

    #[test]
    fn a_header_is_found_by_its_first_line() {
        let request = Request::get("/")
            .header("x-api-key", "one")
            .header("x-api-key", "two")
            .body(())
            .expect("a request");
        let find = header(HeaderName::from_static("x-api-key"));
        assert_eq!(find(&request), Some(HeaderValue::from_static("one")));
        assert_eq!(find(&Request::new(())), None);
    }
}
