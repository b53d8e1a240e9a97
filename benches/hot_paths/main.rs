//! `cargo bench --features quanta`: the time of each hot path, a thousand calls at a time.
//!
//! For a change against the code before it, on one machine. The dev-dependencies switch on tokio's
//! `test-util`, which makes a clock read dearer; `benches/peers` measures without it.

mod paths;

use divan::counter::ItemsCount;

const CALLS: u64 = 1_000;

fn main() {
    divan::main();
}

fn names() -> impl Iterator<Item = &'static str> {
    paths::PATHS.iter().map(|(name, _)| *name)
}

#[divan::bench(args = names())]
fn path(bencher: divan::Bencher<'_, '_>, name: &str) {
    let mut paths = paths::PATHS.iter();
    let (_, make) = paths.find(|path| path.0 == name).expect("one of the names");
    let mut work = make();
    bencher
        .counter(ItemsCount::new(CALLS))
        .bench_local(|| work(CALLS));
}
