//! Clocks, and how exactly a thread is woken.

use nix::sys::prctl;
use nix::time::{ClockId, clock_gettime};

/// Nanoseconds on `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::CLOCK_MONOTONIC)
}

/// How far `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC` now, in nanoseconds, to within the time that
/// reading a clock takes (tens of nanoseconds).
pub fn realtime_ahead_ns() -> i64 {
    // The narrowest of a few: the thread may be interrupted between two looks.
    let looks = (0..LOOKS).map(|_| {
        let before = monotonic_ns();
        let real = nanoseconds(ClockId::CLOCK_REALTIME);
        let after = monotonic_ns();
        (after - before, real as i64 - (before + (after - before) / 2) as i64)
    });
    looks.min().expect("there is more than one look").1
}

/// Lets timers of the calling thread fire when due, and not up to 50 us later (`PR_SET_TIMERSLACK`).
pub fn wake_exactly() {
    // It cannot fail for the calling thread.
    let _ = prctl::set_timerslack(1);
}

/// Processor time that this process has used, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).expect("Linux has these clocks");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

const LOOKS: usize = 3;
