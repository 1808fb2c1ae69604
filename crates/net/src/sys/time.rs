//! Clocks, and how exactly a thread is woken.
#![expect(unsafe_code, reason = "system calls that neither std nor socket2 offer")]

/// Nanoseconds on `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// How far `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC` now, in nanoseconds, to within the time that
/// reading a clock takes (tens of nanoseconds).
pub fn realtime_ahead_ns() -> i64 {
    // The narrowest of a few: the thread may be interrupted between two looks.
    let looks = (0..LOOKS).map(|_| {
        let before = monotonic_ns();
        let real = nanoseconds(libc::CLOCK_REALTIME);
        let after = monotonic_ns();
        (after - before, real as i64 - (before + (after - before) / 2) as i64)
    });
    looks.min().expect("there is more than one look").1
}

/// Lets timers of the calling thread fire when due, and not up to 50 us later (`PR_SET_TIMERSLACK`).
pub fn wake_exactly() {
    // SAFETY: takes no pointers. It cannot fail for the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Processor time that this process has used, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID)
}

pub(super) fn timespec(ns: u64) -> libc::timespec {
    let seconds = (ns / 1_000_000_000) as i64;
    libc::timespec { tv_sec: seconds, tv_nsec: (ns % 1_000_000_000) as libc::c_long }
}

fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` outlives the call. It cannot fail for these clocks.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

const LOOKS: usize = 3;
