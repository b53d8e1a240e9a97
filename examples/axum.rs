//! The main job: both layers in front of a real server, and what its clients see.
//!
//! `cargo run --example axum` tells one story and ends. A shop's server on loopback has two
//! routes: `/quote`, where each client has a limit, and `/stock`, which asks a second server that
//! turns slow, then fails, then recovers; a circuit breaker stands in front of it. A real HTTP
//! client opens a connection for each request. The layers' clock is moved by hand, so the story
//! takes no time and is the same in every run.
//!
//! `cargo run --example axum -- --serve [ADDR]` keeps serving on real time, to be tried with curl.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::routing::{get, put};
use tokio::net::TcpListener;
use tower_sluice::circuit_breaker::{CircuitEvent, CircuitEventKind, CircuitState};
use tower_sluice::clock::{Clock, ManualClock};
use tower_sluice::http::{RateHeaders, StatusClassifier, header, or_shared, respond};
use tower_sluice::rate_limit::Hashed;
use tower_sluice::{
    CircuitBreaker, CircuitBreakerLayer, CircuitPolicy, KeyedRateLimiter, Quota, RateLimitLayer,
};

const SLOW: Duration = Duration::from_millis(200);
const SLOW_ANSWER: Duration = Duration::from_millis(300);

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        None => story().await,
        Some("--serve") => {
            let address = args.next().unwrap_or_else(|| "127.0.0.1:3000".to_owned());
            serve(&address).await;
        }
        Some(other) => {
            eprintln!("unknown argument {other}; usage: axum [--serve [ADDR]]");
            std::process::exit(2);
        }
    }
}

/// The second server's health, and how its slowness passes.
#[derive(Clone)]
struct Stock {
    mode: Arc<AtomicU8>,
    time: Option<ManualClock>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Healthy,
    Slow,
    Failing,
}

impl Stock {
    fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    async fn answer(State(stock): State<Self>) -> (StatusCode, &'static str) {
        match stock.mode.load(Ordering::Relaxed) {
            mode if mode == Mode::Failing as u8 => (StatusCode::INTERNAL_SERVER_ERROR, "broken\n"),
            mode if mode == Mode::Slow as u8 => {
                match &stock.time {
                    Some(time) => time.advance(SLOW_ANSWER),
                    None => tokio::time::sleep(SLOW_ANSWER).await,
                }
                (StatusCode::OK, "7 left, I think\n")
            }
            _ => (StatusCode::OK, "7 left\n"),
        }
    }
}

/// What stands in front of the two routes.
struct Guards {
    clients: KeyedRateLimiter<Hashed<Option<HeaderValue>>>,
    breaker: CircuitBreaker,
}

impl Guards {
    fn new(clock: impl Into<Clock>) -> Self {
        let clock = clock.into();
        let clients = KeyedRateLimiter::builder(Quota::per_second(3))
            .name("quotes")
            .clock(clock.clone())
            .build()
            .expect("three a second is a valid quota");
        let policy = CircuitPolicy::builder()
            .consecutive(3)
            .slow_threshold(SLOW)
            .open_for(Duration::from_secs(2))
            .open_jitter(0.0)
            .probes(1)
            .build()
            .expect("the policy is valid");
        let breaker = CircuitBreaker::builder("stock", policy)
            .clock(clock)
            .on_event(tell_transition)
            .build();
        Self { clients, breaker }
    }
}

fn tell_transition(event: &CircuitEvent) {
    if let CircuitEventKind::Transition { transition, .. } = &event.kind {
        println!(
            "         the circuit goes from {} to {}: {}",
            transition.from, transition.to, transition.reason
        );
    }
}

/// The server under protection. Each route's layer is all that the protection takes.
fn shop(guards: &Guards, stock_at: SocketAddr, stock: Stock) -> Router {
    // Clients without a key share one limit.
    let by_key = or_shared(header(HeaderName::from_static("x-api-key")));
    let each_client = RateLimitLayer::keyed(guards.clients.clone(), by_key)
        .headers(RateHeaders::new().draft_11("quotes"));
    let guarded =
        CircuitBreakerLayer::from(guards.breaker.clone()).classify(StatusClassifier::default());

    let client = http_client();
    let ask_stock = async move || match client.get(format!("http://{stock_at}/")).send().await {
        Ok(answer) if answer.status().is_success() => {
            (StatusCode::OK, answer.text().await.unwrap_or_default())
        }
        _ => (
            StatusCode::BAD_GATEWAY,
            "the stock server is unwell\n".to_owned(),
        ),
    };

    Router::new()
        .route(
            "/quote",
            get(async || "9.99\n").layer(each_client.respond_with(respond)),
        )
        .route(
            "/stock",
            get(ask_stock).layer(guarded.respond_with(respond)),
        )
        .route("/stock/{mode}", put(switch).with_state(stock))
}

async fn switch(
    State(stock): State<Stock>,
    Path(mode): Path<String>,
) -> Result<String, StatusCode> {
    let mode = match mode.as_str() {
        "healthy" => Mode::Healthy,
        "slow" => Mode::Slow,
        "failing" => Mode::Failing,
        _ => return Err(StatusCode::NOT_FOUND),
    };
    stock.set(mode);
    Ok(format!("the stock server is {mode:?} now\n"))
}

/// A client that opens a connection for each request, as many clients would.
fn http_client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(0)
        .build()
        .expect("a plain client")
}

