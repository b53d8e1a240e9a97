//! Limits: as handles, by key, and as layers.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::MonotonicClock;
use tower::ServiceExt;
use tower_layer::Layer;
use tower_resilience_ratelimiter::RateLimiterLayer;
use tower_service::Service;

use crate::drive::call_once;
use crate::floors::{Bare, KeyedLimit, Limit, LimitService};
use crate::measure::Contender;
use crate::ours;

/// A burst that no run spends …
pub const PLENTY: u32 = 900_000_000;
/// … at a rate so slow that no key is like new again within a run.
pub const INTERVAL: Duration = Duration::from_secs(1);

pub fn plenty() -> governor::Quota {
    let quota = governor::Quota::with_period(INTERVAL).expect("not zero");
    quota.allow_burst(NonZeroU32::new(PLENTY).expect("not zero"))
}

pub fn plenty_floor() -> Limit {
    Limit::new(INTERVAL, u64::from(PLENTY))
}

/// The first call of an hour spends it and all others are refused.
fn hourly() -> governor::Quota {
    governor::Quota::per_hour(NonZeroU32::MIN)
}

fn direct(floor: Limit, quota: governor::Quota, ours: Vec<Contender>) -> Vec<Contender> {
    let counter = governor::RateLimiter::direct(quota);
    let instant = governor::RateLimiter::direct_with_clock(quota, MonotonicClock);
    let mut all = vec![Contender::new("floor", move || floor.check().is_ok())];
    all.extend(ours);
    all.push(Contender::new("governor, `Instant`", move || {
        instant.check().is_ok()
    }));
    all.push(Contender::new("governor, counter", move || {
        counter.check().is_ok()
    }));
    all
}

pub fn direct_allow() -> Vec<Contender> {
    let floor = plenty_floor();
    direct(floor, plenty(), ours::limit_allow())
}

pub fn direct_refuse() -> Vec<Contender> {
    direct(Limit::spent(), hourly(), ours::limit_refuse())
}

/// Picks the next of so many keys.
pub type Draw = fn(&mut fastrand::Rng, u64) -> u64;

/// The same keys in the same order for every contender of a table.
pub fn drawn(keys: u64, draw: Draw) -> impl FnMut() -> u64 {
    let mut rng = fastrand::Rng::with_seed(7);
    move || draw(&mut rng, keys)
}

pub fn keyed(keys: u64, draw: Draw) -> Vec<Contender> {
    let floor = KeyedLimit::new(plenty_floor(), keys as usize);
    let governor = governor::RateLimiter::dashmap(plenty());
    let instant = governor::RateLimiter::dashmap_with_clock(plenty(), MonotonicClock);
    for key in 0..keys {
        let _ = (
            floor.check(key),
            governor.check_key(&key),
            instant.check_key(&key),
        );
    }
    let next = || drawn(keys, draw);
    let mut all = vec![Contender::over("floor", next(), move |key| {
        floor.check(*key).is_ok()
    })];
    all.extend(ours::keyed_allow(keys, draw));
    all.push(Contender::over("governor, `Instant`", next(), move |key| {
        instant.check_key(key).is_ok()
    }));
    all.push(Contender::over("governor, counter", next(), move |key| {
        governor.check_key(key).is_ok()
    }));
    all
}

pub fn keyed_strings(keys: u64, draw: Draw) -> Vec<Contender> {
    let floor = KeyedLimit::new(plenty_floor(), keys as usize);
    let governor = governor::RateLimiter::dashmap_with_clock(plenty(), MonotonicClock);
    for key in 0..keys {
        let _ = (floor.check(key), governor.check_key(&string_key(key)));
    }
    let strings = || strings_drawn(keys, draw);
    let mut all = vec![Contender::over(
        "floor (integer keys)",
        drawn(keys, draw),
        move |key| floor.check(*key).is_ok(),
    )];
    all.extend(ours::keyed_strings_allow(keys, strings()));
    all.push(Contender::over(
        "governor, `Instant`",
        strings(),
        move |key: &Rc<String>| governor.check_key(key).is_ok(),
    ));
    all
}

