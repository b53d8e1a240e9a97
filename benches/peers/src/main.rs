//! One command makes the whole table: see the manifest.

mod breakers;
mod drive;
mod floors;
mod http_calls;
mod limits;
mod load;
mod measure;
mod ours;
mod threads;
mod wire;

use measure::{Contender, compare};

fn main() {
    // Peers that hold a timer want a runtime to be entered, though none of them is run by it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime can be built");
    let _entered = runtime.enter();
    let tables: Vec<(&str, fn() -> Vec<Contender>)> = vec![
        ("limiter, allow", limits::direct_allow),
        ("limiter, refuse", limits::direct_refuse),
        ("limiter, 1 key", || limits::keyed(1, limits::uniform)),
        ("limiter, 1,000 keys, uniform", || {
            limits::keyed(1_000, limits::uniform)
        }),
        ("limiter, 1,000 keys, Zipf", || {
            limits::keyed(1_000, limits::zipf)
        }),
        ("limiter, 1,000 string keys", || {
            limits::keyed_strings(1_000, limits::uniform)
        }),
        ("limiter, 1,000,000 keys, uniform", || {
            limits::keyed(1_000_000, limits::uniform)
        }),
        ("limiter, 1,000,000 string keys", || {
            limits::keyed_strings(1_000_000, limits::uniform)
        }),
        ("limit layer, allow", limits::layer_allow),
        ("limit layer, refuse", limits::layer_refuse),
        ("HTTP limit, allow", http_calls::allow),
        ("HTTP limit, refuse with Retry-After", http_calls::refuse),
        (
            "breaker layer, closed, success, elapsed recorded",
            breakers::closed_success,
        ),
        (
            "breaker layer, closed, success, nothing uses time",
            breakers::closed_success_untimed,
        ),
        ("breaker layer, open, refusal", breakers::open_refuse),
    ];
    for (name, make) in tables {
        println!("\n**{name}**\n");
        println!("| contender | ns (median) | ns (least) | × floor | allocations | bytes |");
        println!("|---|---|---|---|---|---|");
        for cost in compare(&mut make()) {
            println!(
                "| {} | {:.1} | {:.1} | {:.2} | {} | {} |",
                cost.name, cost.median_ns, cost.least_ns, cost.ratio, cost.allocations, cost.bytes
            );
        }
    }
    println!("\n**two threads over one**\n\n| path | × one thread |\n|---|---|");
    for (path, ratio) in threads::scalings() {
        println!("| {path} | {ratio:.2} |");
    }
    let (share, most) = threads::accuracy();
    println!(
        "\n1,000 a second, two threads, 5 s: {share:.4} of the promise, at most {most} in a second"
    );
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
