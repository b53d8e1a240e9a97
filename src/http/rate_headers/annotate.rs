use std::time::Duration;

use ::http::Response;

use super::RateHeaders;
use super::numbers::Numbers;
use crate::rate_limit::{
    Allowed, Annotate, RateLimitLayer, RateLimited, RateLimitedReason, Standing,
};

impl<D, M, W, A> RateLimitLayer<D, M, W, A> {
    /// Tells callers where they stand with their quota, in headers on admitted answers and on
    /// refusals that are answers (`.respond_with(…)`). Default: nothing is told.
    ///
    /// ```
    /// use tower_sluice::{http, rate_limit::{Quota, RateLimitLayer}};
    ///
    /// let layer = RateLimitLayer::new(Quota::per_minute(100))
    ///     .headers(http::RateHeaders::new().draft_11("api"))
    ///     .respond_with(http::respond);
    /// # let _: axum::Router = axum::Router::new()
    /// #     .route("/", axum::routing::get(async || "hello"))
    /// #     .layer(layer);
    /// ```
    pub fn headers(self, headers: RateHeaders) -> RateLimitLayer<D, M, W, RateHeaders> {
        self.annotate(headers)
    }
}

/// A decision, until there is a response to write it on.
#[derive(Debug)]
pub struct RateNote {
    headers: RateHeaders,
    /// All but the first; empty, and so without an allocation, for a single quota.
    others: Vec<Numbers>,
    first: Option<Numbers>,
    refused: bool,
}

/// In the extensions of a response that has headers of ours: how little they told, of a refusal
/// nothing, so that what stands beside its `Retry-After` stays.
#[derive(Clone, Copy)]
struct Told {
    remaining: u32,
}

impl RateHeaders {
    fn note(&self, standings: &[Standing], at_most: Duration) -> RateNote {
        let mut numbers = standings.iter().map(|standing| {
            let numbers = Numbers::of(standing);
            // Whoever waits as long as told must not be told of a later time beside it.
            let more = numbers.more.min(at_most);
            Numbers { more, ..numbers }
        });
        let first = numbers.next();
        RateNote {
            headers: self.clone(),
            others: numbers.collect(),
            first,
            refused: false,
        }
    }
}

impl<B> Annotate<Response<B>> for RateHeaders {
    type Note = RateNote;

    fn admitted(&self, allowed: &Allowed) -> RateNote {
        self.note(allowed.standings(), Duration::MAX)
    }

    fn refused(&self, refusal: &RateLimited) -> RateNote {
        let known = !matches!(
            refusal.reason(),
            RateLimitedReason::StoreFull
                | RateLimitedReason::NoKey
                | RateLimitedReason::QuotaMismatch
        );
        let standings = if known { refusal.standings() } else { &[] };
        let note = self.note(standings, refusal.retry_after().unwrap_or(Duration::MAX));
        RateNote {
            refused: true,
            ..note
        }
    }

