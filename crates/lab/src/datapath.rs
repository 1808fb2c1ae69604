//! The live data path: one thread that carries packets between the two ends through the scenario's hops.
//!
//! A packet is queued at the moment at which it was read. From there on the path's own events decide, at
//! the times that they compute, not at those at which the thread got to them: a late wake-up delays what
//! leaves, never what comes after it.

use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use weir_core::{Duration, Packet, Seed, Ticker, Time};
use weir_packet::{Coalescer, Limits, Segmenter, Virtio};
use weir_path::{End, FlowDrops, Path, QueueSampler, Trace};
use weir_scenario::file::HopChange;
use weir_scenario::{EmulatorRow, MAX_CLIENT_PATHS, QueueRow, Scenario, TcpRow, ThroughputRow};
use weir_sockets::Clock;

use weir_linux::{
    LinuxError, MAX_GRO_SEGMENTS, MAX_PACKET_BYTES, PacketDevice, go_as_others, go_first,
    thread_cpu_ns,
};

use crate::buffers::{Buffers, index_of};
use crate::control::Order;
use crate::hosts::Hosts;
use crate::interface::Interface;
use crate::lateness::{LATE, Lateness, Standstills};
use crate::pcap::Capture;
use crate::router::Router;
use crate::rows::{OwnedQueueRow, Rows};
use crate::waking::Waking;

/// Settings of a data path.
pub struct Settings {
    /// The run's clock.
    pub clock: Clock,
    /// The run's seed.
    pub seed: Seed,
    /// Where to write the packets that leave the bottleneck, if anywhere.
    pub capture: Option<PathBuf>,
    /// Changes of lines that are ordered on the way.
    pub orders: Option<Receiver<Order>>,
}

/// A sample of the data path.
#[derive(Debug)]
pub enum PathSample {
    /// The state of a queue or class.
    Queue(Box<OwnedQueueRow>),
    /// How well times were kept.
    Emulator(EmulatorRow),
    /// Bytes that arrived over a connection.
    Throughput(ThroughputRow),
    /// The state of a connection's sender.
    Tcp(TcpRow),
}

impl OwnedQueueRow {
    /// The row that borrows its names from this one.
    #[must_use]
    pub fn row(&self) -> QueueRow<'_> {
        QueueRow { queue: &self.queue, class: &self.class, ..self.numbers }
    }
}

/// Report of a data path at its end.
#[derive(Clone, Debug)]
pub struct PathReport {
    /// Packets handed over to the ends.
    pub packets: u64,
    /// How much later than computed: the median, the 99th and the 99.9th percentile.
    pub late: [Duration; 3],
    /// Time in which it stood still.
    pub stood_still: Duration,
    /// Time from its start to its end.
    pub worked: Duration,
    /// Share of one processor that it used, 0 to 1.
    pub cpu_share: f64,
    /// Packets that were no IP, or damaged.
    pub malformed: u64,
    /// Packets to or from addresses that no host of the scenario has, or of another path of the client.
    pub unroutable: u64,
    /// Packets that a kernel did not take.
    pub refused: u64,
    /// Packets that were lost on their way from a kernel because they were not read in time.
    pub overrun: u64,
    /// Counts of dropped and marked packets by flow.
    pub flows: Vec<FlowDrops>,
}

/// A data path at work, in a thread of its own.
pub struct DataPath {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<PathReport, LinuxError>>,
}

