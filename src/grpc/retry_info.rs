//! The `grpc-status-details-bin` of a refusal: a `google.rpc.Status` that holds one
//! [`google.rpc.RetryInfo`](https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto).
//!
//! Written by hand: three nested messages of two fields each do not pay for a protobuf compiler
//! in everyone's build. The tests read it back with tonic-types.

use std::time::Duration;

use ::http::HeaderValue;

use super::Code;

const TYPE_URL: &[u8] = b"type.googleapis.com/google.rpc.RetryInfo";

/// Field tags: the number shifted by three, plus 0 for a varint and 2 for bytes.
const VARINT_1: u8 = 1 << 3;
const VARINT_2: u8 = 2 << 3;
const BYTES_1: u8 = (1 << 3) | 2;
const BYTES_2: u8 = (2 << 3) | 2;
const BYTES_3: u8 = (3 << 3) | 2;

/// The longest span a protobuf `Duration` may carry, in seconds: ten thousand years.
const MAX_SECONDS: u64 = 315_576_000_000;

pub(super) fn details(code: Code, message: &str, retry_after: Duration) -> HeaderValue {
    let duration = duration(retry_after);
    // `RetryInfo { 1: Duration }`, then `Any { 1: type, 2: RetryInfo }`.
    let info_len = 1 + varint_len(duration.len()) + duration.len();
    let any_len =
        1 + varint_len(TYPE_URL.len()) + TYPE_URL.len() + 1 + varint_len(info_len) + info_len;

    let mut status = Vec::with_capacity(any_len + message.len() + 16);
    status.extend([VARINT_1, code as u8]);
    bytes(&mut status, BYTES_2, message.as_bytes());
    length(&mut status, BYTES_3, any_len);
    bytes(&mut status, BYTES_1, TYPE_URL);
    length(&mut status, BYTES_2, info_len);
    bytes(&mut status, BYTES_1, &duration);

    HeaderValue::try_from(base64(&status)).expect("base64 is visible ASCII")
}

fn duration(retry_after: Duration) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    out.push(VARINT_1);
    varint(&mut out, retry_after.as_secs().min(MAX_SECONDS));
    out.push(VARINT_2);
    varint(&mut out, retry_after.subsec_nanos().into());
    out
}

fn bytes(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    length(out, tag, value.len());
    out.extend_from_slice(value);
}

fn length(out: &mut Vec<u8>, tag: u8, length: usize) {
    out.push(tag);
    varint(out, length as u64);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint_len(value: usize) -> usize {
    (value.max(1).ilog2() / 7 + 1) as usize
}

/// Standard alphabet, no padding: what gRPC's `-bin` headers carry.
fn base64(input: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(input.len().div_ceil(3) * 4);
    for chunk in input.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_u32, |group, &byte| (group << 8) | u32::from(byte))
            << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let sextet = (group >> (18 - 6 * place)) & 0x3f;
            out.push(ALPHABET[sextet as usize].into());
        }
    }
    out
}

#[cfg(all(test, not(sluice_loom)))]
mod tests {
    use super::*;

    #[test]
    fn base64_leaves_the_padding_out() {
        // RFC 4648, section 10.
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn a_varint_is_as_long_as_told() {
        for value in [0, 1, 127, 128, 16_383, 16_384, usize::MAX] {
            let mut out = Vec::new();
            varint(&mut out, value as u64);
            assert_eq!(out.len(), varint_len(value), "{value}");
        }
    }

    #[test]
    fn tonic_types_reads_what_was_written() {
        use tonic_types::StatusExt;

        for wait in [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_millis(200),
            Duration::from_nanos(61_999_999_999),
            Duration::from_secs(MAX_SECONDS),
        ] {
            for message in ["", "rate limited", &"long ".repeat(100)] {
                let mut headers = ::http::HeaderMap::new();
                headers.insert("grpc-status", HeaderValue::from_static("8"));
                headers.insert(
                    "grpc-status-details-bin",
                    details(Code::ResourceExhausted, message, wait),
                );
                let status = tonic::Status::from_header_map(&headers).expect("a status");
                let info = status.get_details_retry_info().expect("retry info");
                assert_eq!(info.retry_delay, Some(wait), "the exact wait crosses");
                let rest = status.check_error_details().expect("well-formed protobuf");
                assert!(rest.quota_failure().is_none(), "and nothing else does");
            }
        }
    }
}
