//! Rounds: every contender of a table runs a short batch in each, in an order that changes, so
//! that what the machine does besides falls on all of them alike. Ratios are taken within a round.

use std::hint::black_box;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;

const ROUNDS: usize = 31;
const BATCH: Duration = Duration::from_millis(4);

/// One way of doing the work of a table.
pub struct Contender {
    pub name: &'static str,
    work: Box<dyn Work>,
}

trait Work {
    /// Gets ready to run so many times, outside of what is measured.
    fn prepare(&mut self, times: u64);
    fn run(&mut self, times: u64);
}

impl Contender {
    /// `once` does the work one time.
    pub fn new<T>(name: &'static str, mut once: impl FnMut() -> T + 'static) -> Self {
        Self::in_batches(name, move |times| {
            for _ in 0..times {
                black_box(once());
            }
        })
    }

    /// `batch` does the work so many times.
    pub fn in_batches(name: &'static str, batch: impl FnMut(u64) + 'static) -> Self {
        let work = Box::new(Batch(batch));
        Self { name, work }
    }

    /// `once` does the work with each of the keys that `draw` picks beforehand: a request's key
    /// is at hand, and what picking one costs here is no part of a limit.
    pub fn over<K: 'static, T>(
        name: &'static str,
        draw: impl FnMut() -> K + 'static,
        mut once: impl FnMut(&K) -> T + 'static,
    ) -> Self {
        let each = move |keys: &[K]| {
            for key in keys {
                black_box(once(key));
            }
        };
        let keys = Vec::new();
        let work = Box::new(Over { draw, keys, each });
        Self { name, work }
    }

    /// Runs it so many times; how long the thread was busy with that.
    pub fn run(&mut self, times: u64) -> Duration {
        self.work.prepare(times);
        let start = ThreadTime::now();
        self.counted(times);
        start.elapsed()
    }

    /// Allocations and bytes of so many calls.
    fn allocated(&mut self, times: u64) -> (u64, u64) {
        self.work.prepare(times);
        let info = allocation_counter::measure(|| self.work.run(times));
        (info.count_total, info.bytes_total)
    }

    /// What callgrind is told to count; see `instructions`.
    #[inline(never)]
    fn counted(&mut self, times: u64) {
        self.work.run(times);
    }
}

struct Batch<F>(F);

impl<F: FnMut(u64)> Work for Batch<F> {
    fn prepare(&mut self, _times: u64) {}

    fn run(&mut self, times: u64) {
        self.0(times);
    }
}

struct Over<K, D, E> {
    draw: D,
    keys: Vec<K>,
    each: E,
}

impl<K, D: FnMut() -> K, E: FnMut(&[K])> Work for Over<K, D, E> {
    fn prepare(&mut self, times: u64) {
        self.keys.clear();
        self.keys.extend((0..times).map(|_| (self.draw)()));
    }

    fn run(&mut self, times: u64) {
        assert_eq!(self.keys.len() as u64, times, "as many as were drawn");
        (self.each)(&self.keys);
    }
}

/// What a contender cost, per call.
pub struct Cost {
    pub name: &'static str,
    pub median_ns: f64,
    pub least_ns: f64,
    /// The median over rounds of this contender's time over the first one's in the same round.
    pub ratio: f64,
    pub allocations: f64,
    pub bytes: f64,
}

/// Measures all contenders against the first, which is the floor.
pub fn compare(contenders: &mut [Contender]) -> Vec<Cost> {
    let batches: Vec<u64> = contenders.iter_mut().map(calibrate).collect();
    let mut times = vec![Vec::with_capacity(ROUNDS); contenders.len()];
    for round in 0..ROUNDS {
        for step in 0..contenders.len() {
            let which = (round * 7 + step) % contenders.len();
            let batch = batches[which];
            times[which].push(nanos(&mut contenders[which], batch) / batch as f64);
        }
    }
    let floor = times[0].clone();
    contenders
        .iter_mut()
        .zip(times)
        .map(|(contender, times)| {
            let ratios = times
                .iter()
                .zip(&floor)
                .map(|(time, floor)| time / floor)
                .collect();
            let (allocations, bytes) = allocated(contender);
            Cost {
                name: contender.name,
                least_ns: times.iter().copied().fold(f64::INFINITY, f64::min),
                median_ns: median(times),
                ratio: median(ratios),
                allocations,
                bytes,
            }
        })
        .collect()
}

fn calibrate(contender: &mut Contender) -> u64 {
    let mut batch = 64;
    loop {
        let took = nanos(contender, batch);
        if took >= BATCH.as_nanos() as f64 / 4.0 {
            return ((batch as f64 * BATCH.as_nanos() as f64 / took) as u64).max(1);
        }
        batch *= 2;
    }
}

fn nanos(contender: &mut Contender, times: u64) -> f64 {
    contender.run(times).as_nanos() as f64
}

fn allocated(contender: &mut Contender) -> (f64, f64) {
    const CALLS: u64 = 1_000;
    let (count, bytes) = contender.allocated(CALLS);
    let per_call = |count: u64| count as f64 / CALLS as f64;
    (per_call(count), per_call(bytes))
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Calls per second of `threads` threads doing `work(thread)` at once, over one thread's doing it
/// alone; the median of interleaved pairs.
pub fn scaling<W: FnMut(u64) + Send>(mut make: impl FnMut(usize) -> W) -> f64 {
    const PAIRS: usize = 15;
    let ratios = (0..PAIRS).map(|_| {
        let alone = throughput(vec![make(0)]);
        let together = throughput(vec![make(0), make(1)]);
        together / alone
    });
    median(ratios.collect())
}

fn throughput<W: FnMut(u64) + Send>(workers: Vec<W>) -> f64 {
    const STEP: u64 = 1_000;
    const SPAN: Duration = Duration::from_millis(60);
    let start = Instant::now();
    let mut total = 0;
    std::thread::scope(|scope| {
        let running: Vec<_> = workers
            .into_iter()
            .map(|mut work| {
                scope.spawn(move || {
                    let mut done = 0;
                    while start.elapsed() < SPAN {
                        work(STEP);
                        done += STEP;
                    }
                    done
                })
            })
            .collect();
        total = running
            .into_iter()
            .map(|worker| worker.join().expect("a worker ran"))
            .sum();
    });
    total as f64 / start.elapsed().as_secs_f64()
}
