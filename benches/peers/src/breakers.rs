//! Circuit breakers as layers, and peers that have none called by hand.

use std::sync::Arc;
use std::time::Duration;

use failsafe::CircuitBreaker as _;
use tower_layer::Layer;
use tower_resilience_circuitbreaker::CircuitBreakerLayer;

use crate::drive::call_once;
use crate::floors::{Bare, Breaker, BreakerService, EveryOther};
use crate::measure::Contender;
use crate::ours;

/// Every other call fails, and no rate is reached by that.
pub fn closed_failure() -> Vec<Contender> {
    let mut floor = BreakerService::<_, true> {
        inner: EveryOther::default(),
        breaker: Arc::new(Breaker::closed()),
    };
    let mut all = vec![Contender::new("floor", move || {
        call_once(&mut floor, 7).is_ok()
    })];
    all.extend(ours::breaker_closed_failure());
    let peer = CircuitBreakerLayer::builder()
        .failure_rate_threshold(0.9)
        .sliding_window_size(100)
        .slow_call_duration_threshold(Duration::from_secs(1))
        .slow_call_rate_threshold(0.9)
        .build()
        .expect("a valid configuration");
    let mut peer = peer.layer(EveryOther::default());
    all.push(Contender::new("tower-resilience", move || {
        call_once(&mut peer, 7).is_ok()
    }));
    let recloser = recloser::Recloser::custom().closed_len(100).error_rate(0.9);
    let (recloser, mut inner) = (recloser.build(), EveryOther::default());
    all.push(Contender::new("recloser by hand, not timed", move || {
        recloser.call(|| call_once(&mut inner, 7)).is_ok()
    }));
    let backoff = failsafe::backoff::constant(Duration::from_secs(3_600));
    let policy = failsafe::failure_policy::consecutive_failures(5, backoff);
    let failsafe = failsafe::Config::new().failure_policy(policy).build();
    let mut inner = EveryOther::default();
    all.push(Contender::new("failsafe by hand, not timed", move || {
        failsafe.call(|| call_once(&mut inner, 7)).is_ok()
    }));
    all
}

fn floors<const TIMED: bool>(breaker: Breaker) -> Vec<Contender> {
    let breaker = Arc::new(breaker);
    let mut service = BreakerService::<_, TIMED> {
        inner: Bare,
        breaker,
    };
    let fresh = service.clone();
    let mut bare = Bare;
    vec![
        Contender::new("floor", move || call_once(&mut service, 7).is_ok()),
        Contender::new("bare service", move || call_once(&mut bare, 7).is_ok()),
        Contender::new("floor, fresh clone", move || {
            call_once(&mut fresh.clone(), 7).is_ok()
        }),
    ]
}

fn resilience() -> (
    CircuitBreakerLayer,
    tower_resilience_circuitbreaker::CircuitBreakerHandle,
) {
    CircuitBreakerLayer::builder()
        .sliding_window_size(100)
        .slow_call_duration_threshold(Duration::from_secs(1))
        .slow_call_rate_threshold(0.5)
        .wait_duration_in_open(Duration::from_secs(3600))
        .build_with_handle()
        .expect("a valid configuration")
}

/// Both clock reads: slow calls are counted.
pub fn closed_success() -> Vec<Contender> {
    let mut all = floors::<true>(Breaker::closed());
    all.extend(ours::breaker_closed_success());
    let mut peer = resilience().0.layer(Bare);
    all.push(Contender::new("tower-resilience", move || {
        call_once(&mut peer, 7).is_ok()
    }));
    let recloser = recloser::Recloser::custom().closed_len(100).build();
    all.push(Contender::new("recloser by hand, not timed", move || {
        recloser.call(|| call_once(&mut Bare, 7)).is_ok()
    }));
    let failsafe = failsafe::Config::new().build();
    all.push(Contender::new("failsafe by hand, not timed", move || {
        failsafe.call(|| call_once(&mut Bare, 7)).is_ok()
    }));
    all
}

/// No clock where nothing uses it; the floor of `closed_success` stays the measure.
pub fn closed_success_untimed() -> Vec<Contender> {
    let mut all = floors::<true>(Breaker::closed());
    let mut untimed = BreakerService::<_, false> {
        inner: Bare,
        breaker: Arc::new(Breaker::closed()),
    };
    all.push(Contender::new("floor without a clock", move || {
        call_once(&mut untimed, 7).is_ok()
    }));
    all.extend(ours::breaker_closed_success_untimed());
    all
}

pub fn open_refuse() -> Vec<Contender> {
    let mut all = floors::<true>(Breaker::open());
    all.extend(ours::breaker_open_refuse());
    let (layer, handle) = resilience();
    let mut peer = layer.layer(Bare);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(handle.force_open());
    all.push(Contender::new("tower-resilience", move || {
        call_once(&mut peer, 7).is_ok()
    }));
    all
}

/// With both clock reads, and what less a policy asks for that does not time calls.
pub fn by_hand_closed() -> Vec<Contender> {
    let floor = Breaker::closed();
    let mut all = vec![Contender::new("floor", move || {
        let started = floor.admit().map(|()| floor.now());
        started.map(|started| floor.record(false, started)).is_ok()
    })];
    all.extend(ours::breaker_by_hand_closed());
    all
}

pub fn by_hand_open() -> Vec<Contender> {
    let floor = Breaker::open();
    let mut all = vec![Contender::new("floor", move || floor.admit().is_ok())];
    all.extend(ours::breaker_by_hand_open());
    all
}