    fn write(note: RateNote, response: &mut Response<B>) {
        let Some(first) = note.first else { return };
        let several: Vec<Numbers>;
        let numbers = if note.others.is_empty() {
            std::slice::from_ref(&first)
        } else {
            several = std::iter::once(first).chain(note.others).collect();
            &several
        };
        let all = numbers.iter().map(|numbers| numbers.remaining);
        let remaining = all.min().unwrap_or_default();
        let inner = response.extensions().get::<Told>();
        if inner.is_some_and(|inner| inner.remaining <= remaining) {
            return;
        }
        let told = if note.refused { 0 } else { remaining };
        response.extensions_mut().insert(Told { remaining: told });
        note.headers.write(numbers, response.headers_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::rate_limit::{Quota, RateLimiter};

    fn limiter(quotas: &[Quota]) -> RateLimiter {
        let builder = RateLimiter::builder(quotas[0]).clock(Clock::manual());
        let builder = quotas[1..].iter().fold(builder, |b, quota| b.quota(*quota));
        builder.build().expect("valid quotas")
    }

    fn told(response: &Response<()>, name: &str) -> Vec<String> {
        let values = response.headers().get_all(name).into_iter();
        values
            .map(|value| value.to_str().expect("ASCII").to_owned())
            .collect()
    }

    fn annotate(headers: &RateHeaders, limiter: &RateLimiter, response: &mut Response<()>) {
        let note = match limiter.check() {
            Ok(allowed) => Annotate::<Response<()>>::admitted(headers, &allowed),
            Err(refusal) => Annotate::<Response<()>>::refused(headers, &refusal),
        };
        <RateHeaders as Annotate<Response<()>>>::write(note, response);
    }

    #[test]
    fn admitted_and_refused_answers_agree_with_the_decision() {
        let limiter = limiter(&[Quota::per_minute(2).fixed_window()]);
        let headers = RateHeaders::new().three_fields().draft_11("api");
        for remaining in ["1", "0", "0"] {
            let mut response = Response::new(());
            annotate(&headers, &limiter, &mut response);
            assert_eq!(told(&response, "ratelimit-remaining"), [remaining]);
            assert_eq!(told(&response, "ratelimit-limit"), ["2"]);
            assert_eq!(told(&response, "ratelimit-reset"), ["60"]);
            assert_eq!(
                told(&response, "ratelimit"),
                [format!(r#""api";r={remaining};t=60"#)]
            );
        }
    }

    #[test]
    fn of_two_layers_the_one_with_least_remaining_speaks() {
        let (tight, wide) = (
            limiter(&[Quota::per_minute(2)]),
            limiter(&[Quota::per_minute(9)]),
        );
        let headers = RateHeaders::new().x_seconds();
        for (inner, outer) in [(&tight, &wide), (&wide, &tight)] {
            let mut response = Response::new(());
            annotate(&headers, inner, &mut response);
            annotate(&headers, outer, &mut response);
            assert_eq!(told(&response, "x-ratelimit-limit"), ["2"], "never doubled");
        }
    }

    #[test]
    fn of_two_layers_the_one_that_refused_speaks() {
        let (inner, outer) = (
            limiter(&[Quota::per_minute(3)]),
            limiter(&[Quota::per_hour(2)]),
        );
        let headers = RateHeaders::new().draft_11("api");
        inner.check().expect("one of three");
        let refusal = inner.check_n(3).expect_err("two are left");
        let mut response: Response<()> = crate::http::respond_empty(&refusal);
        let note = Annotate::<Response<()>>::refused(&headers, &refusal);
        <RateHeaders as Annotate<Response<()>>>::write(note, &mut response);
        annotate(&headers, &outer, &mut response);
        assert_eq!(told(&response, "retry-after"), ["20"]);
        assert_eq!(
            told(&response, "ratelimit"),
            [r#""api";r=2;t=20"#],
            "the set agrees with the wait it stands beside"
        );
    }

    #[test]
    fn headers_of_an_upstream_are_replaced() {
        let mut response = Response::builder()
            .header("x-ratelimit-limit", "7")
            .header("x-ratelimit-limit", "8")
            .body(())
            .expect("a response");
        let headers = RateHeaders::new().x_seconds();
        annotate(&headers, &limiter(&[Quota::per_minute(9)]), &mut response);
        assert_eq!(told(&response, "x-ratelimit-limit"), ["9"]);
    }

    #[test]
    fn several_quotas_are_all_told_where_the_form_can() {
        let limiter = limiter(&[Quota::per_minute(5), Quota::per_hour(50)]);
        let mut response = Response::new(());
        let headers = RateHeaders::new().draft_11("api").three_fields();
        annotate(&headers, &limiter, &mut response);
        assert_eq!(
            told(&response, "ratelimit"),
            [r#""api-1";r=4;t=12, "api-2";r=49;t=72"#]
        );
        assert_eq!(told(&response, "ratelimit-remaining"), ["4"]);
    }

    #[test]
    fn a_spread_out_window_never_outlasts_retry_after() {
        let limiter = limiter(&[Quota::per_minute(3)]);
        let headers = RateHeaders::new().draft_11("api");
        let mut response = Response::new(());
        for _ in 0..4 {
            response = Response::new(());
            annotate(&headers, &limiter, &mut response);
        }
        assert_eq!(told(&response, "ratelimit"), [r#""api";r=0;t=20"#]);
    }
}
