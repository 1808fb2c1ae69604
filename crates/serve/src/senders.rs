//! Sends the packets of all UDP loads in their time, on a thread of its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::Socket;
use weir_sockets::sys::time::{monotonic_ns, wake_exactly};

use crate::error::ServeError;
use crate::shared::Shared;
use crate::weir::{Due, UdpFlow};

/// A UDP load that begins, and the socket that its client asked.
pub(crate) struct Begins {
    pub flow: Arc<UdpFlow>,
    pub socket: Socket,
}

/// Where loads that begin are handed over to the thread.
pub(crate) fn channel() -> (Sender<Begins>, Receiver<Begins>) {
    mpsc::channel()
}

/// Starts the thread. It ends when the server does.
pub(crate) fn start(server: &Arc<Shared>, begin: Receiver<Begins>) -> io::Result<JoinHandle<()>> {
    let server = Arc::clone(server);
    thread::Builder::new().name("UDP loads".into()).spawn(move || {
        wake_exactly();
        Senders { begin, loads: BTreeMap::new(), begun: 0, agenda: BinaryHeap::new() }.run(&server);
        if !server.stop.is_cancelled() {
            let reason = "the thread `UDP loads` ended by a bug: please report it";
            server.health.fail(ServeError::new(reason));
        }
    })
}

struct Senders {
    begin: Receiver<Begins>,
    loads: BTreeMap<u64, Begins>,
    begun: u64,
    /// Loads by when they are due on `CLOCK_MONOTONIC`, the earliest first.
    agenda: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Senders {
    fn run(&mut self, server: &Shared) {
        while !server.stop.is_cancelled() {
            match self.begin.recv_timeout(self.until_next()) {
                Ok(begins) => {
                    self.agenda.push(Reverse((monotonic_ns(), self.begun)));
                    self.loads.insert(self.begun, begins);
                    self.begun += 1;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.send_due();
        }
    }

    fn until_next(&self) -> Duration {
        let next = self.agenda.peek().map(|Reverse((at, _))| at.saturating_sub(monotonic_ns()));
        next.map_or(MAX_WAIT, Duration::from_nanos).min(MAX_WAIT)
    }

    /// Sends what is due, a few packets at most.
    fn send_due(&mut self) {
        for _ in 0..PACKETS {
            let now = monotonic_ns();
            let Some(&Reverse((at, number))) = self.agenda.peek() else { return };
            if at > now {
                return;
            }
            self.agenda.pop();
            let Some(Begins { flow, socket }) = self.loads.get(&number) else { continue };
            match flow.send_due(socket) {
                Due::Next(next) => {
                    self.agenda.push(Reverse((now + flow.until(next).as_nanos(), number)));
                }
                Due::Over => {
                    self.loads.remove(&number);
                }
            }
        }
    }
}

/// How soon the server's end is noticed.
const MAX_WAIT: Duration = Duration::from_millis(50);
/// Packets that are sent before new loads have their turn.
const PACKETS: usize = 64;
