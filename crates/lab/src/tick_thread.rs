//! A thread that works at fixed intervals until it is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration as WallDuration;

use weir_core::{Ticker, Time};
use weir_linux::{LinuxError, go_as_others};
use weir_sockets::Clock;

/// A thread that works on a `T` at fixed intervals, as urgent as those of other programs.
pub(crate) struct TickThread<T> {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<T, LinuxError>>,
}

impl<T: Send + 'static> TickThread<T> {
    /// Starts a thread called `name`, which does `work` on `state` at every tick of `clock` that is a multiple of
    /// `period_ns`, never if that is 0. A tick that passes while it works is left out; the first error ends it.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(
        name: &str,
        clock: Clock,
        period_ns: u64,
        mut state: T,
        mut work: impl FnMut(&mut T, Time) -> Result<(), LinuxError> + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            go_as_others();
            let Some(ticker) = Ticker::new(period_ns) else { return Ok(state) };
            let mut next = ticker.after(clock.now());
            while !stopped.load(Ordering::Relaxed) {
                let wait = WallDuration::from_nanos(clock.until(next).as_nanos());
                std::thread::sleep(wait.min(MAX_SLEEP));
                let now = clock.now();
                if now >= next {
                    work(&mut state, now)?;
                    next = ticker.after(now);
                }
            }
            Ok(state)
        })?;
        Ok(Self { stop, thread })
    }

    /// Stops the thread, and returns what it worked on.
    ///
    /// # Errors
    /// The first error of its work.
    pub fn finish(self) -> Result<T, LinuxError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// How long it may take until a request to stop is heard.
const MAX_SLEEP: WallDuration = WallDuration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};

    use weir_core::Duration;

    use super::*;

    const PATIENCE: WallDuration = WallDuration::from_secs(60);

    #[test]
    fn work_is_done_at_ticks_until_the_end() {
        let (sender, ticks) = channel();
        let period_ns = 1_000_000;
        let work = move |count: &mut u64, now: Time| {
            *count += 1;
            let _ = sender.send(now.as_nanos() / period_ns);
            Ok(())
        };
        let thread =
            TickThread::start("ticks", Clock::starting_in(Duration::ZERO), period_ns, 0, work)
                .unwrap();
        let first: Vec<_> = (0..3).map(|_| ticks.recv_timeout(PATIENCE).unwrap()).collect();
        assert!(first[0] >= 1 && first.is_sorted_by(|one, next| one < next), "{first:?}");
        let count = thread.finish().unwrap();
        assert_eq!(count, 3 + ticks.iter().count() as u64, "nothing is done after the end");
    }

    #[test]
    fn the_first_error_ends_it_and_is_told() {
        let (sender, ticks) = channel();
        let work = move |_: &mut (), _: Time| {
            sender.send(()).unwrap();
            Err(LinuxError::new("out of order"))
        };
        let thread =
            TickThread::start("ticks", Clock::starting_in(Duration::ZERO), 1_000_000, (), work)
                .unwrap();
        ticks.recv_timeout(PATIENCE).unwrap();
        assert_eq!(ticks.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
        assert_eq!(thread.finish().unwrap_err().to_string(), "out of order");
    }

    #[test]
    fn a_period_of_0_is_never() {
        let work = |_: &mut u8, _: Time| unreachable!("there are no ticks");
        let thread =
            TickThread::start("ticks", Clock::starting_in(Duration::ZERO), 0, 7, work).unwrap();
        assert_eq!(thread.finish().unwrap(), 7);
    }
}
