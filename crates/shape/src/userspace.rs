//! The backend `userspace`: packets of the device in our own disciplines.

use std::os::fd::BorrowedFd;

use weir_core::{Duration, FlowKey, Packet, Rate, Time};
use weir_linux::{GuardNews, HandOver, Intercept};
use weir_packet::{Headers, parse_head};
use weir_qdisc::{Count, Port};
use weir_rate_control::{Side, Traffic};
use weir_sockets::Clock;

use crate::ShapeError;
use crate::classes::Classes;
use crate::due::Due;
use crate::gso::{KeepGso, Segments};
use crate::held::{HeldPacket, HeldPackets};
use crate::settings::Settings;
use crate::shaper::{Found, Shaper, Watch};
use crate::view::SideCounts;
use crate::wakes::SparseFlows;

/// The device's packets and their queues.
pub(crate) struct Userspace {
    intercept: Intercept,
    ports: [Option<Port>; 2],
    /// Which GSO packets of each side stay whole, and of how many bytes at most they are now.
    keep_gso: [Option<(KeepGso, u32)>; 2],
    /// The longest packet that the device sends, in bytes.
    mtu: u32,
    held: HeldPackets,
    hash_key: u64,
    /// Bytes and packets of our own probes, which pass the queues.
    probed: [(u64, u64); 2],
    /// Probes that pass with the next word to the kernel.
    leaving: Vec<FlowKey>,
    framing: weir_core::Framing,
    classes: Option<Classes>,
    clock: Clock,
    /// When everything that was due had left last.
    worked: Time,
    /// When packets that are taken in come to the queue of each side.
    comes_at: [Time; 2],
    /// Bytes that each side held back when the last work was done.
    left_waiting: [u64; 2],
    sparse: SparseFlows,
}

impl Userspace {
    pub fn new(
        settings: &Settings,
        how: HandOver,
        seed: u64,
        clock: Clock,
    ) -> Result<Self, ShapeError> {
        let ports = [settings.port(Side::Egress, seed)?, settings.port(Side::Ingress, seed)?];
        let keep_gso =
            [KeepGso::of(settings, Side::Egress)?, KeepGso::of(settings, Side::Ingress)?];
        let mtu = weir_linux::device_facts(&settings.device)?.mtu;
        let ways = keep_gso.each_ref().map(|side| side.as_ref().map(KeepGso::writes));
        let intercept = Intercept::new(&settings.device, ways, how)?;
        let mut userspace = Self {
            intercept,
            ports,
            keep_gso: keep_gso.map(|side| side.map(|keep| (keep, 0))),
            mtu,
            held: HeldPackets::default(),
            hash_key: seed,
            probed: [(0, 0); 2],
            leaving: Vec::new(),
            clock,
            framing: settings.framing,
            classes: settings.rules.as_ref().map(|it| Classes::new(it, settings)).transpose()?,
            worked: Time::ZERO,
            comes_at: [Time::ZERO; 2],
            left_waiting: [0, 0],
            sparse: SparseFlows::new(settings)?,
        };
        // Everything passes until a rate is set.
        Side::ALL.into_iter().try_for_each(|side| userspace.keep_gso(side, None))?;
        Ok(userspace)
    }

    /// Has GSO packets of a side come whole up to the length that they may have at `rate`, and longer ones cut.
    fn keep_gso(&mut self, side: Side, rate: Option<Rate>) -> Result<(), ShapeError> {
        let Some((keep, kept)) = &mut self.keep_gso[side as usize] else { return Ok(()) };
        let wanted = keep.up_to(rate);
        if wanted == *kept {
            return Ok(());
        }
        *kept = wanted;
        let told = self.intercept.keep_gso(side as usize, wanted);
        told.map_err(|error| ShapeError::io("the kernel no longer listens", error))
    }

    /// Takes one packet in, if one waits.
    fn take_in(&mut self, watch: &mut dyn Watch, now: Time) -> std::io::Result<bool> {
        let Some(packet) = self.intercept.receive()? else { return Ok(false) };
        let (way, id) = (packet.way, packet.id);
        let side = Side::ALL[way];
        // What waited for this process has waited in no queue of the line.
        let came = packet.real_ns.map_or(now, |real| self.clock.of_stamp(Some(real)));
        let headers = match parse_head(packet.bytes, packet.len) {
            Ok(headers) if has_all_of(packet.bytes, &headers, packet.comes_whole) => headers,
            _ if packet.comes_whole && packet.bytes.len() < packet.len => {
                self.intercept.come_whole(way, id);
                return Ok(true);
            }
            _ => {
                // Whatever it is, it is not ours to judge.
                self.intercept.pass(id, None);
                return Ok(true);
            }
        };
        let segments = packet.gso.then(|| Segments::of(&headers, self.mtu));
        if watch.is_probe(&headers.key, side) {
            let probed = &mut self.probed[way];
            probed.0 += self.framing.wire_bytes(headers.total_len as u32);
            probed.1 += 1;
            match side {
                Side::Egress => self.leaving.push(headers.key),
                Side::Ingress => watch.answer_came(&headers.key, came),
            }
            self.intercept.pass(id, None);
            return Ok(true);
        }
        let tcp = headers.tcp_header(packet.bytes);
        watch.comes(&headers.key, tcp.as_ref(), headers.total_len as u64, side, came);
        let handle = self.held.put(id, headers, segments, packet.bytes);
        let mut descriptor = headers.packet(handle, 0, self.hash_key);
        if let Some(segments) = segments {
            descriptor.len = segments.queue_len();
        }
        let mut port =
            self.ports[way].as_mut().expect("only sides that are shaped are handed over");
        if let Some(classes) = &mut self.classes
            && let Some(class) = classes.of(&headers, tcp.as_ref(), side)
        {
            descriptor.dscp = class.dscp();
            self.held.set_class(handle, class);
            port = classes.capped(side, class).unwrap_or(port);
        }
        port.enqueue(&mut descriptor, self.comes_at[way], &mut self.held);
        Ok(true)
    }

