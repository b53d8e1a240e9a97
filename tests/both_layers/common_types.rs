use std::error::Error as _;
use std::fmt::{Debug, Display};
use std::panic::{RefUnwindSafe, UnwindSafe};

use tower_sluice::clock::{Clock, ManualClock, Nanos};
use tower_sluice::reject::{AsError, FlattenError, Refusal, RefusalKind, RespondWith};
use tower_sluice::{
    CircuitBreaker, CircuitOpen, CircuitPolicy, ConfigError, Error, Name, Quota, RateLimited,
    RateLimiter, WhenFull,
};

fn limited() -> RateLimited {
    let limiter = RateLimiter::builder(Quota::per_hour(1)).name("checks");
    let limiter = limiter
        .clock(Clock::manual())
        .build()
        .expect("a valid quota");
    limiter.check().expect("the one call of the hour");
    limiter.check().expect_err("the hour is spent")
}

fn open() -> CircuitOpen {
    let breaker = CircuitBreaker::new("billing", CircuitPolicy::default());
    breaker.force_open();
    breaker.try_acquire().expect_err("forced open")
}

#[test]
fn values_go_anywhere() {
    fn value<T: Clone + Debug + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}
    value::<Nanos>();
    value::<Name>();
    value::<ConfigError>();
    value::<WhenFull>();
    value::<AsError>();
    value::<FlattenError>();
    value::<RespondWith<fn(&RateLimited) -> u8>>();
    value::<Error<u8, u8>>();
}

#[test]
fn clocks_and_handles_are_shared_between_threads() {
    fn handle<T: Clone + Debug + Send + Sync + Unpin + 'static>() {}
    handle::<Clock>();
    handle::<ManualClock>();
    handle::<RateLimiter>();
    handle::<CircuitBreaker>();
}

#[test]
fn both_refusals_answer_the_same_questions() {
    let (limited, open) = (limited(), open());
    let both: [&dyn Refusal; 2] = [&limited, &open];
    assert_eq!(both.map(Refusal::name), [Some("checks"), Some("billing")]);
    assert_eq!(
        both.map(Refusal::kind),
        [RefusalKind::Limited, RefusalKind::Unavailable]
    );
    assert!(
        both[0].retry_after().is_some(),
        "the time to the next call is known"
    );
    assert_eq!(
        both[1].retry_after(),
        None,
        "nobody knows when an operator will relent"
    );
}

#[test]
fn an_error_reads_as_what_it_holds_and_leads_to_it() {
    fn reads<T: Display>(error: &Error<RateLimited, std::fmt::Error>, held: &T) {
        assert_eq!(error.to_string(), held.to_string());
    }
    let refusal = limited();
    let refused = Error::Refused(refusal.clone());
    reads(&refused, &refusal);
    let source = refused.source().expect("a refusal stands behind it");
    assert_eq!(source.downcast_ref::<RateLimited>(), Some(&refusal));
    assert_eq!(refused.refused(), Some(&refusal));

    let failed = Error::Inner(std::fmt::Error);
    reads(&failed, &std::fmt::Error);
    assert!(
        failed
            .source()
            .is_some_and(|source| source.is::<std::fmt::Error>())
    );
    assert_eq!(failed.into_inner(), Some(std::fmt::Error));
}

#[test]
fn a_bad_value_is_told_with_its_field_and_its_range() {
    let error = Quota::try_per_second(0).expect_err("zero is not unlimited");
    assert_eq!(error.value(), "0");
    let text = error.to_string();
    assert!(
        text.contains(error.field()) && text.contains(error.allowed()),
        "{text}"
    );
}

#[test]
fn names_are_equal_by_their_text_however_they_were_made() {
    let made = Name::from("shard-7".to_owned());
    assert_eq!(made, Name::from_static("shard-7"));
    assert_eq!(format!("{made} {made:?}"), "shard-7 \"shard-7\"");
}
