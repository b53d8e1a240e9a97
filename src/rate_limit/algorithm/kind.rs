use std::fmt;

/// How a [`Quota`](crate::rate_limit::Quota)'s calls are counted. With limit `n` per period `p`:
///
/// | algorithm | promise | state |
/// |---|---|---|
/// | [`Gcra`](Self::Gcra), the default | at most `burst + n × t / p` in any span `t` | 8 bytes |
/// | [`FixedWindow`](Self::FixedWindow) | at most `n` a window; up to `2n` across an edge | 16 bytes |
/// | [`SlidingWindow`](Self::SlidingWindow) | at most `n + n × t / p` in any span `t` ≤ `p`, rounded up; `n` for even traffic | 16 bytes |
/// | [`SlidingLog`](Self::SlidingLog) | at most `n` in any period | up to 16 bytes × `n` |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// The generic cell rate algorithm ([ITU-T I.371](https://www.itu.int/rec/T-REC-I.371);
    /// [as a meter](https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm)): a token bucket
    /// kept as one instant, at which it will be full again.
    ///
    /// Where the interval `p / n` is a whole number of nanoseconds the promise is exact;
    /// otherwise it is `burst + rate × (t + 1 ns)`, with the rate true to one part in 2⁶³.
    Gcra,
    /// One count per window. Windows start at the first call after the last one ended, or at
    /// whole periods of the clock ([`aligned`](crate::rate_limit::Quota::aligned)).
    ///
    /// A caller that spends a window's limit at its end and the next one's at its start gets
    /// twice the limit within an instant.
    FixedWindow,
    /// The counts of this window and the one before, the latter weighted by how much of it still
    /// lies in the last period (as [Cloudflare's][blog] counter): no jump at the edge.
    ///
    /// Exact where the calls of the window before were spread evenly. Where they were not, a span
    /// `t` no longer than the period admits at most `n + ⌈n × (t + 1 ns) / p⌉`.
    ///
    /// [blog]: https://blog.cloudflare.com/counting-things-a-lot-of-different-things/
    SlidingWindow,
    /// The instant of every call of the last period: exact, at 16 bytes a call, grown as needed.
    SlidingLog,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gcra => "GCRA",
            Self::FixedWindow => "fixed window",
            Self::SlidingWindow => "sliding window",
            Self::SlidingLog => "sliding log",
        })
    }
}
