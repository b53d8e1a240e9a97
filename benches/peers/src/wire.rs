//! A whole axum server under load, with and without a layer, in interleaved pairs.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_resilience_ratelimiter::{RateLimiterLayer, RateLimiterServiceError};
use tower_sluice::http::respond;
use tower_sluice::{Quota, RateLimitLayer};

use crate::load::{Load, Server};
use crate::measure::median;

/// Many short pairs: what else the machine does drifts over seconds.
const PAIRS: usize = 21;

/// What a layered server did, relative to the bare one of the same pair.
pub struct Relative {
    pub name: &'static str,
    pub rate: f64,
    pub cpu: f64,
    pub refused: f64,
    pub per_second: f64,
}

fn bare() -> Router {
    Router::new().route("/", get(async || "hello"))
}

fn client<B>(request: &Request<B>) -> IpAddr {
    let peer = request
        .extensions()
        .get::<ConnectInfo<std::net::SocketAddr>>();
    peer.expect("the server tells the peer").ip()
}

/// A quota for each client address.
fn ours(quota: Quota) -> Router {
    bare().layer(
        RateLimitLayer::keyed(quota, |request: &Request<_>| client(request)).respond_with(respond),
    )
}

fn tower_governor(nanos_per_call: u64, burst: u32) -> Router {
    let mut builder = GovernorConfigBuilder::default();
    let config = builder
        .per_nanosecond(nanos_per_call)
        .burst_size(burst)
        .finish();
    bare().layer(GovernorLayer::new(config.expect("a valid quota")))
}

/// One limit for all clients, as it has no keys; its error becomes an answer through axum's way.
fn tower_resilience(limit: usize, period: Duration) -> Router {
    let (limit, _handle) = RateLimiterLayer::builder()
        .limit_for_period(limit)
        .refresh_period(period)
        .timeout_duration(Duration::ZERO)
        .build_with_handle()
        .expect("a valid configuration");
    let answer = async |_: RateLimiterServiceError<Infallible>| StatusCode::TOO_MANY_REQUESTS;
    let layers = tower::ServiceBuilder::new()
        .layer(HandleErrorLayer::new(answer))
        .layer(limit);
    bare().layer(layers)
}

/// Few are refused, or nearly all.
pub fn compare(refusing: bool) -> Vec<Relative> {
    let (quota, nanos, burst, scarcity) = if refusing {
        (Quota::per_second(1_000).burst(1), 1_000_000, 1, 10_000)
    } else {
        (Quota::per_second(10_000_000), 100, 10_000_000, 1)
    };
    let floor = Server::start(bare());
    let layered = [
        ("tower-sluice", Server::start(ours(quota))),
        (
            "tower_governor",
            Server::start(tower_governor(nanos, burst)),
        ),
        (
            "tower-resilience",
            Server::start(tower_resilience(
                10_000_000 / scarcity,
                Duration::from_secs(1),
            )),
        ),
    ];
    layered
        .iter()
        .map(|(name, server)| pairs(name, &floor, server))
        .collect()
}

fn pairs(name: &'static str, floor: &Server, server: &Server) -> Relative {
    let loads: Vec<(Load, Load)> = (0..PAIRS).map(|_| (floor.load(), server.load())).collect();
    let over = |of: fn(&(Load, Load)) -> f64| median(loads.iter().map(of).collect());
    Relative {
        name,
        rate: over(|(bare, ours)| ours.per_second / bare.per_second),
        cpu: over(|(bare, ours)| ours.server_us_per_request / bare.server_us_per_request),
        refused: over(|(_, ours)| ours.refused),
        per_second: over(|(_, ours)| ours.per_second),
    }
}
