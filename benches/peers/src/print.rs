//! Everything that is measured, as Markdown.

use crate::instructions;
use crate::measure::{Cost, compare};
use crate::tables::TABLES;
use crate::{keys, threads, wire};

/// A path and what each contender cost on it.
pub type Ratios = Vec<(&'static str, Vec<Cost>)>;

/// Prints the tables whose names are wanted.
pub fn tables(wanted: impl Fn(&str) -> bool) -> Ratios {
    let mut ratios = Vec::new();
    for (number, (name, make)) in TABLES.iter().enumerate() {
        if !wanted(name) {
            continue;
        }
        println!("\n**{name}**\n");
        println!(
            "| contender | ns (median) | ns (least) | × floor | instructions | allocations | bytes |"
        );
        println!("|---|---|---|---|---|---|---|");
        let costs = compare(&mut make());
        for (contender, cost) in costs.iter().enumerate() {
            // A million keys take long to bring in there, and no other instructions than a thousand.
            let counted = (!name.contains("1,000,000"))
                .then(|| instructions::per_call(number, contender))
                .flatten();
            println!(
                "| {} | {:.1} | {:.1} | {:.2} | {} | {} | {} |",
                cost.name,
                cost.median_ns,
                cost.least_ns,
                cost.ratio,
                counted.map_or("–".to_owned(), |count| count.to_string()),
                cost.allocations,
                cost.bytes
            );
        }
        ratios.push((*name, costs));
    }
    ratios
}

/// One line a path: this crate, and each peer behind it.
pub fn summary(ratios: &Ratios) {
    println!("\n**In short: time over the floor's in the same round**\n");
    println!("| path | tower-sluice | peers |");
    println!("|---|---|---|");
    for (path, costs) in ratios {
        let is_ours = |cost: &&Cost| cost.name.starts_with("tower-sluice");
        let is_peer = |cost: &&Cost| {
            let floors = ["floor", "bare", "by hand", "tower-sluice"];
            !floors.iter().any(|floor| cost.name.starts_with(floor))
        };
        let ours = costs
            .iter()
            .find(is_ours)
            .map_or(f64::NAN, |cost| cost.ratio);
        let peers: Vec<String> = costs
            .iter()
            .filter(is_peer)
            .map(|cost| format!("{} {:.2}", cost.name, cost.ratio))
            .collect();
        println!("| {path} | {ours:.2} | {} |", peers.join(", "));
    }
}

pub fn keys() {
    println!("\n**a million keys**\n");
    println!("| store | bytes per key, all in | first sight of a key, ns | a full sweep, ms |");
    println!("|---|---|---|---|");
    for store in keys::stores() {
        println!(
            "| {} | {:.1} | {:.0} | {:.1} |",
            store.name, store.bytes_per_key, store.first_sight_ns, store.sweep_ms
        );
    }
    println!("\n| a known key of 100,000, two clock reads included | median ns | p99 ns |");
    println!("|---|---|---|");
    let meanwhile = ["nothing", "asks for known keys", "floods with new ones"];
    for (other, known) in meanwhile.into_iter().zip(keys::flood()) {
        println!(
            "| another thread: {other} | {} | {} |",
            known.median_ns, known.p99_ns
        );
    }
}

pub fn threads() {
    println!("\n**two threads over one**\n\n| path | × one thread |\n|---|---|");
    for (path, ratio) in threads::scalings() {
        println!("| {path} | {ratio:.2} |");
    }
}

pub fn accuracy() {
    println!("\n**two threads ask as fast as they can for 5 s**\n");
    println!("| limit, burst a tenth of it | admitted over the promise | most in a second |");
    println!("|---|---|---|");
    for rate in [1_000, 700_000] {
        let (share, most) = threads::accuracy(rate);
        println!("| {rate} a second | {share:.5} | {most} |");
    }
}

pub fn wire() {
    for refusing in [false, true] {
        let traffic = if refusing {
            "nearly all refused"
        } else {
            "all allowed"
        };
        println!("\n**axum server, {traffic}**\n");
        println!("| layer | requests/s | × bare | server CPU × bare | refused |");
        println!("|---|---|---|---|---|");
        for row in wire::compare(refusing) {
            println!(
                "| {} | {:.0} | {:.3} | {:.3} | {:.1} % |",
                row.name,
                row.per_second,
                row.rate,
                row.cpu,
                row.refused * 100.0
            );
        }
    }
}