impl DataPath {
    /// Starts to carry packets between `hosts`, which the thread keeps. `traces` gives the recordings that
    /// the scenario names; samples go to `samples`.
    ///
    /// # Errors
    /// If the capture cannot be written or there is no thread to be had.
    pub fn start(
        scenario: &Scenario,
        hosts: &mut Hosts,
        traces: &dyn Fn(&str) -> Arc<Trace>,
        settings: Settings,
        samples: Sender<PathSample>,
    ) -> Result<Self, LinuxError> {
        let Settings { clock, seed, capture, orders } = settings;
        let traffic = Buffers::new(scenario.flows.len());
        let path = Path::new(scenario, traces, seed, traffic, 0);
        let devices = hosts.take_devices();
        let finish = devices.iter().any(|device| !device.takes_super_packets());
        let hash_key = seed.derive("flow hash").get();
        let paths = &hosts.paths;
        let capture = capture.map(|file| Capture::create(&file, paths)).transpose()?;
        let sides = Interface::all(paths).into_iter().zip(devices).map(|(interface, device)| {
            Side { interface, device, outbox: Vec::new(), empty: Time::ZERO, ready: true }
        });
        let stop = Arc::new(AtomicBool::new(false));
        let mut carrier = Carrier {
            router: Router::new(path, scenario, paths.clone(), hash_key, finish),
            sides: sides.collect(),
            clock,
            lateness: Lateness::new(),
            standstills: Standstills::new(Time::ZERO),
            waking: if clock.is_virtual() { Waking::in_virtual_time() } else { Waking::default() },
            stands: clock.is_virtual().then(|| clock.now()),
            queue_sampler: QueueSampler::default(),
            queue_ticker: Ticker::new(scenario.sampling.queue_ns),
            samples,
            capture,
            orders,
            stop: Arc::clone(&stop),
            packets: 0,
            refused: 0,
            buffer: vec![0; MAX_PACKET_BYTES + 1],
        };
        let thread = std::thread::Builder::new()
            .name("data path".to_owned())
            .spawn(move || carrier.run())
            .map_err(|error| LinuxError::io("cannot start the data path", error))?;
        go_as_others();
        Ok(Self { stop, thread })
    }

    /// Whether the data path has ended by itself, which it does only when it fails.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the data path; what is under way is lost.
    ///
    /// # Errors
    /// The first error of the data path while it ran.
    pub fn finish(self) -> Result<PathReport, LinuxError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// An interface, and what the data path knows of it.
struct Side {
    interface: Interface,
    device: Box<dyn PacketDevice>,
    /// Packets for it that are due, with the time at which they were.
    outbox: Vec<(Packet, Time)>,
    /// Until when nothing waited at its device, as far as is known.
    empty: Time,
    /// Whether something may wait there.
    ready: bool,
}

/// Puts packets that are due into the outboxes of `sides`, which are [all interfaces](Interface::all).
fn into_outboxes(sides: &mut [Side]) -> impl FnMut(Packet, Interface, Time) + '_ {
    let server = sides.len() - 1;
    move |packet, to, due| {
        let place = if to.end == End::Server { server } else { to.path as usize };
        sides[place].outbox.push((packet, due));
    }
}

/// State of the data path's thread.
struct Carrier {
    router: Router,
    /// Those of the client's paths, then the server's.
    sides: Vec<Side>,
    clock: Clock,
    lateness: Lateness,
    standstills: Standstills,
    waking: Waking,
    /// Where the clock has stood since the last wait, if time is virtual.
    stands: Option<Time>,
    queue_sampler: QueueSampler,
    queue_ticker: Option<Ticker>,
    samples: Sender<PathSample>,
    capture: Option<Capture>,
    orders: Option<Receiver<Order>>,
    stop: Arc<AtomicBool>,
    packets: u64,
    refused: u64,
    buffer: Vec<u8>,
}

impl Carrier {
    fn run(&mut self) -> Result<PathReport, LinuxError> {
        // Timers that fire when they are due, not up to 50 us later.
        prctl::set_timerslack(1).map_err(|error| LinuxError::io("no exact timers", error))?;
        go_first();
        let emulator = Ticker::new(EMULATOR_EVERY.as_nanos()).expect("not zero");
        self.lateness.start();
        let started = self.now();
        self.sides.iter_mut().for_each(|side| side.empty = started);
        self.waking.at_rest(started);
        self.standstills = Standstills::new(started);
        let cpu_started = thread_cpu_ns();
        let mut next_row = emulator.after(started);
        let mut next_queue = self.queue_ticker.map_or(Time::MAX, |ticker| ticker.after(started));
        while !self.stop.load(Ordering::Relaxed) {
            let now = self.advance()?;
            self.standstills.turns(now);
            self.obey()?;
            self.read_all()?;
            if now >= next_queue {
                self.sample_queues(now);
                next_queue = self.queue_ticker.map_or(Time::MAX, |ticker| ticker.after(now));
            }
            if now >= next_row {
                let row = self.lateness.row(now);
                // Nobody listens any more once the run has ended.
                let _ = self.samples.send(PathSample::Emulator(row));
                next_row = emulator.after(now);
            }
            self.wait(next_queue.min(next_row))?;
        }
        let ended = self.now();
        let _ = self.samples.send(PathSample::Emulator(self.lateness.row(ended)));
        if let Some(capture) = self.capture.take() {
            capture.finish()?;
        }
        let cpu = thread_cpu_ns() - cpu_started;
        let worked = ended.since(started);
        Ok(PathReport {
            packets: self.packets,
            late: [0.5, 0.99, 0.999].map(|share| self.lateness.quantile(share)),
            stood_still: self.standstills.total(),
            worked,
            cpu_share: cpu as f64 / worked.as_nanos().max(1) as f64,
            malformed: self.router.malformed,
            unroutable: self.router.unroutable,
            refused: self.refused,
            overrun: self.sides.iter_mut().map(|side| side.device.take_overrun()).sum(),
            flows: self.router.path.traffic.flows.clone(),
        })
    }

