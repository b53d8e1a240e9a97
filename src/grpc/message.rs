use ::http::HeaderValue;

/// `text` as a `grpc-message`: percent-encoded where it is not printable ASCII, and where it is
/// the percent sign itself; see
/// [gRPC over HTTP/2](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses).
pub(super) fn percent_encoded(text: &str) -> HeaderValue {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'$' | b'&'..=b'~' => out.push(byte.into()),
            _ => {
                let nibbles = [byte >> 4, byte & 0xf].map(|nibble| HEX[nibble as usize].into());
                out.extend(['%', nibbles[0], nibbles[1]]);
            }
        }
    }
    HeaderValue::try_from(out).expect("printable ASCII only")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_printable_ascii_is_encoded() {
        assert_eq!(percent_encoded("a b~"), "a b~");
        assert_eq!(percent_encoded("100 %\n"), "100 %25%0A");
        assert_eq!(percent_encoded("größe"), "gr%C3%B6%C3%9Fe");
    }
}
