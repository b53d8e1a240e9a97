//! Instructions per call: each contender runs once more in a process of its own under callgrind.

use std::process::{Command, Stdio};

use crate::measure::Contender;

const WARM_UP: u64 = 1_000;
const CALLS: u64 = 10_000;

/// The argument that makes this program run one contender: `--count TABLE CONTENDER`.
pub const ARGUMENT: &str = "--count";

/// How many instructions a call takes; `None` without valgrind.
///
/// A clock read counts its wrapper only: under valgrind the kernel reads the clock.
pub fn per_call(table: usize, contender: usize) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([
            "--collect-atstart=no",
            "--toggle-collect=*Contender*counted*",
        ])
        .arg(program)
        .args([ARGUMENT, &table.to_string(), &contender.to_string()])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let told = String::from_utf8(output.stderr).ok()?;
    let (_, collected) = told.split_once("Collected : ")?;
    let all: u64 = collected.split_whitespace().next()?.parse().ok()?;
    Some(all / (WARM_UP + CALLS))
}

/// The other side: what the process under callgrind does.
pub fn run(mut contender: Contender) {
    contender.run(WARM_UP);
    contender.run(CALLS);
}
