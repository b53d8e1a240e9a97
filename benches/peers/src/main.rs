//! One command makes the whole table: see the manifest.

mod breakers;
mod drive;
mod floors;
mod http_calls;
mod instructions;
mod keys;
mod limits;
mod load;
mod measure;
mod ours;
mod print;
mod tables;
mod threads;
mod wire;

use tables::TABLES;

fn main() {
    // Peers that hold a timer want a runtime to be entered, though none of them is run by it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime can be built");
    let _entered = runtime.enter();
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [] => all(),
        [argument, table, contender] if argument == instructions::ARGUMENT => {
            let number = |text: &String| text.parse::<usize>().expect("a number");
            let (_, make) = TABLES[number(table)];
            instructions::run(make().swap_remove(number(contender)));
        }
        [argument, part] if argument == "--only" => {
            print::tables(|name| name.contains(part.as_str()));
        }
        [argument] if argument == "--threads" => print::threads(),
        [argument] if argument == "--server" => print::wire(),
        _ => {
            eprintln!("sluice-peers [--threads | --server | --only PART-OF-A-TABLE'S-NAME]");
            std::process::exit(2);
        }
    }
}

fn all() {
    let ratios = print::tables(|_| true);
    print::keys();
    print::threads();
    print::accuracy();
    print::wire();
    print::summary(&ratios);
}