/// Serves on a port of the system's choice. `axum::serve` puts the layers into a new service for
/// each connection; what they know is shared all the same.
async fn spawn(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        axum::serve(listener, router)
            .await
            .expect("the server runs")
    });
    address
}

async fn spawn_stock(time: Option<ManualClock>) -> (SocketAddr, Stock) {
    let stock = Stock {
        mode: Arc::new(AtomicU8::new(Mode::Healthy as u8)),
        time,
    };
    let router = Router::new()
        .route("/", get(Stock::answer))
        .with_state(stock.clone());
    (spawn(router).await, stock)
}

async fn serve(address: &str) {
    let (stock_at, stock) = spawn_stock(None).await;
    let router = shop(&Guards::new(Clock::tokio()), stock_at, stock);
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("cannot serve on {address}: {error}");
            std::process::exit(1);
        }
    };
    let address = listener.local_addr().expect("it is bound");
    println!("serving on http://{address}; try");
    println!("  curl -i -H 'x-api-key: me' http://{address}/quote");
    println!("  curl -i http://{address}/stock");
    println!("  curl -X PUT http://{address}/stock/slow    (or failing, healthy)");
    axum::serve(listener, router)
        .await
        .expect("the server runs");
}

/// The visitor of the story: asks, prints what comes back, and hands on the status.
struct Visitor {
    time: ManualClock,
    client: reqwest::Client,
    shop: SocketAddr,
}

impl Visitor {
    async fn get(&self, who: &str, path: &str) -> (u16, Option<String>) {
        let url = format!("http://{}{path}", self.shop);
        let request = self.client.get(url).header("x-api-key", who);
        let answer = request.send().await.expect("the shop answers");
        let status = answer.status().as_u16();
        let header = |name| {
            let value = answer.headers().get(name)?;
            Some(value.to_str().expect("ASCII").to_owned())
        };
        let (retry_after, standing) = (header("retry-after"), header("ratelimit"));
        let at = Duration::from(self.time.now()).as_secs_f64();
        print!("{at:6.1} s {who} GET {path}: {status}");
        for (name, value) in [("Retry-After", &retry_after), ("RateLimit", &standing)] {
            if let Some(value) = value {
                print!(", {name}: {value}");
            }
        }
        println!();
        (status, retry_after)
    }

    async fn statuses(&self, who: &str, path: &str, times: usize) -> Vec<u16> {
        let mut statuses = Vec::new();
        for _ in 0..times {
            statuses.push(self.get(who, path).await.0);
        }
        statuses
    }
}

async fn story() {
    let time = Clock::manual();
    let guards = Guards::new(&time);
    let (stock_at, stock) = spawn_stock(Some(time.clone())).await;
    let visitor = Visitor {
        time: time.clone(),
        client: http_client(),
        shop: spawn(shop(&guards, stock_at, stock.clone())).await,
    };
    each_client_has_a_limit(&visitor).await;
    the_circuit_opens_and_recovers(&visitor, &guards.breaker, &stock).await;
    println!("\nall as it should be");
}

async fn each_client_has_a_limit(visitor: &Visitor) {
    println!("-- /quote may be asked 3 times a second by each client, whatever its connections");
    assert_eq!(
        visitor.statuses("ann", "/quote", 5).await,
        [200, 200, 200, 429, 429]
    );
    assert_eq!(
        visitor.get("bob", "/quote").await.0,
        200,
        "bob has a limit of his own"
    );
    let (_, wait) = visitor.get("ann", "/quote").await;
    assert_eq!(
        wait.as_deref(),
        Some("1"),
        "a third of a second, rounded up"
    );
    println!("-- a second later");
    visitor.time.advance(Duration::from_secs(1));
    assert_eq!(
        visitor.statuses("ann", "/quote", 4).await,
        [200, 200, 200, 429]
    );
}

async fn the_circuit_opens_and_recovers(
    visitor: &Visitor,
    breaker: &CircuitBreaker,
    stock: &Stock,
) {
    println!("-- /stock asks another server, which is well");
    assert_eq!(visitor.statuses("ann", "/stock", 2).await, [200, 200]);

    println!("-- it turns slow: 3 slow answers in a row open the circuit");
    stock.set(Mode::Slow);
    assert_eq!(visitor.statuses("ann", "/stock", 3).await, [200, 200, 200]);
    assert_eq!(breaker.state(), CircuitState::Open);
    assert_eq!(
        visitor.get("ann", "/stock").await,
        (503, Some("2".to_owned())),
        "refused, unasked"
    );

    println!("-- then it fails: the probe after the open time opens it again, for twice as long");
    stock.set(Mode::Failing);
    visitor.time.advance(Duration::from_secs(2));
    assert_eq!(visitor.statuses("ann", "/stock", 2).await, [502, 503]);
    assert_eq!(
        visitor.get("bob", "/stock").await,
        (503, Some("4".to_owned()))
    );

    println!("-- then it recovers: the next probe closes the circuit");
    stock.set(Mode::Healthy);
    visitor.time.advance(Duration::from_secs(4));
    assert_eq!(visitor.statuses("ann", "/stock", 3).await, [200, 200, 200]);
    assert_eq!(breaker.state(), CircuitState::Closed);

    let snapshot = breaker.snapshot();
    assert_eq!(
        snapshot.trips, 2,
        "once for slowness, once for the failed probe"
    );
    println!("   {snapshot}");
}
