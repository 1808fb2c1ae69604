//! All ends of UDP loads at one side, on one thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use socket2::{SockAddr, Socket};
use weir_core::{Duration, End, Time};
use weir_scenario::{FlowRow, UdpLoad, UdpReceiver, UdpRow, UdpSender};

use super::board::Board;
use super::udp_message;
use crate::error::NetError;
use crate::load::udp::reserve;
use crate::probes::{is_like_loss, shared_udp_socket};
use crate::sys::epoll::{Epoll, Events, Interest};
use crate::sys::message;
use crate::sys::time::{monotonic_ns, wake_exactly};

/// A UDP load, as its two ends and the sampler see it.
pub(crate) struct UdpFlow {
    sender: Mutex<UdpSender>,
    arrived: Mutex<Arrived>,
}

/// What a receiver has.
struct Arrived {
    receiver: UdpReceiver,
    /// IP bytes of packets that arrived, repetitions included.
    wire_bytes: u64,
}

impl UdpFlow {
    pub fn new(load: &UdpLoad, sender: UdpSender) -> Self {
        let arrived = Arrived { receiver: UdpReceiver::new(load), wire_bytes: 0 };
        Self { sender: Mutex::new(sender), arrived: Mutex::new(arrived) }
    }

    /// IP bytes of packets that arrived.
    pub fn wire_bytes(&self) -> u64 {
        locked(&self.arrived).wire_bytes
    }

    /// What both ends counted since the last row.
    pub fn counts(&self, t: Time, flow: u32) -> UdpRow {
        let sent = locked(&self.sender).take_counts();
        locked(&self.arrived).receiver.row(t, flow, Some(sent))
    }

    /// The totals at the end.
    pub fn totals(&self, flow: u32, first_data: Option<Time>, delivered_bytes: u64) -> FlowRow {
        locked(&self.sender).row(flow, first_data, delivered_bytes)
    }
}

/// The ends of all UDP loads at one side.
pub(crate) struct UdpWorker {
    board: Arc<Board>,
    epoll: Epoll,
    ends: Vec<UdpEnd>,
    /// Senders by the time of their next packet, the earliest first.
    agenda: BinaryHeap<Reverse<(Time, usize)>>,
    buffer: Vec<u8>,
}

/// One end: a socket that is connected to the other.
struct UdpEnd {
    flow: usize,
    load: UdpLoad,
    socket: Socket,
    /// A packet to send; empty at a receiver.
    payload: Vec<u8>,
}

impl UdpWorker {
    /// Opens the sockets of one side, where the calling thread is.
    pub fn new(side: End, board: &Arc<Board>) -> Result<Self, NetError> {
        let epoll = Epoll::new().map_err(|error| NetError::io("epoll", &error))?;
        let mut worker = Self {
            board: Arc::clone(board),
            epoll,
            ends: Vec::new(),
            agenda: BinaryHeap::new(),
            buffer: vec![0; crate::check::MAX_PAYLOAD_BYTES as usize],
        };
        for flow in 0..board.flows.len() {
            let Some(load) = board.spec(flow).udp else { continue };
            worker
                .open(side, flow, load)
                .map_err(|error| worker.error(flow, "opening its socket", &error))?;
        }
        Ok(worker)
    }

    /// Sends and receives until the run is over.
    pub fn run(mut self) -> Result<(), NetError> {
        wake_exactly();
        let mut events = Events::new(EVENTS);
        let mut came = false;
        while !self.board.plan.control.ends_may_close() {
            self.send_due();
            if came && self.until_next() > NAP {
                // The kernel notes when packets come: they may wait.
                std::thread::sleep(std::time::Duration::from_nanos(NAP.as_nanos()));
            }
            came = self.receive(&mut events, self.until_next())?;
        }
        Ok(())
    }

    /// How long until a packet is due, or the end of the run is to be looked for.
    fn until_next(&self) -> Duration {
        let clock = self.board.plan.clock;
        let next = self.agenda.peek().map(|Reverse((at, _))| clock.until(*at));
        next.unwrap_or(MAX_WAIT).min(MAX_WAIT)
    }

