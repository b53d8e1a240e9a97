//! Clients that nobody here wrote: curl, and Python's grpcio.
//!
//! Skipped with a message where one is missing, unless `SLUICE_REQUIRE_EXTERNAL=1`.

use std::net::SocketAddr;
use std::process::{Command, Output};

use axum::Router;
use axum::routing::get;
use tower_sluice::clock::Clock;
use tower_sluice::http as sluice;
use tower_sluice::rate_limit::{Quota, RateLimitLayer};

use crate::over::serve;

/// What `command` printed, or `None` where the tool is not there and need not be.
async fn output(mut command: Command) -> Option<String> {
    let tool = command.get_program().to_owned();
    let ran = tokio::task::spawn_blocking(move || command.output()).await;
    let missing = match ran.expect("no panic") {
        Ok(Output { status, stdout, .. }) if status.success() => {
            return Some(String::from_utf8(stdout).expect("text"));
        }
        Ok(Output { stderr, .. }) => String::from_utf8_lossy(&stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let required = std::env::var_os("SLUICE_REQUIRE_EXTERNAL").is_some_and(|value| value == "1");
    assert!(!required, "{tool:?} is required: {missing}");
    eprintln!("skipped: {tool:?} does not run: {missing}");
    None
}

fn curl(protocol: &str, address: SocketAddr) -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--include", "--noproxy", "*"]);
    curl.args(["--max-time", "20", protocol, &format!("http://{address}/")]);
    curl
}

#[tokio::test]
async fn curl_reads_statuses_and_headers_of_refusals() {
    for protocol in ["--http1.1", "--http2-prior-knowledge"] {
        let limit = RateLimitLayer::new(Quota::per_minute(2))
            .clock(Clock::manual())
            .headers(sluice::RateHeaders::new().draft_11("api").three_fields())
            .respond_with(sluice::Responder::new().problem_details());
        let address = serve(Router::new().route("/", get(async || "hello")).layer(limit)).await;

        let Some(admitted) = output(curl(protocol, address)).await else {
            return;
        };
        let admitted = admitted.to_ascii_lowercase();
        assert!(admitted.contains(" 200"), "{admitted}");
        assert!(
            admitted.contains("ratelimit-remaining: 1\r\n"),
            "{admitted}"
        );
        assert!(
            admitted.contains("ratelimit: \"api\";r=1;t=30\r\n"),
            "{admitted}"
        );
        output(curl(protocol, address))
            .await
            .expect("curl is there");

        let refused = output(curl(protocol, address))
            .await
            .expect("curl is there");
        assert!(refused.contains(" 429"), "{refused}");
        let head = refused.to_ascii_lowercase();
        assert!(head.contains("retry-after: 30\r\n"), "{head}");
        assert!(
            head.contains("ratelimit-policy: \"api\";q=2;w=60\r\n"),
            "{head}"
        );
        assert!(
            head.contains("content-type: application/problem+json\r\n"),
            "{head}"
        );
        assert!(refused.contains(r#""status":429"#), "{refused}");
    }
}

/// Calls twice and prints what grpcio and Google's own decoder make of the second answer.
const GRPC_CLIENT: &str = r#"
import sys
import grpc
from grpc_status import rpc_status
from google.rpc import error_details_pb2

with grpc.insecure_channel(sys.argv[1]) as channel:
    unary = channel.unary_unary("/raw.Raw/1/0")
    assert unary(b"hello", timeout=20) == b"\x00"
    for call in (unary, channel.unary_stream("/raw.Raw/1/0")):
        try:
            answer = call(b"hello", timeout=20)
            list(answer)
            print("not refused")
        except grpc.RpcError as error:
            metadata = dict(error.trailing_metadata())
            status = rpc_status.from_call(error)
            info = error_details_pb2.RetryInfo()
            assert status.details[0].Unpack(info)
            print(error.code().name, "|", error.details())
            print(metadata["grpc-retry-pushback-ms"], info.retry_delay.ToMilliseconds())
"#;

#[tokio::test]
async fn grpcio_reads_codes_messages_and_retry_info_of_refusals() {
    let limit = RateLimitLayer::new(Quota::per_minute(1))
        .named("größe")
        .clock(Clock::manual())
        .respond_with(tower_sluice::grpc::respond);
    let address = crate::raw_grpc::serve(limit).await;
    let python = std::env::var_os("SLUICE_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(python);
    command.args(["-c", GRPC_CLIENT, &address.to_string()]);
    for proxy in ["http_proxy", "https_proxy", "grpc_proxy", "all_proxy"] {
        command.env_remove(proxy).env_remove(proxy.to_uppercase());
    }
    let Some(printed) = output(command).await else {
        return;
    };
    let refusal = "RESOURCE_EXHAUSTED | rate limited by größe, retry after 60s\n60000 60000\n";
    assert_eq!(printed, refusal.repeat(2));
}