    fn now(&self) -> Time {
        self.stands.unwrap_or_else(|| self.clock.now())
    }

    /// Carries out everything that is due, and hands what has arrived to the kernels, unless that is better done with more.
    fn advance(&mut self) -> Result<Time, LinuxError> {
        let now = self.now();
        self.router.advance(now, into_outboxes(&mut self.sides));
        self.flush_late(now, self.waking.hold(now))?;
        if let Some(capture) = &mut self.capture {
            let waiting = self.sides.iter().filter_map(|side| side.outbox.first());
            let oldest = waiting.map(|&(_, due)| due).min();
            capture.write_until(oldest.unwrap_or(now))?;
        }
        Ok(now)
    }

    /// Hands to the kernels what has arrived, where the first of it did at least `hold` before `now`.
    fn flush_late(&mut self, now: Time, hold: Duration) -> Result<(), LinuxError> {
        for side in 0..self.sides.len() {
            let oldest = self.sides[side].outbox.first().map(|&(_, due)| due);
            if oldest.is_some_and(|due| now.since(due) >= hold) {
                self.flush(side)?;
            }
        }
        Ok(())
    }

    /// Changes the lines as somebody has ordered since this was called before.
    fn obey(&mut self) -> Result<(), LinuxError> {
        while let Some(order) = self.orders.as_ref().and_then(|orders| orders.try_recv().ok()) {
            // What was due before happens before.
            let now = self.advance()?;
            for HopChange { hop, to } in order.changes {
                self.router.path.change_line(hop, to, now);
            }
            self.router.hand_over(now, into_outboxes(&mut self.sides));
            // Whoever ordered may be gone.
            let _ = order.done.send(now);
        }
        Ok(())
    }

