//! The backend `userspace`: packets of the device in our own disciplines.

use std::os::fd::BorrowedFd;

use weir_control::{Side, Traffic};
use weir_core::{Duration, FlowKey, Packet, Rate, TcpHeader, Time};
use weir_linux::Intercept;
use weir_net::Clock;
use weir_qdisc::Port;
use weir_wire::parse;

use crate::ShapeError;
use crate::held::{Held, HeldPackets};
use crate::settings::Settings;
use crate::view::SideCounts;

/// The device's packets and their queues.
pub(crate) struct Userspace {
    intercept: Intercept,
    ports: [Option<Port>; 2],
    held: HeldPackets,
    hash_key: u64,
    /// Bytes and packets of our own probes, which pass the queues.
    probed: [(u64, u64); 2],
    /// Probes that pass with the next word to the kernel.
    leaving: Vec<FlowKey>,
    framing: weir_core::Framing,
    clock: Clock,
    worked: Time,
}

/// Sees every packet before it is queued.
pub(crate) trait Watch {
    /// Whether a packet belongs to one of our own probes.
    fn is_probe(&self, key: &FlowKey, side: Side) -> bool;
    /// One of our own probes has left at `at`: until then it was held back here.
    fn probe_left(&mut self, key: &FlowKey, at: Time);
    /// The answer to one has come, at `at`.
    fn answer_came(&mut self, key: &FlowKey, at: Time);
    /// A packet of the user's comes, or came at `at` on the way in.
    fn comes(&mut self, key: &FlowKey, tcp: Option<&TcpHeader>, bytes: u64, side: Side, at: Time);
    /// A packet of the user's goes.
    fn goes(&mut self, key: &FlowKey, tcp: Option<&TcpHeader>, side: Side, now: Time);
}

