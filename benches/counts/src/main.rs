//! `sluice-counts PATH TIMES` does one hot path so many times; without arguments, names the paths.

#[path = "../../hot_paths/paths.rs"]
mod paths;

use paths::PATHS;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, times] = &args[..] else {
        PATHS.iter().for_each(|(name, _)| println!("{name}"));
        return;
    };
    let times = times.parse().expect("a number of times");
    let (_, make) = PATHS
        .iter()
        .find(|(name, _)| name == path)
        .expect("a path of the list");
    let mut work = make();
    counted(&mut *work, times);
}

/// What `check` has counted: not the making, in which `Clock::tsc` calibrates its counter for as
/// long as that takes, another number of instructions each time.
#[inline(never)]
fn counted(work: &mut dyn FnMut(u64), times: u64) {
    work(times);
}
