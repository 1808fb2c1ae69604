//! `cake`: shaper, priorities, flow and host isolation, COBALT, in one discipline.
//!
//! Follows Linux 6.12 `net/sched/sch_cake.c` and Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: a
//! comprehensive queue management solution for home gateways" (LANMAN 2018). Packets are sorted into
//! [tins](self::diffserv) by their code points, and in a [tin](self::tin) into [flows](self::flows);
//! what differs is at the end of `docs/queues/cake.md`.

mod ack_filter;
mod capacity;
mod cobalt;
mod config;
mod diffserv;
mod flows;
mod longest;
mod options;
mod shaper;
mod tin;
mod turns;

use weir_core::{Duration, Packet, Time};

pub use self::ack_filter::AckFilter as CakeAckFilter;
use self::capacity::Capacity;
use self::config::Config;
use self::diffserv::Preset;
pub use self::diffserv::{diffserv4_shares, diffserv4_tin};
use self::flows::{FLOWS, Hashes};
use self::longest::Longest;
pub use self::options::{CakeDiffserv, CakeFlowMode, CakeOptions};
use self::shaper::{ByteTime, Shaper};
pub use self::shaper::{Cells as CakeCells, Overhead as CakeOverhead};
use self::tin::{Common, Rates, Tin};
use crate::Device;
use crate::contract::{Backlog, ClassView, DropSink, Qdisc, Stats};
use crate::pool::Pool;
use crate::registry::Discipline;
use crate::tc::{Classifier, QueueSpec, Record, SpecError};

struct Cake {
    preset: &'static Preset,
    tins: Vec<Tin>,
    /// The tin that was served last.
    current: usize,
    common: Common,
    wash: bool,
    /// The bits of a packet's mark that choose its tin; 0 for none.
    fwmark: u32,
    capacity: Option<Capacity>,
    memory_limit: u64,
    scale: Scale,
    hash_key: u64,
    classifier: Classifier,
    major: u16,
    /// A packet that was only looked at, and its tin.
    held: Option<(Packet, usize)>,
    wake_at: Option<Time>,
}

/// Settings from which the parameters of tins follow for a rate.
#[derive(Clone, Copy, Debug)]
struct Scale {
    full_packet: u32,
    target: Duration,
    interval: Duration,
    memory_limit: Option<u64>,
}