    /// Begins to work at `now` on a side: how many packets left.
    ///
    /// Packets that came while others were held back are taken in before any of those leaves, as if they had come
    /// right after the last look: so one of a flow that sends little goes before the others of its queue, as it
    /// would have then, and does not wait for the next look. Where nothing was held back they come now.
    fn begin(&mut self, side: Side, watch: &mut dyn Watch, now: Time) -> usize {
        let holds = self.waiting()[side as usize] > 0 && self.classes.is_none();
        let left = if holds { 0 } else { self.let_go_of(side, watch, now) };
        self.comes_at[side as usize] = if holds { Due::taken_in_at(self.worked, now) } else { now };
        left
    }

    /// Lets everything go that its queue and the rate allow by `now`: how many packets.
    fn let_go(&mut self, watch: &mut dyn Watch, now: Time) -> usize {
        Side::ALL.into_iter().map(|side| self.let_go_of(side, watch, now)).sum()
    }

    fn let_go_of(&mut self, side: Side, watch: &mut dyn Watch, now: Time) -> usize {
        let mut gone = self.drain(side, watch, now);
        if let (Some(port), Some(classes)) = (&mut self.ports[side as usize], &mut self.classes) {
            classes.let_go(side, port, &mut self.held, now);
            gone += self.drain(side, watch, now);
        }
        gone
    }

    fn drain(&mut self, side: Side, watch: &mut dyn Watch, now: Time) -> usize {
        let Some(port) = &mut self.ports[side as usize] else { return 0 };
        let marks = self.classes.as_ref().is_none_or(Classes::mark);
        // None leaves before it came.
        let comes_at = self.comes_at[side as usize];
        let (mut due, mut gone) = (Due::between(comes_at, now), 0);
        while let Some(packet) = due.next(port, &mut self.held) {
            let mut held = self.held.take(packet.handle);
            let tcp = held.headers.tcp_header(&held.bytes);
            watch.goes(&held.headers.key, tcp.as_ref(), side, now);
            self.sparse.left(packet.enqueued_at, comes_at, tcp.as_ref(), now);
            pass(&mut self.intercept, &mut held, &packet, marks);
            self.held.give_back(held);
            gone += 1;
        }
        gone
    }

    /// Whether all sides that held packets back still do, now that what was due has left. Acknowledgements that
    /// leave one after another do not count: nobody waits for them to leave.
    fn is_early(&self) -> bool {
        let waiting = self.waiting();
        let ran_dry = |(&before, &now): (&u64, &u64)| before >= WHOLE_PACKET_BYTES && now == 0;
        waiting != [0, 0] && !self.left_waiting.iter().zip(&waiting).any(ran_dry)
    }

    /// Bytes that each side holds back.
    fn waiting(&self) -> [u64; 2] {
        self.ports.each_ref().map(|port| port.as_ref().map_or(0, |it| it.backlog().bytes))
    }
}