    /// Reads what the kernels have sent, a few packets from each that may have some.
    fn read_all(&mut self) -> Result<(), LinuxError> {
        for side in 0..self.sides.len() {
            if !self.sides[side].ready {
                continue;
            }
            let mut looked = self.now();
            for _ in 0..READS {
                let received = match self.sides[side].device.receive(&mut self.buffer) {
                    Ok(None) => {
                        self.sides[side].empty = looked;
                        self.sides[side].ready = false;
                        break;
                    }
                    Ok(Some(received)) => received,
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                        self.router.malformed += 1;
                        continue;
                    }
                    Err(error) => return Err(LinuxError::io("cannot read from a device", error)),
                };
                // What was due before this packet came happens before it.
                let now = self.advance()?;
                let (virtio, len) = received;
                let Side { interface, empty, .. } = self.sides[side];
                let waited = waited(empty, now);
                self.router.take_in(&mut self.buffer[..len], &virtio, interface, now, waited);
                looked = now;
                self.router.hand_over(now, into_outboxes(&mut self.sides));
            }
        }
        Ok(())
    }

    /// Sleeps until something may arrive, the next sample, or the next packet; not while a side may have more.
    fn wait(&mut self, sample: Time) -> Result<(), LinuxError> {
        let due = self.router.path.look_at().unwrap_or(Time::MAX).min(sample);
        let now = self.now();
        let all_empty = !self.sides.iter().any(|side| side.ready);
        if all_empty && due > now {
            self.waking.at_rest(now);
        }
        let Some(sleep) = all_empty.then(|| self.waking.sleep(now, due)).flatten() else {
            // In virtual time nothing has come meanwhile. Where time passes, one that never runs empty would
            // otherwise keep the others from being read.
            let passes = !self.clock.is_virtual();
            self.sides.iter_mut().for_each(|side| side.ready |= passes);
            return Ok(());
        };
        self.flush_late(now, Duration::ZERO)?;
        self.standstills.sleeps(sleep);
        let last = self.sides.len() - 1;
        let mut fds: [PollFd<'_>; MAX_INTERFACES] = std::array::from_fn(|side| {
            PollFd::new(self.sides[side.min(last)].device.fd(), PollFlags::POLLIN)
        });
        let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(sleep.as_nanos()));
        match ppoll(&mut fds[..=last], Some(timeout), None) {
            Ok(packets) => {
                let woke = self.clock.now();
                self.waking.at_rest(woke);
                self.stands = self.stands.map(|_| woke);
                // Who sleeps for longer than it wanted was kept from working, and does not know what came when.
                let empty = woke.min(now + sleep);
                let ready = fds.map(|fd| fd.any().unwrap_or(true));
                for (side, is_ready) in self.sides.iter_mut().zip(ready) {
                    (side.empty, side.ready) = (empty, is_ready);
                }
                if packets == 0 {
                    self.waking.woken(woke, due);
                }
                Ok(())
            }
            Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(LinuxError::io("cannot wait for packets", error)),
        }
    }

    /// Hands what is due to the kernel at `side`: alone, or joined where segments of a flow follow each
    /// other.
    fn flush(&mut self, side: usize) -> Result<(), LinuxError> {
        let mut outbox = std::mem::take(&mut self.sides[side].outbox);
        if let Some(capture) = &mut self.capture {
            for (packet, due) in &outbox {
                let end = self.sides[side].interface.end;
                capture.keep(&self.router, packet, end, *due);
            }
        }
        if outbox.len() > 1 && self.sides[side].device.takes_super_packets() {
            self.send_coalesced(side, &outbox)?;
        } else {
            for (packet, due) in &outbox {
                self.send(side, packet, *due)?;
            }
        }
        outbox.clear();
        self.sides[side].outbox = outbox;
        Ok(())
    }

    fn send(&mut self, side: usize, packet: &Packet, due: Time) -> Result<(), LinuxError> {
        let mut head = [0; Segmenter::MAX_HEADERS];
        let Side { interface, device, .. } = &mut self.sides[side];
        let written = self.router.finish(packet, interface.end, &mut head);
        let buffer = self.router.path.traffic.get(packet.handle);
        let result = match buffer.segmenter {
            None => {
                let virtio = Virtio { checksum: buffer.checksum, gso: None, hdr_len: 0 };
                device.send(&virtio, &buffer.bytes, &[])
            }
            Some(segmenter) => {
                let segment = segmenter.segment(index_of(packet.handle)).expect("it was cut so");
                let checksum = self.router.checksum_of(&segmenter);
                let virtio = Virtio { checksum, gso: None, hdr_len: 0 };
                let payload = IoSlice::new(&buffer.bytes[segment.payload()]);
                device.send(&virtio, &head[..written], &[payload])
            }
        };
        self.handed_over(result, &[(*packet, due)])
    }

    /// Hands over `outbox`. Segments of one flow that continue each other are coalesced, as GRO does.
    fn send_coalesced(&mut self, side: usize, outbox: &[(Packet, Time)]) -> Result<(), LinuxError> {
        let end = self.sides[side].interface.end;
        let mut head = [0; Segmenter::MAX_HEADERS];
        let mut open: Vec<GroBatch> = Vec::new();
        for &(packet, due) in outbox {
            if self.router.path.traffic.get(packet.handle).segmenter.is_none() {
                // What the flow has sent before must not be overtaken.
                if let Some(at) = open.iter().position(|batch| batch.flow == packet.label.hash) {
                    let batch = open.swap_remove(at);
                    self.send_batch(side, &batch)?;
                }
                self.send(side, &packet, due)?;
                continue;
            }
            let written = self.router.finish(&packet, end, &mut head);
            let found = open.iter().position(|batch| batch.flow == packet.label.hash);
            if let Some(at) = found {
                if open[at].take(&head[..written], (packet, due)) {
                    continue;
                }
                let batch = open.swap_remove(at);
                self.send_batch(side, &batch)?;
            }
            match Coalescer::start(&head[..written], LIMITS) {
                Some(coalescer) => {
                    let flow = packet.label.hash;
                    open.push(GroBatch { flow, coalescer, packets: vec![(packet, due)] });
                }
                None => self.send(side, &packet, due)?,
            }
        }
        for batch in &open {
            self.send_batch(side, batch)?;
        }
        Ok(())
    }

    fn send_batch(&mut self, side: usize, batch: &GroBatch) -> Result<(), LinuxError> {
        let mut head = [0; Coalescer::MAX_HEADERS];
        let (written, virtio) = batch.coalescer.finish(&mut head).expect("the longest headers fit");
        let traffic = &self.router.path.traffic;
        let mut payload = [IoSlice::new(&[]); MAX_GRO_SEGMENTS];
        for (part, (packet, _)) in payload.iter_mut().zip(&batch.packets) {
            let buffer = traffic.get(packet.handle);
            let segmenter = buffer.segmenter.expect("only segments are joined");
            let segment = segmenter.segment(index_of(packet.handle)).expect("it was cut so");
            *part = IoSlice::new(&buffer.bytes[segment.payload()]);
        }
        let payload = &payload[..batch.packets.len()];
        let result = self.sides[side].device.send(&virtio, &head[..written], payload);
        self.handed_over(result, &batch.packets)
    }

    /// Notes that the kernel has taken `packets`, or why not.
    fn handed_over(
        &mut self,
        result: io::Result<()>,
        packets: &[(Packet, Time)],
    ) -> Result<(), LinuxError> {
        let now = self.now();
        for (packet, due) in packets {
            let waited = self.router.path.traffic.get(packet.handle).route.waited;
            self.router.path.traffic.release(packet.handle);
            self.lateness.note(now.since(*due) + waited);
        }
        self.packets += packets.len() as u64;
        match result {
            Ok(()) => Ok(()),
            // What one packet did, or a kernel short of memory, must not end the run; it is told.
            Err(error) if REFUSALS.contains(&error.kind()) || is_full(&error) => {
                self.refused += packets.len() as u64;
                Ok(())
            }
            Err(error) => Err(LinuxError::io("cannot write to a device", error)),
        }
    }

    fn sample_queues(&mut self, now: Time) {
        let mut rows = Rows::default();
        self.queue_sampler.sample(self.router.path.hops_mut(), now, &mut rows);
        for row in rows.queues {
            let _ = self.samples.send(PathSample::Queue(Box::new(row)));
        }
    }
}

