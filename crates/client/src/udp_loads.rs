//! This end of all UDP loads, on one thread: senders of uploads, receivers of downloads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;

use socket2::{SockAddr, Socket};
use weir_core::{Duration, Ticker, Time, error_in_words};
use weir_scenario::{
    Direction, ThroughputMeter, ThroughputRow, UdpLoad, UdpReceiver, UdpRow, UdpSender,
    UdpSenderCounts,
};
use weir_sockets::Clock;
use weir_sockets::load::udp::{is_like_loss, udp_socket};
use weir_sockets::sys::epoll::{Epoll, Events, Interest};
use weir_sockets::sys::message;
use weir_sockets::sys::time::wake_exactly;
use weir_speedtest::protocol::weir::{LOAD_BYTES, LoadDatagram, Token};

use crate::ClientError;
use crate::ways::Way;
use crate::worker::Worker;

/// A UDP load that the server is ready for.
#[derive(Clone, Debug)]
pub(crate) struct UdpOrder {
    /// Number of the flow in the record.
    pub flow: u32,
    pub way: Way,
    pub direction: Direction,
    pub ticket: Token,
    pub load: UdpLoad,
    pub dscp: u8,
    pub start: Time,
    pub stop: Time,
    /// Sender of an upload.
    pub sender: UdpSender,
}

/// Events that the UDP loads' thread reports.
#[derive(Clone, Debug)]
pub(crate) enum UdpEvent {
    /// What the sender of an upload did since it was last told.
    Sent { flow: u32, counts: UdpSenderCounts },
    /// What arrived of a download.
    Received(UdpRow, ThroughputRow),
    /// It could not be had, or broke.
    Failed { flow: u32, reason: String },
    /// At the end, one for each load: when data was first sent, or first arrived.
    Ended { flow: u32, first_data: Option<Time> },
}

/// Configuration of all UDP loads.
#[derive(Clone, Copy)]
pub(crate) struct UdpConfig {
    pub clock: Clock,
    /// Time between two rows; none but the last if 0.
    pub sample_ns: u64,
}

struct Loads {
    config: UdpConfig,
    orders: Receiver<UdpOrder>,
    events: Sender<UdpEvent>,
    epoll: Epoll,
    loads: Vec<Load>,
    /// Loads by when they have something to send, the earliest first.
    agenda: BinaryHeap<Reverse<(Time, usize)>>,
    buffer: Vec<u8>,
}

struct Load {
    order: UdpOrder,
    socket: Socket,
    end: End,
    first_data: Option<Time>,
}

enum End {
    Sends { packet: Vec<u8> },
    Receives(Box<Receives>),
}

struct Receives {
    receiver: UdpReceiver,
    /// IP bytes of packets that arrived, repetitions included.
    wire_bytes: u64,
    meter: ThroughputMeter,
    /// Told by the server; 0 before.
    cookie: u64,
    ask: [u8; LOAD_BYTES],
}

/// Starts the thread of all UDP loads, which has none yet.
///
/// # Errors
/// If the kernel refuses what it needs.
pub(crate) fn start(config: UdpConfig) -> Result<Worker<UdpOrder, UdpEvent>, ClientError> {
    Worker::start("UDP loads", |orders, events| {
        let loads = Loads {
            config,
            orders,
            events,
            epoll: Epoll::new()?,
            loads: Vec::new(),
            agenda: BinaryHeap::new(),
            buffer: vec![0; MAX_DATAGRAM_BYTES],
        };
        Ok(move |stop: &AtomicBool| loads.run(stop))
    })
}

