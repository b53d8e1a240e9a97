//! Counting of allocations, per thread, so that tests beside one another do not mix.

/// What `work` allocated on this thread: how often, and how many bytes in all.
pub fn allocations<T>(work: impl FnOnce() -> T) -> (u64, u64) {
    let info = allocation_counter::measure(|| {
        std::hint::black_box(work());
    });
    (info.count_total, info.bytes_total)
}