/// How long a packet has waited that is read at `now`: it came at any time since nothing was there, at `empty`. A turn of
/// work that is too short to warn of does not count.
fn waited(empty: Time, now: Time) -> Duration {
    let away = now.since(empty);
    if away > LATE { away / 2 } else { Duration::ZERO }
}

/// Segments of one flow that will be handed to the kernel as one GSO packet.
struct GroBatch {
    /// The hash of the flow.
    flow: u32,
    coalescer: Coalescer,
    packets: Vec<(Packet, Time)>,
}

impl GroBatch {
    /// Takes a packet with these headers in, if it continues the batch.
    fn take(&mut self, head: &[u8], packet: (Packet, Time)) -> bool {
        let continues = self.packets.len() < MAX_GRO_SEGMENTS && self.coalescer.push(head);
        if continues {
            self.packets.push(packet);
        }
        continues
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN | libc::ENOMEM))
}

const REFUSALS: &[io::ErrorKind] = &[io::ErrorKind::InvalidInput, io::ErrorKind::InvalidData];
/// Packets read from one end before the other has its turn.
const READS: usize = 16;
const LIMITS: Limits =
    Limits { max_len: MAX_PACKET_BYTES, max_segments: MAX_GRO_SEGMENTS, udp: false };
const EMULATOR_EVERY: Duration = Duration::from_millis(100);
/// Those of a client with as many paths as it may have, and the server's.
const MAX_INTERFACES: usize = MAX_CLIENT_PATHS + 1;