impl Loads {
    /// Works until told to stop, then tells the rest.
    fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        wake_exactly();
        let mut events = Events::new(EVENTS);
        let ticker = Ticker::new(self.config.sample_ns);
        let mut due = ticker.map(|ticker| ticker.after(Time::ZERO));
        let mut came = false;
        while !stop.load(Ordering::Acquire) {
            while let Ok(order) = self.orders.try_recv() {
                self.add(order);
            }
            self.send_due();
            let now = self.clock().now();
            if let Some(at) = due.filter(|&at| now >= at) {
                self.sample(at);
                due = ticker.map(|ticker| ticker.after(now));
            }
            if came && self.until_next(due) > NAP {
                // The kernel notes when packets come: they may wait.
                thread::sleep(std::time::Duration::from_nanos(NAP.as_nanos()));
            }
            let wait = self.until_next(due);
            came = self.receive(&mut events, wait)?;
        }
        self.sample(self.clock().now());
        for load in &self.loads {
            let ended = UdpEvent::Ended { flow: load.order.flow, first_data: load.first_data };
            let _ = self.events.send(ended);
        }
        Ok(())
    }

    const fn clock(&self) -> Clock {
        self.config.clock
    }

    fn until_next(&self, due: Option<Time>) -> Duration {
        let next = self.agenda.peek().map(|Reverse((at, _))| *at);
        let times = [next, due].into_iter().flatten();
        times.min().map_or(MAX_WAIT, |at| self.clock().until(at)).min(MAX_WAIT)
    }

    fn add(&mut self, order: UdpOrder) {
        let (flow, number) = (order.flow, self.loads.len());
        let added = Load::new(order).and_then(|load| {
            self.epoll.add(&load.socket, number as u64, Interest::READ)?;
            Ok(load)
        });
        match added {
            Ok(load) => {
                // A download asks for its cookie first, before its start.
                let at = if load.is_upload() { load.order.start } else { self.clock().now() };
                self.agenda.push(Reverse((at, number)));
                self.loads.push(load);
            }
            Err(error) => {
                let reason = format!("its socket: {}", error_in_words(&error));
                let _ = self.events.send(UdpEvent::Failed { flow, reason });
            }
        }
    }

    /// Sends what is due, a few packets at most.
    fn send_due(&mut self) {
        for _ in 0..PACKETS {
            let Some(&Reverse((at, number))) = self.agenda.peek() else { return };
            if !self.clock().until(at).is_zero() {
                return;
            }
            self.agenda.pop();
            let load = &mut self.loads[number];
            match load.send_due() {
                Ok(Some(next)) => self.agenda.push(Reverse((next, number))),
                Ok(None) => {}
                Err(error) => {
                    let (flow, reason) =
                        (load.order.flow, format!("sending: {}", error_in_words(&error)));
                    let _ = self.events.send(UdpEvent::Failed { flow, reason });
                }
            }
        }
    }

    /// Takes what has come, or comes within `wait`, and says whether anything did.
    fn receive(&mut self, events: &mut Events, wait: Duration) -> io::Result<bool> {
        let mut came = false;
        for ready in self.epoll.wait(events, wait)? {
            let load = &mut self.loads[ready.token as usize];
            for _ in 0..PACKETS {
                match load.take(&mut self.buffer) {
                    Ok(()) => came = true,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if is_like_loss(&error) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(came)
    }

    /// Tells what every load counted up to `at`.
    fn sample(&mut self, at: Time) {
        for load in self.loads.iter_mut().filter(|load| at > load.order.start) {
            if let Some(event) = load.sample(at) {
                let _ = self.events.send(event);
            }
        }
    }
}

impl Load {
    fn new(order: UdpOrder) -> io::Result<Self> {
        let socket = udp_socket(SocketAddr::new(order.way.local, 0), order.dscp)?;
        socket.connect(&SockAddr::from(order.way.datagrams))?;
        let end = match order.direction {
            Direction::Up => {
                // What a line or a tunnel compresses would not be measured.
                let mut packet = vec![0; order.load.payload_bytes as usize];
                getrandom::fill(&mut packet).map_err(io::Error::other)?;
                End::Sends { packet }
            }
            Direction::Down => End::Receives(Box::new(Receives {
                receiver: UdpReceiver::new(&order.load),
                wire_bytes: 0,
                meter: ThroughputMeter::default(),
                cookie: 0,
                ask: [0; LOAD_BYTES],
            })),
        };
        Ok(Self { order, socket, end, first_data: None })
    }

    const fn is_upload(&self) -> bool {
        matches!(self.end, End::Sends { .. })
    }

    /// Sends a packet of an upload, or asks for a download; says when there is something to send next.
    fn send_due(&mut self) -> io::Result<Option<Time>> {
        let clocks = self.order.way.clocks;
        let now = clocks.clock.now();
        let ticket = self.order.ticket;
        match &mut self.end {
            End::Sends { packet } => {
                let sender = &mut self.order.sender;
                let Some(seq) = sender.take_due(now) else { return Ok(sender.next()) };
                let sent_ns = clocks.there_now();
                LoadDatagram::Packet { ticket, seq, sent_ns }.emit(packet);
                lost_or(self.socket.send(packet))?;
                self.first_data.get_or_insert(now);
                Ok(sender.next())
            }
            End::Receives(receives) => {
                if now >= self.order.stop {
                    return Ok(None);
                }
                // The cookie comes back at the start, and from then on tells that this end listens.
                let began = now >= self.order.start;
                let cookie = if began { receives.cookie } else { 0 };
                if began || receives.cookie == 0 {
                    LoadDatagram::Ask { ticket, cookie }.emit(&mut receives.ask);
                    lost_or(self.socket.send(&receives.ask))?;
                }
                let next = now + ASK_EVERY;
                Ok(Some(if began { next } else { next.min(self.order.start) }))
            }
        }
    }

    /// Takes a datagram.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let received = message::receive(&self.socket, buffer)?;
        let Way { clocks, ip_version, .. } = self.order.way;
        let End::Receives(receives) = &mut self.end else { return Ok(()) };
        let own = self.order.ticket;
        match LoadDatagram::parse(&buffer[..received.len]) {
            Some(LoadDatagram::Answer { ticket, cookie }) if ticket == own => {
                let is_first = receives.cookie == 0;
                receives.cookie = cookie;
                if is_first && clocks.clock.now() >= self.order.start {
                    // It came late: the load waits for it.
                    LoadDatagram::Ask { ticket, cookie }.emit(&mut receives.ask);
                    lost_or(self.socket.send(&receives.ask))?;
                }
            }
            Some(LoadDatagram::Packet { ticket, seq, sent_ns })
                if ticket == own && received.len == self.order.load.payload_bytes as usize =>
            {
                let arrived = clocks.clock.of_stamp(received.real_ns);
                let sent = clocks.here(sent_ns);
                receives.wire_bytes += u64::from(self.order.load.ip_len(ip_version));
                // The clocks are compared to within half of a round trip: what took little time may seem to take less
                // than none.
                let delay = arrived.checked_since(sent).unwrap_or(Duration::ZERO);
                receives.receiver.on_packet(seq, delay, arrived);
                self.first_data.get_or_insert(arrived);
            }
            _ => {}
        }
        Ok(())
    }

    fn sample(&mut self, at: Time) -> Option<UdpEvent> {
        let flow = self.order.flow;
        match &mut self.end {
            End::Sends { .. } => {
                let counts = self.order.sender.take_counts();
                (counts != UdpSenderCounts::default()).then_some(UdpEvent::Sent { flow, counts })
            }
            End::Receives(receives) => {
                let payload = u64::from(self.order.load.payload_bytes);
                let delivered = receives.receiver.received() * payload;
                let throughput = receives.meter.row(at, flow, delivered, Some(receives.wire_bytes));
                let row = receives.receiver.row(at, flow, None);
                Some(UdpEvent::Received(row, throughput))
            }
        }
    }
}

/// A packet that the kernel would not take is as lost as one that a queue drops.
fn lost_or(sent: io::Result<usize>) -> io::Result<()> {
    match sent {
        Err(error) if !is_like_loss(&error) => Err(error),
        _ => Ok(()),
    }
}

/// How soon a new order, or the end, is seen.
const MAX_WAIT: Duration = Duration::from_millis(10);
/// How long packets are let come before the thread looks again.
const NAP: Duration = Duration::from_micros(500);
/// How often a download is asked for, and the server told that this end listens: ten times within the second for which it
/// sends to one that it does not hear.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Packets sent, or taken of a socket, before others have their turn.
const PACKETS: usize = 64;
const EVENTS: usize = 256;
const MAX_DATAGRAM_BYTES: usize = 65_536;