impl Cake {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let config = Config::read(spec, device)?;
        let rate = config.rate.map_or(0, weir_core::Rate::as_bytes_per_sec);
        let plans = config.preset.plans.iter().enumerate();
        let mut cake = Self {
            preset: config.preset,
            tins: plans.map(|(number, plan)| Tin::new(plan, number)).collect(),
            current: 0,
            common: Common {
                isolation: config.isolation,
                overhead: config.overhead,
                ingress: config.ingress,
                ack_filter: config.ack_filter,
                shaper: Shaper::new(ByteTime::default()),
                pool: Pool::default(),
                longest: Longest::new(),
                memory: 0,
                dither: device.seed.stream("cake dither"),
                blue: device.seed.stream("cake blue"),
            },
            wash: config.wash,
            fwmark: config.fwmark,
            capacity: config.autorate.then(|| Capacity::new(rate)),
            memory_limit: 0,
            scale: Scale {
                full_packet: device.full_packet(),
                target: config.target,
                interval: config.interval,
                memory_limit: config.memory_limit,
            },
            hash_key: device.seed.derive("cake hosts").get(),
            classifier: Classifier::new(&spec.filters),
            major: spec.major(),
            held: None,
            wake_at: None,
        };
        cake.set_rate(rate);
        Ok(cake)
    }

    /// Sets the bandwidth, in bytes per second; 0 for no limit.
    fn set_rate(&mut self, rate: u64) {
        let Scale { full_packet, target, interval, .. } = self.scale;
        for tin in &mut self.tins {
            tin.rates = Rates::new(tin.plan.share.of(rate), full_packet, target, interval);
        }
        self.common.shaper.byte_time = self.tins[0].rates.byte_time;
        self.memory_limit = self.scale.memory_limit(rate);
    }

    /// Hashes of the packet; a filter may have chosen flow and host (tc-cake(8), "Flow hash
    /// override").
    fn hashes_of(&self, packet: &Packet) -> Hashes {
        let number = |n: u16| (1..=FLOWS as u16).contains(&n).then(|| u32::from(n) - 1);
        let chosen = self.classifier.classify(packet);
        let flow = chosen.and_then(|class| number(class.minor));
        let by_host = chosen.filter(|class| class.major != self.major);
        let host = by_host.and_then(|class| number(class.major));
        Hashes::new(&packet.label, self.common.isolation, self.hash_key, flow, host)
    }

    /// The tin of `packet` (`cake_select_tin`): its mark, its priority or its code point says it.
    fn tin_of(&self, packet: &Packet) -> usize {
        let mark = (packet.label.mark & self.fwmark) >> (self.fwmark.trailing_zeros() % 32);
        let priority = packet.label.priority.map_or(0, weir_core::Priority::get);
        let by_priority =
            if priority >> 16 == u32::from(self.major) { priority & 0xffff } else { 0 };
        let listed = |number: u32| self.preset.tin_listed(number as usize);
        listed(mark)
            .or_else(|| listed(by_priority))
            .unwrap_or_else(|| self.preset.tin_of(packet.dscp))
    }

    /// Makes room, from the longest queue.
    fn drop_from_longest(&mut self, now: Time, sink: &mut dyn DropSink) {
        let longest = self.common.longest.find();
        let tin = &mut self.tins[longest / FLOWS];
        if !tin.drop_head(longest % FLOWS, &mut self.common, now, sink) {
            self.common.longest.forget();
        }
    }

    /// The next packet that may leave, and its tin.
    fn next_packet(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<(Packet, usize)> {
        self.wake_at = None;
        let mut decaying_first = true;
        loop {
            if self.waiting() == 0 {
                return None;
            }
            self.wake_at = self.common.shaper.closed_until(now).map(|opens| opens + AFTER_TIMER);
            if self.wake_at.is_some() {
                return None;
            }
            self.current = if self.common.shaper.byte_time.is_unlimited() {
                self.tin_by_weight()?
            } else {
                self.tin_by_schedule(now)?
            };
            let tin = &mut self.tins[self.current];
            if let Some(packet) = tin.serve(&mut decaying_first, &mut self.common, now, sink) {
                self.common.longest.age();
                return Some((packet, self.current));
            }
        }
    }

    /// With a bandwidth: the highest tin that keeps to its share, else the one that comes nearest.
    fn tin_by_schedule(&self, now: Time) -> Option<usize> {
        let mut best = None;
        for (index, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.has_turns()) {
            let ahead = tin.schedule.checked_since(now).unwrap_or(Duration::ZERO);
            if ahead.is_zero() || best.is_none_or(|(least, _)| ahead <= least) {
                best = Some((ahead, index));
            }
        }
        best.map(|(_, index)| index)
    }

    /// Without: in turn, each by its weight.
    fn tin_by_weight(&mut self) -> Option<usize> {
        if !self.tins.iter().any(Tin::has_turns) {
            return None;
        }
        let mut index = self.current;
        loop {
            let tin = &mut self.tins[index];
            if tin.deficit >= 0 && tin.has_turns() {
                return Some(index);
            }
            if tin.deficit <= 0 {
                tin.deficit += i32::from(tin.plan.quantum);
            }
            index = (index + 1) % self.tins.len();
        }
    }

    /// Packets that wait, the one that was looked at included.
    fn waiting(&self) -> u32 {
        let inside: u32 = self.tins.iter().map(|tin| tin.accounting.backlog().packets).sum();
        inside + u32::from(self.held.is_some())
    }

    fn backlog_of(&self, index: usize) -> Backlog {
        let mut backlog = self.tins[index].accounting.backlog();
        if let Some((packet, tin)) = &self.held
            && *tin == index
        {
            backlog.packets += 1;
            backlog.bytes += u64::from(packet.len);
        }
        backlog
    }
}

