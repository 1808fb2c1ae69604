//! How late this machine's kernel wakes a thread at the time for which it has asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::ppoll;
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use weir_linux::go_first;

/// Asks to be woken at one time after the other, as the data path does and as urgent as it: the least lateness that any
/// program can have beside the same load.
///
/// The times are set in advance, as those of packets are: while a thread is kept from working, each of them passes.
pub struct TimerWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<f64>>,
}

impl TimerWatch {
    /// Starts in a thread of its own.
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            prctl::set_timerslack(1).expect("a thread may have exact timers");
            go_first();
            let mut late_ns = Vec::new();
            let mut due = Instant::now();
            for number in 0_u64.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                // From 200 to 800 us, so that it keeps no step with anything else.
                due += Duration::from_micros(200 + number * 7_919 % 600);
                let pause = due.saturating_duration_since(Instant::now());
                if !pause.is_zero() {
                    ppoll(&mut [], Some(TimeSpec::from_duration(pause)), None).expect("a pause");
                }
                late_ns.push(Instant::now().duration_since(due).as_nanos() as f64);
            }
            late_ns
        });
        Self { stop, thread }
    }

    /// Ends it: how late it was woken, in nanoseconds.
    pub fn finish(self) -> Vec<f64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the watch does nothing that fails")
    }
}
