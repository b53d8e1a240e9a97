//! A limit on a gRPC server and a breaker on the client's channel, over real sockets.
//!
//! `cargo run --example tonic`
//!
//! The server is tonic's health service. A stream counts as one call, which ends with its trailers
//! or when its caller leaves it. The server refuses what is over its limit in gRPC's own terms;
//! then it goes away, the channel's circuit opens, and closes again when the server is back. The
//! layers' clock is moved by hand, so the run takes no time.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::runtime::Runtime;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::HealthReporter;
use tower::ServiceBuilder;
use tower_sluice::circuit_breaker::{CircuitEvent, CircuitEventKind, CircuitState};
use tower_sluice::grpc::{self, CodeClassifier};
use tower_sluice::{
    CircuitBreaker, CircuitBreakerLayer, CircuitPolicy, Quota, RateLimitLayer, RateLimiter,
};

#[tokio::main]
async fn main() {
    let time = tower_sluice::clock::Clock::manual();
    let limiter = RateLimiter::builder(Quota::per_second(4))
        .name("checks")
        .clock(&time)
        .build()
        .expect("a valid quota");
    let policy = CircuitPolicy::builder()
        .consecutive(3)
        .open_for(Duration::from_secs(5))
        .open_jitter(0.0)
        .probes(1)
        .build()
        .expect("a valid policy");
    let breaker = CircuitBreaker::builder("health", policy)
        .clock(&time)
        .on_event(tell_end)
        .build();

    let anywhere = "127.0.0.1:0".parse().expect("an address");
    let (address, server, mut reporter) = serve(anywhere, &limiter);
    let channel = Endpoint::from_shared(format!("http://{address}"))
        .expect("a URI")
        .connect_lazy();
    let guarded = ServiceBuilder::new()
        .layer(
            CircuitBreakerLayer::from(breaker.clone())
                .classify(CodeClassifier::default())
                // gRPC tells how a call went in its trailers, at the end of the body.
                .until_body_end()
                .respond_with(grpc::respond),
        )
        .service(channel);
    // Still a `GrpcService`: a generated client takes it.
    let mut client = HealthClient::new(guarded);

    println!("a stream is one call, from its first byte to its trailers");
    let watching = client.watch(HealthCheckRequest::default()).await;
    let mut health = watching.expect("the server is well").into_inner();
    let first = health
        .message()
        .await
        .expect("no error")
        .expect("one message");
    println!("  the server is {:?}", first.status());
    time.advance(Duration::from_secs(3));
    reporter.clear_service_status("").await;
    let end = health.message().await.expect("its status is ok");
    assert!(end.is_none(), "the trailers, and no further message");
    reporter
        .set_service_status("", ServingStatus::Serving)
        .await;

    let mut check = async || {
        let answer = client.check(HealthCheckRequest::default()).await;
        tell(answer.as_ref().map(|_| ()))
    };

    println!("the server allows 4 checks a second");
    for _ in 0..4 {
        assert_eq!(check().await, Code::Ok);
    }
    for _ in 0..3 {
        assert_eq!(check().await, Code::ResourceExhausted);
    }
    assert_eq!(
        breaker.state(),
        CircuitState::Closed,
        "a refusal is not the host's failure"
    );

    println!("the server goes away; 3 failures open the circuit");
    time.advance(Duration::from_secs(1));
    // Waits until the server's tasks and sockets are gone.
    tokio::task::block_in_place(|| drop(server));
    while breaker.state() == CircuitState::Closed {
        assert_ne!(check().await, Code::Ok, "nobody is there");
    }
    println!("the circuit is open: refused on this side, the network is left alone");
    assert_eq!(check().await, Code::Unavailable);

    println!("the server is back, and the open time is over");
    let (_, server, _reporter) = serve(address, &limiter);
    time.advance(Duration::from_secs(5));
    assert_eq!(check().await, Code::Ok, "the probe");
    assert_eq!(breaker.state(), CircuitState::Closed);
    server.shutdown_background();
}

/// Serves tonic's health service behind the limit, on a runtime of its own: shutting that down
/// breaks the connections too, as the end of a process would.
fn serve(address: SocketAddr, limiter: &RateLimiter) -> (SocketAddr, Runtime, HealthReporter) {
    let runtime = Runtime::new().expect("a runtime can be built");
    let entered = runtime.enter();
    let incoming = TcpIncoming::bind(address).expect("loopback has a free port");
    let address = incoming.local_addr().expect("it is bound");
    let (reporter, health) = tonic_health::server::health_reporter();
    let limit = RateLimitLayer::from(limiter.clone()).respond_with(grpc::respond);
    let server = Server::builder().layer(limit).add_service(health);
    runtime.spawn(server.serve_with_incoming(incoming));
    drop(entered);
    (address, runtime, reporter)
}

/// Tells of calls that went on after the head of their answer.
fn tell_end(event: &CircuitEvent) {
    if let CircuitEventKind::Completed {
        end,
        elapsed,
        to_head: Some(to_head),
        ..
    } = &event.kind
    {
        println!("  {end}: head after {to_head:?}, end after {elapsed:?}");
    }
}

fn tell(answer: Result<(), &Status>) -> Code {
    match answer {
        Ok(()) => {
            println!("  ok");
            Code::Ok
        }
        Err(status) => {
            let pushback = status.metadata().get("grpc-retry-pushback-ms");
            let pushback = pushback.and_then(|ms| ms.to_str().ok());
            let wait = pushback.map(|ms| format!(" (try again after {ms} ms)"));
            println!(
                "  {:?}: {}{}",
                status.code(),
                status.message(),
                wait.unwrap_or_default()
            );
            status.code()
        }
    }
}
