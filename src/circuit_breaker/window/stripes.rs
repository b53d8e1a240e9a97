use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Beyond this many the sum on a failing outcome costs more than the sharing saves.
const MOST: usize = 16;

/// How many stripes let each core count for itself: a power of two.
pub(crate) fn count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    // Asked once: the answer is read from control-group files.
    *COUNT.get_or_init(|| {
        std::thread::available_parallelism()
            .map_or(4, usize::from)
            .next_power_of_two()
            .min(MOST)
    })
}

/// This thread's number: threads that start one after the other get stripes side by side.
#[inline]
pub(crate) fn of_thread() -> usize {
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Gone while the thread's own data is torn down: any stripe is right, if not the best.
    NUMBER
        .try_with(|number| {
            if number.get() == usize::MAX {
                number.set(NEXT.fetch_add(1, Ordering::Relaxed) & (usize::MAX >> 1));
            }
            number.get()
        })
        .unwrap_or(0)
}
