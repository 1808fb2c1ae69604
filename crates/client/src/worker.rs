//! A thread that works on loads: orders go in, events come out.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use crate::ClientError;

/// The handle of a thread that takes orders of type `O` and reports events of type `E`.
pub(crate) struct Worker<O, E> {
    name: &'static str,
    orders: Sender<O>,
    events: Receiver<E>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

impl<O: Send + 'static, E: Send + 'static> Worker<O, E> {
    /// Starts a thread of that name, which has no order yet. `work` makes ready, here, what then runs there until told to
    /// stop.
    ///
    /// # Errors
    /// If it cannot be made ready, or there are no more threads to be had.
    pub fn start<W>(
        name: &'static str,
        work: impl FnOnce(Receiver<O>, Sender<E>) -> io::Result<W>,
    ) -> Result<Self, ClientError>
    where
        W: FnOnce(&AtomicBool) -> io::Result<()> + Send + 'static,
    {
        let fail = |error: io::Error| failed(name, &error);
        let (orders, ordered) = mpsc::channel();
        let (tell, events) = mpsc::channel();
        let work = work(ordered, tell).map_err(fail)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || work(&stopped));
        Ok(Self { name, orders, events, stop, thread: thread.map_err(fail)? })
    }

    /// Hands an order in.
    pub fn order(&self, order: O) {
        // A thread that is gone says why when it is joined.
        let _ = self.orders.send(order);
    }

    /// The events since the last call.
    pub fn events(&self) -> impl Iterator<Item = E> {
        self.events.try_iter()
    }

    /// Ends the work and the thread: its last events, and why it ended if that was an error.
    pub fn finish(self) -> (Vec<E>, Result<(), ClientError>) {
        self.stop.store(true, Ordering::Release);
        let bug = || Err(io::Error::other("it ended by a bug: please report it"));
        let ended = self.thread.join().unwrap_or_else(|_| bug());
        (self.events.try_iter().collect(), ended.map_err(|error| failed(self.name, &error)))
    }
}

fn failed(name: &str, error: &io::Error) -> ClientError {
    ClientError::io(format_args!("thread `{name}`"), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_that_were_taken_are_answered_and_an_error_is_told_at_the_end() {
        let doubles = Worker::start("doubles", |orders: Receiver<u32>, tell| {
            Ok(move |stop: &AtomicBool| {
                while !stop.load(Ordering::Acquire) {
                    let Ok(order) = orders.recv() else { break };
                    tell.send(order * 2).map_err(io::Error::other)?;
                }
                Err(io::Error::other("tired"))
            })
        });
        let doubles = doubles.unwrap();
        doubles.order(3);
        let first = doubles.events.recv().unwrap();
        doubles.order(4);
        let second = doubles.events.recv().unwrap();
        assert_eq!((first, second), (6, 8));
        doubles.stop.store(true, Ordering::Release);
        doubles.order(5);
        let (_, ended) = doubles.finish();
        assert_eq!(ended.unwrap_err().to_string(), "thread `doubles`: tired");
    }

    #[test]
    fn a_thread_that_panics_has_a_bug() {
        let one: Worker<(), ()> =
            Worker::start("one", |_, _| Ok(|_: &AtomicBool| panic!("on purpose"))).unwrap();
        let (events, ended) = one.finish();
        assert!(events.is_empty());
        let said = ended.unwrap_err().to_string();
        assert_eq!(said, "thread `one`: it ended by a bug: please report it");
    }
}
