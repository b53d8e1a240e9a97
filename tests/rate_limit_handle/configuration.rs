//! What cannot be carried out is refused with the field, the value and the range.

use std::panic::catch_unwind;
use std::time::Duration;

use tower_sluice::ConfigError;
use tower_sluice::rate_limit::{
    Acquire, Allowed, Quota, RateLimited, RateLimiter, Reservation, Snapshot, Standing,
};

use super::{manual, secs};

fn field(result: Result<Quota, ConfigError>) -> String {
    result.expect_err("out of range").field().to_owned()
}

#[test]
fn each_field_out_of_range_is_named() {
    assert_eq!(field(Quota::try_per_second(0)), "limit");
    assert_eq!(field(Quota::try_per_minute(0)), "limit");
    assert_eq!(field(Quota::try_per_hour(0)), "limit");
    assert_eq!(field(Quota::try_with_period(1, Duration::ZERO)), "period");
    assert_eq!(field(Quota::try_with_period(1, Duration::MAX)), "period");
    assert_eq!(field(Quota::per_second(1).try_burst(0)), "burst");
    assert_eq!(field(Quota::per_second(1).try_aligned()), "aligned");
    assert_eq!(
        field(Quota::per_second(1).sliding_log().try_aligned()),
        "aligned"
    );
    let no_waiters = RateLimiter::builder(Quota::per_second(1))
        .max_waiters(0)
        .build();
    assert_eq!(
        no_waiters.expect_err("no room at all").field(),
        "max_waiters"
    );
}

#[test]
fn a_burst_and_a_window_do_not_go_together_in_either_order() {
    let quota = Quota::per_second(10);
    assert_eq!(field(quota.burst(20).try_fixed_window()), "burst");
    assert_eq!(field(quota.burst(20).try_sliding_window()), "burst");
    assert_eq!(field(quota.burst(20).try_sliding_log()), "burst");
    assert_eq!(field(quota.fixed_window().try_burst(20)), "burst");
    assert_eq!(field(quota.fixed_window().try_sliding_log()), "algorithm");
}

#[test]
fn the_short_form_panics_with_the_text_of_the_error_at_the_callers_line() {
    let error = Quota::try_per_second(0).unwrap_err().to_string();
    let panic = catch_unwind(|| Quota::per_second(0)).unwrap_err();
    assert_eq!(panic.downcast_ref::<String>(), Some(&error));

    let place = std::sync::Arc::new(parking_lot::Mutex::new(None));
    let seen = place.clone();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        *seen.lock() = info.location().map(|at| at.file().to_owned());
    }));
    let _ = catch_unwind(|| Quota::per_second(1).burst(0));
    std::panic::set_hook(before);
    let file = place.lock().take().expect("the hook saw it");
    assert!(
        file.ends_with("configuration.rs"),
        "the caller's line, not ours: {file}"
    );
}

#[test]
fn an_error_reads_as_a_sentence() {
    let error = Quota::try_per_second(0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`limit` is 0, but must be from 1 to one per nanosecond of the period"
    );
}

#[test]
fn a_refusal_says_who_refused_and_for_how_long() {
    let time = tower_sluice::clock::Clock::manual();
    let limiter = RateLimiter::builder(Quota::per_second(1))
        .name("search")
        .clock(&time)
        .build()
        .expect("valid");
    limiter.check().expect("the first call passes");
    let refusal = limiter.check().expect_err("the second does not");
    assert_eq!(
        refusal.to_string(),
        "rate limited by search, retry after 1s"
    );
    let dear = limiter.check_n(2).expect_err("never");
    assert_eq!(
        dear.to_string(),
        "rate limited by search, the call costs more than is ever admitted"
    );
}

#[test]
fn handles_and_what_they_return_go_anywhere() {
    fn anywhere<T: Send + Sync + Unpin + 'static>() {}
    anywhere::<RateLimiter>();
    anywhere::<Quota>();
    anywhere::<Allowed>();
    anywhere::<RateLimited>();
    anywhere::<Standing>();
    anywhere::<Snapshot>();
    anywhere::<Reservation>();
    fn sent<T: Send + 'static>() {}
    sent::<Acquire>();
}

#[test]
fn a_limiter_reads_as_its_name_and_quotas() {
    let (limiter, _time) = manual(Quota::per_second(1));
    let text = format!("{limiter:?}");
    assert!(text.contains("1 per 1s, burst 1"), "{text}");
    assert!(format!("{:?}", limiter.wait(secs(1))).contains("Acquire"));
    assert!(
        format!("{:?}", limiter.snapshot()).contains("remaining"),
        "standings are readable"
    );
}