impl Shaper for Userspace {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.intercept.fd())
    }

    /// Queues everything that has come, and lets everything go that is due by then.
    fn work(&mut self, watch: &mut dyn Watch, now: Time) -> Result<Found, ShapeError> {
        let mut left = 0;
        for side in Side::ALL {
            left += self.begin(side, watch, now);
        }
        let fail = |error| ShapeError::io("the kernel no longer hands packets over", error);
        let mut came = 0;
        while came < BATCH && self.take_in(watch, now).map_err(fail)? {
            came += 1;
        }
        // Taking in took its time: what has become due meanwhile goes with the same word to the kernel.
        let after = self.clock.now();
        self.worked = after;
        left += self.let_go(watch, after);
        let early = self.is_early();
        for id in self.held.dropped.drain(..) {
            self.intercept.discard(id);
        }
        self.left_waiting = self.waiting();
        // Packets leave within the call: a probe's delay may come out longer by that, never too short.
        let leave = self.clock.now();
        self.intercept
            .flush()
            .map_err(|error| ShapeError::io("the kernel no longer listens", error))?;
        for key in self.leaving.drain(..) {
            watch.probe_left(&key, leave);
        }
        Ok(match came {
            BATCH => Found::More,
            0 if left == 0 => Found::Nothing,
            _ if early => Found::Early(self.sparse.pause(after)),
            _ => Found::Late,
        })
    }

    fn beat(&mut self) -> Result<Option<GuardNews>, ShapeError> {
        Ok(self.intercept.beat()?)
    }

    fn drop_unread(&mut self) -> Result<(), ShapeError> {
        let fail = |error| ShapeError::io("the kernel no longer hands packets over", error);
        for _ in 0..MAX_UNREAD {
            let Some(packet) = self.intercept.receive().map_err(fail)? else { break };
            let id = packet.id;
            self.intercept.discard(id);
        }
        Ok(())
    }

    fn wake_at(&self) -> Option<Time> {
        let capped = self.classes.iter().flat_map(Classes::ports);
        self.ports.iter().flatten().chain(capped).filter_map(Port::wake_at).min()
    }

    fn set_rate(&mut self, side: Side, rate: Option<Rate>, now: Time) -> Result<(), ShapeError> {
        if let Some(port) = &mut self.ports[side as usize] {
            port.set_rate(rate, now);
        }
        self.keep_gso(side, rate)
    }

    fn look(&mut self) -> Result<(), ShapeError> {
        Ok(())
    }

    fn come_again(&mut self, _: &str) -> Result<(), ShapeError> {
        // The rules that hand packets over know the device by its name.
        Ok(())
    }

    fn traffic(&self, side: Side) -> Option<Traffic> {
        let port = self.ports[side as usize].as_ref()?;
        let passed = port.shaped_traffic().expect("it is shaped");
        let crossed = match side {
            Side::Egress => passed.departed,
            Side::Ingress => passed.arrived,
        };
        let (bytes, packets) = self.probed[side as usize];
        // What waits for its class' own rate has come all the same.
        let waiting = self.classes.as_ref().filter(|_| side == Side::Ingress);
        let waiting = waiting.map_or_else(Count::default, |classes| classes.waiting(side));
        Some(Traffic {
            bytes: crossed.bytes + bytes + waiting.bytes,
            packets: crossed.packets + packets + waiting.packets,
            backlog_bytes: port.backlog().bytes,
        })
    }

    fn counts(&mut self, side: Side) -> Option<SideCounts> {
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

    /// Does nothing: no setting was changed, and our own queues go when this is dropped.
    fn restore(&mut self) -> Result<(), ShapeError> {
        Ok(())
    }

    fn missed(&self) -> u64 {
        self.intercept.missed()
    }

    fn probe_priority(&self) -> Option<u32> {
        None
    }
}

impl Drop for Userspace {
    /// Lets all waiting packets go, so that they are not lost with the queues.
    fn drop(&mut self) {
        // Not when work was done last: an error may have ended it after packets were taken in.
        let now = self.clock.now();
        if let Some(classes) = &mut self.classes {
            classes.open(now);
            for (side, port) in Side::ALL.into_iter().zip(&mut self.ports) {
                if let Some(port) = port {
                    classes.let_go(side, port, &mut self.held, now);
                }
            }
        }
        for port in self.ports.iter_mut().flatten() {
            port.set_rate(None, now);
            while let Some(packet) = port.dequeue(now, &mut self.held) {
                let mut held = self.held.take(packet.handle);
                let marks = self.classes.as_ref().is_none_or(Classes::mark);
                pass(&mut self.intercept, &mut held, &packet, marks);
            }
        }
        // A kernel that does not listen has let everything pass already.
        let _ = self.intercept.flush();
    }
}

/// Tells the kernel that a packet goes, and what its queue has written into it; the code point of its class
/// only where classes `mark`.
fn pass(intercept: &mut Intercept, held: &mut HeldPacket, packet: &Packet, marks: bool) {
    let mut tos = packet.tos();
    if held.class.is_some() && !marks {
        tos = tos & ECN | held.headers.tos() & !ECN;
    }
    if tos == held.headers.tos() {
        intercept.pass(held.id, None);
    } else {
        let whole = held.bytes.len() >= held.headers.total_len;
        assert!(whole, "{tos:#x} is written into a packet of which no more than a head is here");
        weir_packet::set_tos(&mut held.bytes, tos);
        intercept.pass(held.id, Some(&held.bytes));
    }
}

/// Whether the headers of a packet are all in its first bytes: those of a packet that `comes_whole` if need be
/// may go on behind them.
const fn has_all_of(bytes: &[u8], headers: &Headers, comes_whole: bool) -> bool {
    let need = match comes_whole {
        true => headers.transport_offset + MAX_TRANSPORT_HEADER_BYTES,
        false => headers.total_len,
    };
    bytes.len() >= if need < headers.total_len { need } else { headers.total_len }
}

/// A header of TCP with all options.
const MAX_TRANSPORT_HEADER_BYTES: usize = 60;
/// The two bits of ECN in a TOS byte.
const ECN: u8 = 0b11;
/// Packets that are taken in at once, so that what is due does not wait for long.
const BATCH: usize = 64;
/// More packets than the socket's buffer holds unread.
const MAX_UNREAD: usize = 1 << 16;
/// More than an acknowledgement has, less than a segment.
const WHOLE_PACKET_BYTES: u64 = 1_000;