    fn open(&mut self, side: End, flow: usize, load: UdpLoad) -> io::Result<()> {
        let spec = self.board.spec(flow);
        let socket = shared_udp_socket(self.board.end(flow, side), spec.dscp)?;
        socket.connect(&SockAddr::from(self.board.end(flow, side.other())))?;
        let number = self.ends.len();
        let mut payload = Vec::new();
        if spec.sender() == side {
            payload.resize(load.payload_bytes as usize, 0);
            self.agenda.push(Reverse((self.board.flows[flow].start, number)));
        } else {
            reserve(&socket)?;
            self.epoll.add(&socket, number as u64, Interest::READ)?;
        }
        self.ends.push(UdpEnd { flow, load, socket, payload });
        Ok(())
    }

    /// Sends what is due, a few packets at most.
    fn send_due(&mut self) {
        let clock = self.board.plan.clock;
        for _ in 0..PACKETS {
            let Some(&Reverse((at, number))) = self.agenda.peek() else { return };
            if !clock.until(at).is_zero() {
                return;
            }
            self.agenda.pop();
            if let Some(next) = self.send(number, clock.now()) {
                self.agenda.push(Reverse((next, number)));
            }
        }
    }

    /// Sends a packet of end `number`, and says when the next one is due; `None` if it can send no more.
    fn send(&mut self, number: usize, now: Time) -> Option<Time> {
        let UdpEnd { flow, socket, payload, .. } = &mut self.ends[number];
        let udp = self.board.flows[*flow].udp.as_ref()?;
        let (seq, next) = {
            let mut sender = locked(&udp.sender);
            (sender.take_due(now), sender.next())
        };
        let Some(seq) = seq else { return next };
        udp_message::write(payload, seq, monotonic_ns());
        match socket.send(payload) {
            Ok(_) => next,
            // A packet that the kernel would not take is as lost as one that a queue drops.
            Err(error) if is_like_loss(&error) => next,
            Err(error) => {
                let flow = *flow;
                self.board.plan.control.fail(self.error(flow, "sending", &error));
                None
            }
        }
    }

    /// Takes what has come, or comes within `wait`, and says whether anything did.
    fn receive(&mut self, events: &mut Events, wait: Duration) -> Result<bool, NetError> {
        let all = self.epoll.wait(events, wait).map_err(|error| NetError::io("epoll", &error))?;
        let mut came = false;
        for ready in all {
            let number = ready.token as usize;
            for _ in 0..PACKETS {
                match self.take(number) {
                    Ok(()) => came = true,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if is_like_loss(&error) => {}
                    Err(error) => {
                        return Err(self.error(self.ends[number].flow, "receiving", &error));
                    }
                }
            }
        }
        Ok(came)
    }

    /// Takes a packet of end `number`.
    fn take(&mut self, number: usize) -> io::Result<()> {
        let UdpEnd { flow, load, socket, .. } = &self.ends[number];
        let received = message::receive(socket, &mut self.buffer)?;
        let plan = &self.board.plan;
        let arrived = plan.clock.of_stamp(received.real_ns);
        let message = udp_message::read(&self.buffer[..received.len]);
        let (Some((seq, sent_ns)), Some(udp)) = (message, &self.board.flows[*flow].udp) else {
            return Ok(());
        };
        if received.len != load.payload_bytes as usize {
            return Ok(());
        }
        let sent = plan.clock.of_monotonic_ns(sent_ns);
        let is_new = {
            let mut state = locked(&udp.arrived);
            state.wire_bytes += u64::from(load.ip_len(plan.scenario.flow_ip(*flow)));
            // The clocks are compared to within a microsecond: what took no time may seem to take less.
            let delay = arrived.checked_since(sent).unwrap_or(Duration::ZERO);
            state.receiver.on_packet(seq, delay, arrived)
        };
        if is_new {
            self.board.delivered(*flow, u64::from(load.payload_bytes), arrived);
        }
        Ok(())
    }

    fn error(&self, flow: usize, what: &str, error: &io::Error) -> NetError {
        NetError::io(format_args!("flow `{}`: {what}", self.board.spec(flow).name), error)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever panicked ends the run; its counts stay.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How soon the end of the run is noticed.
const MAX_WAIT: Duration = Duration::from_millis(20);
/// How long packets are let come before the thread looks again.
const NAP: Duration = Duration::from_micros(500);
/// Packets sent, or taken of a socket, before others have their turn.
const PACKETS: usize = 64;
const EVENTS: usize = 256;
