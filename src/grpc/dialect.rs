use ::http::header::CONTENT_TYPE;
use ::http::{HeaderMap, HeaderValue};

/// Which of the forms of gRPC a call speaks, by the content type of its request; the answer must
/// speak the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// [gRPC over HTTP/2](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).
    Http2,
    /// [gRPC-Web](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md).
    Web,
    /// gRPC-Web with its body in base64.
    WebText,
}

impl Dialect {
    /// `None` where the request is not gRPC at all.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let rest = strip(headers.get(CONTENT_TYPE)?.as_bytes(), b"application/grpc")?;
        let (dialect, rest) = match strip(rest, b"-web-text") {
            Some(rest) => (Self::WebText, rest),
            None => match strip(rest, b"-web") {
                Some(rest) => (Self::Web, rest),
                None => (Self::Http2, rest),
            },
        };
        // `application/grpcfoo` is somebody else's type.
        matches!(rest.first(), None | Some(b'+' | b';' | b' ' | b'\t')).then_some(dialect)
    }

    pub(crate) const fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Http2 => "application/grpc",
            Self::Web => "application/grpc-web+proto",
            Self::WebText => "application/grpc-web-text+proto",
        })
    }
}

/// What follows `prefix`, in any case of letters.
fn strip<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_content_type_names_the_dialect() {
        for (content_type, dialect) in [
            ("application/grpc", Some(Dialect::Http2)),
            ("application/grpc+proto", Some(Dialect::Http2)),
            ("Application/gRPC;charset=utf-8", Some(Dialect::Http2)),
            ("application/grpc\t;charset=utf-8", Some(Dialect::Http2)),
            ("application/grpc-web ; charset=utf-8", Some(Dialect::Web)),
            ("application/grpc-web", Some(Dialect::Web)),
            ("application/grpc-web+proto", Some(Dialect::Web)),
            ("application/grpc-web-text", Some(Dialect::WebText)),
            ("application/grpc-web-text+proto", Some(Dialect::WebText)),
            ("application/grpc-webber", None),
            ("application/grpcs", None),
            ("application/json", None),
            ("application/grp", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            assert_eq!(Dialect::of(&headers), dialect, "{content_type:?}");
        }
        assert_eq!(Dialect::of(&HeaderMap::new()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            prefix in prop::sample::select(vec!["", "application/grpc", "application/grpc-web"]),
            rest in prop::collection::vec(32_u8..=255, 0..20),
        ) {
            let text = [prefix.as_bytes(), &rest].concat();
            if let Ok(value) = HeaderValue::from_bytes(&text) {
                let mut headers = HeaderMap::new();
                headers.insert(CONTENT_TYPE, value);
                let starts_so = text.to_ascii_lowercase().starts_with(b"application/grpc");
                prop_assert!(starts_so || Dialect::of(&headers).is_none());
            }
        }
    }
}
