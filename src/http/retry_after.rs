//! `Retry-After` going out: whole seconds, rounded up, never 0.

use std::time::Duration;

use ::http::HeaderValue;
use bytes::Bytes;

/// `wait` in whole seconds, rounded up, at least 1: a client that waits this long has waited long
/// enough, and one that is told 0 would ask again at once.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    let up = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(up).max(1)
}

/// `wait` in whole milliseconds, rounded up.
pub(crate) fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Whole seconds, drawn evenly from those between `wait` and `wait + span`.
pub(crate) fn spread(wait: Duration, span: Duration) -> u64 {
    let least = whole_seconds(wait);
    let most = wait.saturating_add(span).as_secs();
    if most > least {
        fastrand::u64(least..=most)
    } else {
        least
    }
}

/// `number` as a header value; below [`READY_MADE`] without an allocation.
pub(crate) fn digits(number: u64) -> HeaderValue {
    ready_made(number)
        .and_then(|digits| HeaderValue::from_maybe_shared(Bytes::from_static(digits)).ok())
        .unwrap_or_else(|| HeaderValue::from(number))
}

/// Waits of an hour and less are what limits and open circuits mostly ask for; their digits take
/// 14 kB.
const READY_MADE: usize = 3_601;

static DIGITS: [[u8; 4]; READY_MADE] = {
    let mut table = [[b'0'; 4]; READY_MADE];
    let mut number = 0;
    while number < READY_MADE {
        table[number] = [
            b'0' + (number / 1_000) as u8,
            b'0' + (number / 100 % 10) as u8,
            b'0' + (number / 10 % 10) as u8,
            b'0' + (number % 10) as u8,
        ];
        number += 1;
    }
    table
};

fn ready_made(number: u64) -> Option<&'static [u8]> {
    let digits = DIGITS.get(usize::try_from(number).ok()?)?;
    let zeros = match number {
        0..10 => 3,
        10..100 => 2,
        100..1_000 => 1,
        _ => 0,
    };
    Some(&digits[zeros..])
}

/// Whether these very digits are ours, not only equal to them.
pub(super) fn is_ready_made(value: &HeaderValue) -> bool {
    DIGITS
        .as_flattened()
        .as_ptr_range()
        .contains(&value.as_bytes().as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_up_and_are_never_zero() {
        for (nanos, seconds) in [
            (0, 1),
            (1, 1),
            (999_000_000, 1),
            (1_000_000_000, 1),
            (1_001_000_000, 2),
        ] {
            assert_eq!(
                whole_seconds(Duration::from_nanos(nanos)),
                seconds,
                "{nanos} ns must be waited out by whole seconds, of which 0 is none"
            );
        }
        assert_eq!(whole_seconds(Duration::MAX), u64::MAX, "saturates");
    }

    #[test]
    fn a_spread_wait_stays_between_the_wait_and_the_end_of_its_span() {
        let wait = Duration::from_millis(29_500);
        let drawn: std::collections::BTreeSet<_> = (0..2_000)
            .map(|_| spread(wait, Duration::from_secs(5)))
            .collect();
        assert_eq!(
            drawn,
            (30..=34).collect(),
            "every whole second of 29.5 s to 34.5 s"
        );
        assert_eq!(spread(wait, Duration::ZERO), 30, "no span, no spread");
        assert_eq!(spread(Duration::MAX, Duration::MAX), u64::MAX, "saturates");
    }

    #[test]
    fn digits_are_those_of_the_number() {
        for number in (0..5_000).chain([u64::MAX]) {
            assert_eq!(digits(number), number.to_string());
        }
    }
}