impl Userspace {
    pub fn new(settings: &Settings, seed: u64, clock: Clock) -> Result<Self, ShapeError> {
        let ports = [settings.port(Side::Egress, seed)?, settings.port(Side::Ingress, seed)?];
        Intercept::heal(&settings.device)?;
        let intercept =
            Intercept::new(&settings.device, settings.queues.each_ref().map(Option::is_some))?;
        Ok(Self {
            intercept,
            ports,
            held: HeldPackets::default(),
            hash_key: seed,
            probed: [(0, 0); 2],
            leaving: Vec::new(),
            clock,
            framing: settings.framing,
            worked: Time::ZERO,
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.intercept.fd()
    }

    /// Everything that is due by `now` goes, and everything that has come is queued.
    pub fn work(&mut self, watch: &mut dyn Watch, now: Time) -> Result<(), ShapeError> {
        self.worked = now;
        self.let_go(watch, now);
        let fail = |error| ShapeError::io("the kernel no longer hands packets over", error);
        for _ in 0..BATCH {
            if !self.take_in(watch, now).map_err(fail)? {
                break;
            }
        }
        // Taking in took its time: what has become due meanwhile goes with the same word to the kernel.
        let after = self.clock.now();
        self.worked = after;
        self.let_go(watch, after);
        for (way, id) in self.held.dropped.drain(..) {
            self.intercept.discard(way, id);
        }
        self.intercept
            .flush()
            .map_err(|error| ShapeError::io("the kernel no longer listens", error))?;
        for key in self.leaving.drain(..) {
            watch.probe_left(&key, self.clock.now());
        }
        Ok(())
    }

    /// Takes one packet in, if one waits.
    fn take_in(&mut self, watch: &mut dyn Watch, now: Time) -> std::io::Result<bool> {
        let Some(packet) = self.intercept.receive()? else { return Ok(false) };
        let (way, id) = (packet.way, packet.id);
        let side = Side::ALL[way];
        // What waited for this process has waited in no queue of the line.
        let came = packet.real_ns.map_or(now, |real| self.clock.of_stamp(Some(real)));
        let Ok(headers) = parse(packet.bytes) else {
            // Whatever it is, it is not ours to judge.
            self.intercept.pass(way, id, None);
            return Ok(true);
        };
        if watch.is_probe(&headers.key, side) {
            let probed = &mut self.probed[way];
            probed.0 += self.framing.wire_bytes(headers.total_len as u32);
            probed.1 += 1;
            match side {
                Side::Egress => self.leaving.push(headers.key),
                Side::Ingress => watch.answer_came(&headers.key, came),
            }
            self.intercept.pass(way, id, None);
            return Ok(true);
        }
        let tcp = headers.tcp_header(packet.bytes);
        watch.comes(&headers.key, tcp.as_ref(), headers.total_len as u64, side, came);
        let handle = self.held.put(way, id, headers, packet.bytes);
        let descriptor = headers.packet(handle, 0, self.hash_key);
        let port = self.ports[way].as_mut().expect("only sides that are shaped are handed over");
        port.enqueue(descriptor, now, &mut self.held);
        Ok(true)
    }

    /// Everything goes that its queue and the rate let go by `now`.
    ///
    /// Each at the time at which it was allowed to, not at which this thread woke up, so that a late wake-up
    /// costs nothing of the rate; up to a bound, since what is made up for goes in a burst.
    fn let_go(&mut self, watch: &mut dyn Watch, now: Time) {
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(CATCH_UP.as_nanos()));
        for way in 0..self.ports.len() {
            let Some(port) = &mut self.ports[way] else { continue };
            loop {
                let due = port.wake_at().filter(|&at| at <= now);
                let at = due.map_or(now, |at| at.max(earliest));
                match port.dequeue(at, &mut self.held) {
                    Some(packet) => {
                        let mut held = self.held.take(packet.handle);
                        let tcp = held.headers.tcp_header(&held.bytes);
                        watch.goes(&held.headers.key, tcp.as_ref(), Side::ALL[way], now);
                        pass(&mut self.intercept, &mut held, &packet);
                        self.held.give_back(held);
                    }
                    // Asked for now, it has nothing more.
                    None if at == now => break,
                    None => {}
                }
            }
        }
    }

    /// When a packet may go next, if one waits.
    pub fn wake_at(&self) -> Option<Time> {
        self.ports.iter().flatten().filter_map(Port::wake_at).min()
    }

    pub fn set_rate(&mut self, side: Side, rate: Option<Rate>, now: Time) {
        if let Some(port) = &mut self.ports[side as usize] {
            port.set_rate(rate, now);
        }
    }

    /// What a side's counters say, as the controller takes it.
    pub fn traffic(&self, side: Side) -> Option<Traffic> {
        let port = self.ports[side as usize].as_ref()?;
        let passed = port.shaped_traffic().expect("it is shaped");
        let crossed = match side {
            Side::Egress => passed.departed,
            Side::Ingress => passed.arrived,
        };
        let (bytes, packets) = self.probed[side as usize];
        Some(Traffic {
            bytes: crossed.bytes + bytes,
            packets: crossed.packets + packets,
            backlog_bytes: port.backlog().bytes,
        })
    }

    /// The same as people want to know it.
    pub fn counts(&mut self, side: Side) -> Option<SideCounts> {
        let traffic = self.traffic(side)?;
        let port = self.ports[side as usize].as_mut()?;
        let sojourn = port.take_sojourn();
        let (stats, passed) = (port.stats(), port.shaped_traffic().unwrap_or_default());
        Some(SideCounts {
            bytes: traffic.bytes,
            departed_bytes: passed.departed.bytes,
            backlog_packets: u64::from(port.backlog().packets),
            backlog_bytes: traffic.backlog_bytes,
            dropped: stats.dropped.iter().map(|count| count.packets).sum(),
            marked: stats.marked.iter().sum(),
            sojourn_ns: sojourn.mean().map(Duration::as_nanos),
        })
    }

    /// Packets so far that passed because they were not read in time.
    pub fn missed(&self) -> u64 {
        self.intercept.missed()
    }
}

impl Drop for Userspace {
    /// What waits goes, rather than being lost with the queues.
    fn drop(&mut self) {
        let now = self.worked;
        for port in self.ports.iter_mut().flatten() {
            port.set_rate(None, now);
            while let Some(packet) = port.dequeue(now, &mut self.held) {
                let mut held = self.held.take(packet.handle);
                pass(&mut self.intercept, &mut held, &packet);
            }
        }
        // A kernel that does not listen has let everything pass already.
        let _ = self.intercept.flush();
    }
}

/// Tells the kernel that a packet goes, and what its queue has written into it.
fn pass(intercept: &mut Intercept, held: &mut Held, packet: &Packet) {
    if packet.tos() == held.headers.tos() {
        intercept.pass(held.way, held.id, None);
    } else {
        weir_wire::set_tos(&mut held.bytes, packet.tos());
        intercept.pass(held.way, held.id, Some(&held.bytes));
    }
}

/// Packets that are taken in at once, so that what is due does not wait for long.
const BATCH: usize = 64;
/// How much lateness is made up for: what goes in a burst waits in the modem.
const CATCH_UP: Duration = Duration::from_millis(4);
