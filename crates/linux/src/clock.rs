//! Processor time: how much the thread has used, and who is first in line for it.

#![allow(unsafe_code, reason = "setting a thread's priority has no safe wrapper")]

use std::mem::MaybeUninit;

use nix::time::{ClockId, clock_gettime};

/// Processor time that the calling thread has used, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Lets the calling thread go before others, if this user may: without that right it stays as it is.
///
/// A nice value alone does not do it where sessions are scheduled against each other (autogroup, sched(7)):
/// it then counts within the session only, and a compiler in another one makes packets wait for tens of
/// milliseconds. The kernel keeps a twentieth of the processor for others (`sched_rt_runtime_us`), and
/// programs that the thread starts do not inherit it.
pub fn go_first() {
    if !set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, MIN_REAL_TIME_PRIORITY) {
        // SAFETY: plain numbers; 0 is the calling thread. Whether it worked changes nothing but how late
        // packets are, which is recorded anyway.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, URGENT) };
    }
}

/// Lets the calling thread, and those it starts from now on, go before others, if this user may.
///
/// It is for a process that is about to lose the right to. Each thread may later say otherwise for itself.
pub(crate) fn go_first_with_threads() {
    set_policy(libc::SCHED_FIFO, MIN_REAL_TIME_PRIORITY);
}

/// The calling thread, and those that it starts, go like others again.
pub fn go_as_others() {
    set_policy(libc::SCHED_OTHER, 0);
}

fn set_policy(policy: libc::c_int, priority: libc::c_int) -> bool {
    // The kernel itself is asked: musl's function of that name does nothing, since to POSIX 0 is the process.
    // SAFETY: the structure is plain numbers, of which zero is a valid one, and outlives the call; 0 is the
    // calling thread.
    unsafe {
        let mut wanted: libc::sched_param = MaybeUninit::zeroed().assume_init();
        wanted.sched_priority = priority;
        libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const wanted) == 0
    }
}

/// The least real-time priority goes before every program without one.
pub(crate) const MIN_REAL_TIME_PRIORITY: libc::c_int = 1;
/// The nice value of the data path.
const URGENT: libc::c_int = -19;

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// How the calling thread is scheduled, as the kernel says.
    fn policy() -> libc::c_long {
        // SAFETY: plain numbers; 0 is the calling thread.
        unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
    }

    /// Whether the kernel lets a thread of this user be scheduled in real time.
    fn may_be_real_time() -> bool {
        let asks = || {
            // The kernel's structure has but the priority.
            let priority = MIN_REAL_TIME_PRIORITY;
            // SAFETY: the number outlives the call; 0 is the calling thread, which ends after it.
            unsafe {
                libc::syscall(
                    libc::SYS_sched_setscheduler,
                    0,
                    libc::SCHED_FIFO,
                    &raw const priority,
                ) == 0
            }
        };
        thread::spawn(asks).join().expect("the thread ended well")
    }

    #[test]
    fn a_thread_goes_first_where_its_user_may_whatever_the_c_library() {
        thread::spawn(|| {
            go_first();
            let wanted = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
            let real_time = policy() == libc::c_long::from(wanted);
            assert_eq!(real_time, may_be_real_time(), "policy {}", policy());
            go_as_others();
            assert_eq!(policy(), libc::c_long::from(libc::SCHED_OTHER));
        })
        .join()
        .expect("the thread ended well");
    }
}