/// As `drawn`. Few keys are the same strings again and again; of many each is made anew, as a
/// request's key was just read off its socket, while one out of a million would have to be fetched
/// from memory first.
fn strings_drawn(keys: u64, draw: Draw) -> impl FnMut() -> Rc<String> {
    let few = if keys <= 10_000 { keys } else { 0 };
    let few: Vec<Rc<String>> = (0..few).map(|key| Rc::new(string_key(key))).collect();
    let mut next = drawn(keys, draw);
    move || {
        let key = next();
        let known = few.get(key as usize).cloned();
        known.unwrap_or_else(|| Rc::new(string_key(key)))
    }
}

/// A key of 40 bytes.
pub fn string_key(key: u64) -> String {
    format!("customer-{key:031}")
}

pub fn uniform(rng: &mut fastrand::Rng, keys: u64) -> u64 {
    rng.u64(..keys)
}

/// Zipf with exponent 1, by inversion: rank r with probability about 1/r.
pub fn zipf(rng: &mut fastrand::Rng, keys: u64) -> u64 {
    let rank = (keys as f64).powf(rng.f64());
    (rank as u64).clamp(1, keys) - 1
}

fn resilience(limit: usize, period: Duration) -> RateLimiterLayer {
    let (layer, _handle) = RateLimiterLayer::builder()
        .limit_for_period(limit)
        .refresh_period(period)
        .timeout_duration(Duration::ZERO)
        .build_with_handle()
        .expect("a valid configuration");
    layer
}

fn layers(floor: Limit, peer: RateLimiterLayer, ours: Vec<Contender>) -> Vec<Contender> {
    let limit = Arc::new(floor);
    let mut floor = LimitService { inner: Bare, limit };
    let fresh = floor.clone();
    let mut bare = Bare;
    let mut peer = peer.layer(Bare);
    let mut all = vec![
        Contender::new("floor", move || call_once(&mut floor, 7).is_ok()),
        Contender::new("bare service", move || call_once(&mut bare, 7).is_ok()),
        Contender::new("floor, fresh clone", move || {
            call_once(&mut fresh.clone(), 7).is_ok()
        }),
    ];
    all.extend(ours);
    all.push(Contender::new("tower-resilience", move || {
        call_once(&mut peer, 7).is_ok()
    }));
    all
}

pub fn layer_allow() -> Vec<Contender> {
    let floor = plenty_floor();
    let mut all = layers(
        floor,
        resilience(usize::MAX / 2, Duration::from_secs(3600)),
        ours::limit_layer_allow(),
    );
    let mut tower = tower::limit::RateLimit::new(
        Bare,
        tower::limit::rate::Rate::new(u64::MAX, Duration::from_secs(3600)),
    );
    all.push(Contender::new("tower RateLimit (one owner)", move || {
        call_once(&mut tower, 7).is_ok()
    }));
    all.push(buffered());
    let mut concurrency = tower::limit::ConcurrencyLimit::new(Bare, 1024);
    all.push(Contender::new("tower ConcurrencyLimit", move || {
        call_once(&mut concurrency, 7).is_ok()
    }));
    all
}

/// The one way to share tower's limit, with its worker on the same thread.
fn buffered() -> Contender {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime can be built");
    let rate = tower::limit::rate::Rate::new(u64::MAX, Duration::from_secs(3600));
    let limit = tower::limit::RateLimit::new(Bare, rate);
    let mut buffer = runtime.block_on(async { tower::buffer::Buffer::new(limit, 1024) });
    Contender::in_batches("tower Buffer + RateLimit", move |times| {
        runtime.block_on(async {
            for n in 0..times {
                let ready = buffer.ready().await.expect("the worker runs");
                let _ = std::hint::black_box(ready.call(n).await);
            }
        });
    })
}

pub fn layer_refuse() -> Vec<Contender> {
    let mut peer = resilience(1, Duration::from_secs(3600));
    let mut all = layers(
        Limit::spent(),
        std::mem::replace(&mut peer, resilience(1, Duration::from_secs(3600))),
        ours::limit_layer_refuse(),
    );
    let rate = tower::limit::rate::Rate::new(1, Duration::from_secs(3600));
    let mut shed = tower::load_shed::LoadShed::new(tower::limit::RateLimit::new(Bare, rate));
    all.push(Contender::new(
        "tower LoadShed + RateLimit (one owner)",
        move || call_once(&mut shed, 7).is_ok(),
    ));
    all
}