impl Scale {
    /// The limit of memory at `rate` bytes per second: four times what arrives within an interval,
    /// 4 MiB at least, and no more than 10 240 full packets take.
    fn memory_limit(&self, rate: u64) -> u64 {
        let by_rate = match (self.memory_limit, rate) {
            (Some(limit), _) => limit,
            (None, 0) => u64::MAX,
            (None, rate) => (rate.saturating_mul(self.interval.as_micros()) / 250_000).max(4 << 20),
        };
        let most = u64::from(LIMIT) * u64::from(self.full_packet);
        by_rate.min(most.max(self.memory_limit.unwrap_or(0)))
    }
}

impl Qdisc for Cake {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let mut packet = *packet;
        let hashes = self.hashes_of(&packet);
        let index = self.tin_of(&packet);
        if self.wash {
            packet.dscp = weir_core::Dscp::BE;
        }
        // Time that passed while nothing waited is lost.
        if self.tins[index].accounting.backlog().packets == 0 {
            if self.waiting() == 0 {
                self.common.shaper.start(now);
            }
            let tin = &mut self.tins[index];
            tin.schedule = tin.schedule.max(now);
        }
        let tin = &mut self.tins[index];
        let (flow, grown) = tin.push(packet, &hashes, &mut self.common, now, sink);
        let rate = self.capacity.as_mut().and_then(|capacity| capacity.on_arrival(grown, now));
        if let Some(rate) = rate {
            self.set_rate(rate);
        }
        self.tins[index].wake(flow, &mut self.common);
        while self.common.memory > self.memory_limit {
            self.drop_from_longest(now, sink);
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        let (packet, tin) = self.held.take().or_else(|| self.next_packet(now, sink))?;
        self.tins[tin].accounting.depart(&packet);
        Some(packet)
    }

    fn peek(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<&Packet> {
        if self.held.is_none() {
            self.held = self.next_packet(now, sink);
        }
        self.held.as_ref().map(|(packet, _)| packet)
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn backlog(&self) -> Backlog {
        let mut sum = Backlog::default();
        for index in 0..self.tins.len() {
            let backlog = self.backlog_of(index);
            sum.packets += backlog.packets;
            sum.bytes += backlog.bytes;
        }
        sum
    }

    fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        for tin in &self.tins {
            sum += tin.accounting.stats();
        }
        sum
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        for place in 0..self.tins.len() {
            let listed = self.tins.iter().position(|tin| tin.plan.listed == place);
            let index = listed.expect("every tin has a place");
            let tin = &self.tins[index];
            let stats = tin.accounting.stats();
            visit(ClassView { name: tin.plan.name, backlog: self.backlog_of(index), stats });
        }
    }
}

pub(crate) static CAKE: Discipline = Discipline {
    name: "cake",
    summary: "shaper, priorities, fairness among flows and hosts, and COBALT in one",
    source: "Linux net/sched/sch_cake.c; Høiland-Jørgensen et al., LANMAN 2018",
    params: CakeOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "cake",
        "cake bandwidth 3mbit diffserv4 memlimit 32Kb wash ack-filter",
        "cake bandwidth 2mbit diffserv8 flowblind conservative ingress rtt 2ms",
        "cake bandwidth 4mbit besteffort dual-srchost docsis autorate-ingress metro",
        "cake precedence hosts memlimit 20Kb ack-filter-aggressive datacentre",
    ],
    build: |spec, device| Ok(Box::new(Cake::new(spec, device)?)),
};

/// A timer has fired before anybody reads the clock. It matters: the shares of tins are often whole
/// parts of the bandwidth, so that a tin's schedule comes up within a nanosecond of the shaper's, by
/// rounding before or behind it. The recordings of Linux 6.12 have all of 11 000 timed departures this
/// much behind their timer.
const AFTER_TIMER: Duration = Duration::from_nanos(1);

/// Packets of full size whose bytes bound the memory (`sch->limit`).
const LIMIT: u32 = 10_240;
