//! `netem`: a line that delays, loses, doubles, corrupts and reorders.
//!
//! Follows Linux `net/sched/sch_netem.c` and iproute2 `tc/q_netem.c`. Three things are done differently: a
//! copy that `duplicate` makes enters this `netem` again and not the root of the tree; a corrupted packet is
//! given up as it would leave, as its receiver would do, since packets here have no bytes; random numbers
//! come from the seed of the run.

mod chance;
mod distribution;
mod params;

use std::collections::VecDeque;

use weir_core::{Packet, Rng, TcpHeader, Time};

use self::chance::{Chance, Correlated, Loss, draw};
use self::distribution::Distribution;
use self::params::{ChanceOptions, LossOptions, NetemOptions};
use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, ClassView, DropReason, DropSink, MarkReason, Qdisc, Stats};
use crate::peeked::{Peeked, TakesNext};
use crate::registry::Discipline;
use crate::tc::{QueueSpec, Record, SpecError};

struct Netem {
    limit: u32,
    rng: Rng,
    duplicate: Chance,
    loss: Loss,
    ecn: bool,
    corrupt: Chance,
    reorder: Chance,
    gap: Option<u32>,
    /// Packets since one was sent ahead.
    since_reordered: u32,
    delay: Jitter,
    line: Option<Cells>,
    slots: Option<OpenSlot>,
    /// By when they leave; those of one instant in the order in which they came.
    waiting: VecDeque<Waiting>,
    /// Packets that were sent ahead, the last of them first.
    ahead: VecDeque<Waiting>,
    child: Option<Box<dyn Qdisc>>,
    /// Packets that wait in the child count too.
    accounting: Accounting,
    wake_at: Option<Time>,
}

#[derive(Clone, Copy)]
struct Waiting {
    leaves: Time,
    packet: Packet,
    is_corrupted: bool,
}

/// A random time.
struct Jitter {
    mean: i64,
    /// Greatest deviation, or the standard one where there is a table.
    width: i64,
    draws: Correlated,
    distribution: Distribution,
}

/// A line that sends whole cells.
#[derive(Clone, Copy, Debug)]
struct Cells {
    bytes_per_sec: u64,
    packet_overhead: i32,
    /// 0 for none.
    cell_size: u32,
    cell_overhead: i32,
}

/// Slots: from least to most apart, or mean and width of a distribution.
struct Slots {
    between: (i64, i64, Option<Distribution>),
    packets: i32,
    bytes: i32,
}

/// The next slot.
struct OpenSlot {
    slots: Slots,
    opens: Time,
    packets_left: i32,
    bytes_left: i32,
}

impl Jitter {
    fn draw(&mut self, rng: &mut Rng) -> i64 {
        if self.width == 0 {
            return self.mean;
        }
        deviate(self.mean, self.width, &self.distribution, self.draws.draw(rng))
    }
}

/// A time around `mean` by the number that was drawn (`tabledist`).
fn deviate(mean: i64, width: i64, distribution: &Distribution, drawn: u32) -> i64 {
    match distribution {
        Distribution::Uniform => i64::from(drawn) % (2 * width) + mean - width,
        Distribution::Table(table) => {
            let step = i64::from(table[drawn as usize % table.len()]);
            let rest = width % TABLE_SCALE * step;
            let rounded = rest + if rest >= 0 { TABLE_SCALE / 2 } else { -TABLE_SCALE / 2 };
            rounded / TABLE_SCALE + width / TABLE_SCALE * step + mean
        }
    }
}

impl Cells {
    /// Nanoseconds that a packet of `len` bytes takes.
    fn time_of(&self, len: u32) -> i64 {
        let mut len = (i64::from(len) + i64::from(self.packet_overhead)).max(0) as u64;
        if self.cell_size > 0 {
            let cell = i64::from(self.cell_size) + i64::from(self.cell_overhead);
            len = len.div_ceil(u64::from(self.cell_size)) * cell.max(0) as u64;
        }
        let nanos = u128::from(len) * 1_000_000_000 / u128::from(self.bytes_per_sec);
        i64::try_from(nanos).unwrap_or(i64::MAX)
    }
}

impl OpenSlot {
    fn open_next(&mut self, now: Time, rng: &mut Rng) {
        let nanos = match &self.slots.between {
            (least, most, None) => {
                least + ((i128::from(most - least) * i128::from(draw(rng))) >> 32) as i64
            }
            (mean, width, Some(shape)) if *width > 0 => deviate(*mean, *width, shape, draw(rng)),
            (mean, ..) => *mean,
        };
        self.opens = later(now, nanos);
        self.packets_left = self.slots.packets;
        self.bytes_left = self.slots.bytes;
    }
}

/// `nanos` after `from`, or before; never is late enough for everything that a slow line would take longer to send.
fn later(from: Time, nanos: i64) -> Time {
    let at = Time::from_nanos(from.as_nanos().saturating_add_signed(nanos));
    at.min(NEVER.max(from))
}

impl Netem {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let mut options: NetemOptions = spec.read(device)?;
        let mut rng = device.seed.stream("netem");
        let delay = options.jitter(&mut rng)?;
        let ecn = options.ecn;
        if ecn && options.loss.is_none() {
            return Err(SpecError::new(
                "netem: `ecn` marks where packets would be lost: write `loss` too",
            ));
        }
        let gap = options.gap(&delay)?;
        let loss = options.loss.unwrap_or_else(|| LossOptions::Random(ChanceOptions::default()));
        let loss = loss.loss(&mut rng);
        let mut chance = |of: Option<ChanceOptions>| of.unwrap_or_default().chance(&mut rng);
        // Their first draws come in this order.
        let duplicate = chance(options.duplicate);
        let corrupt = chance(options.corrupt);
        let reorder = chance(options.reorder);
        let slots = options.slot.map(|slots| OpenSlot {
            opens: Time::ZERO,
            packets_left: slots.packets,
            bytes_left: slots.bytes,
            slots,
        });
        Ok(Self {
            limit: options.limit,
            duplicate,
            loss,
            ecn,
            corrupt,
            reorder,
            gap,
            since_reordered: 0,
            delay,
            line: options.rate,
            slots,
            rng,
            waiting: VecDeque::new(),
            ahead: VecDeque::new(),
            child: spec.child.as_ref().map(|child| child.build(device)).transpose()?,
            accounting: Accounting::default(),
            wake_at: None,
        })
    }

    /// Takes a packet that arrives; `is_copy` says that it is one that was made here.
    fn admit(&mut self, mut packet: Packet, is_copy: bool, now: Time, sink: &mut dyn DropSink) {
        let doubles = !is_copy && self.duplicate.strikes(&mut self.rng);
        let is_lost = self.loss.strikes(&mut self.rng)
            && !(self.ecn && self.accounting.mark(&mut packet, MarkReason::LinkLoss, sink));
        if is_lost && !doubles {
            return self.accounting.xmit_cn(packet, DropReason::LinkLoss, sink);
        }
        let is_corrupted = self.corrupt.strikes(&mut self.rng);
        if self.accounting.backlog().packets >= self.limit {
            return self.accounting.xmit_drop(packet, DropReason::Overlimit, sink);
        }
        // One that is doubled and lost is one.
        if doubles && !is_lost {
            let copy = Packet { handle: sink.on_duplicate(&packet), ..packet };
            self.admit(copy, true, now, sink);
        }
        self.accounting.arrive(&packet);
        self.send_off(packet, is_corrupted, now);
    }

    fn send_off(&mut self, packet: Packet, is_corrupted: bool, now: Time) {
        let may_go_ahead = self.gap.is_some_and(|gap| self.since_reordered + 1 >= gap);
        if may_go_ahead && self.reorder.strikes(&mut self.rng) {
            self.since_reordered = 0;
            self.ahead.push_front(Waiting { leaves: now, packet, is_corrupted });
            return;
        }
        let mut delay = self.delay.draw(&mut self.rng);
        let mut from = now;
        if let Some(line) = self.line {
            // The packet follows the last one that is still here; the wait for that counts into the delay.
            let held = self.waiting.back().map(|one| one.leaves);
            if let Some(last) = held.max(self.ahead.back().map(|one| one.leaves)) {
                let wait = last.as_nanos() as i64 - now.as_nanos() as i64;
                delay = (delay - wait).max(0);
                from = last;
            }
            delay = delay.saturating_add(line.time_of(packet.len));
        }
        self.since_reordered = self.since_reordered.saturating_add(1);
        let leaves = later(from, delay);
        let place = self.waiting.partition_point(|other| other.leaves <= leaves);
        self.waiting.insert(place, Waiting { leaves, packet, is_corrupted });
    }

    /// The packet whose time has come, or else when it does.
    fn take_due(&mut self, now: Time) -> Option<Waiting> {
        let first = self.waiting.front()?;
        let mut at = first.leaves;
        if let Some(slot) = &mut self.slots {
            if slot.opens < first.leaves {
                slot.open_next(now, &mut self.rng);
            }
            at = at.max(slot.opens);
        }
        if at > now {
            self.wake_at = Some(at);
            return None;
        }
        let due = self.waiting.pop_front()?;
        if let Some(slot) = &mut self.slots {
            slot.packets_left = slot.packets_left.saturating_sub(1);
            slot.bytes_left = slot.bytes_left.saturating_sub_unsigned(due.packet.len);
            if slot.packets_left <= 0 || slot.bytes_left <= 0 {
                slot.open_next(now, &mut self.rng);
            }
        }
        Some(due)
    }
}

impl TakesNext for Netem {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        self.admit(*packet, false, now, sink);
    }

    fn take_next(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        self.wake_at = None;
        loop {
            if let Some(Waiting { packet, is_corrupted, .. }) = self.ahead.pop_front() {
                self.accounting.take(&packet);
                if is_corrupted {
                    self.accounting.discard(packet, DropReason::LinkLoss, sink);
                    continue;
                }
                return Some(packet);
            }
            let Some(due) = self.take_due(now) else { break };
            match &mut self.child {
                _ if due.is_corrupted => {
                    self.accounting.take(&due.packet);
                    self.accounting.discard(due.packet, DropReason::LinkLoss, sink);
                }
                None => {
                    self.accounting.take(&due.packet);
                    return Some(due.packet);
                }
                Some(child) => {
                    // The child measures how long it holds a packet, not how long the line does.
                    let packet = Packet { enqueued_at: now, ..due.packet };
                    child.enqueue(
                        &packet,
                        now,
                        &mut Within { accounting: &mut self.accounting, sink },
                    );
                }
            }
        }
        let child = self.child.as_mut()?;
        let packet = child.dequeue(now, &mut Within { accounting: &mut self.accounting, sink });
        match &packet {
            Some(packet) => self.accounting.take(packet),
            None => self.wake_at = self.wake_at.into_iter().chain(child.wake_at()).min(),
        }
        packet
    }

    fn accounting(&mut self) -> Option<&mut Accounting> {
        Some(&mut self.accounting)
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn backlog(&self) -> Backlog {
        self.accounting.backlog()
    }

    fn stats(&self) -> Stats {
        self.accounting.stats()
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        if let Some(child) = &self.child {
            visit(ClassView { name: "1:1", backlog: child.backlog(), stats: child.stats() });
            child.classes(visit);
        }
    }
}

/// The drop sink of a child whose backlog is part of `accounting`.
struct Within<'a> {
    accounting: &'a mut Accounting,
    sink: &'a mut dyn DropSink,
}

impl DropSink for Within<'_> {
    fn on_drop(&mut self, packet: Packet, reason: DropReason) {
        self.accounting.take(&packet);
        self.accounting.discard(packet, reason, self.sink);
    }

    fn on_mark(&mut self, packet: &Packet, reason: MarkReason) {
        self.accounting.count_mark(reason);
        self.sink.on_mark(packet, reason);
    }

    fn tcp_header(&self, packet: &Packet) -> Option<TcpHeader> {
        self.sink.tcp_header(packet)
    }

    fn on_duplicate(&mut self, packet: &Packet) -> u64 {
        self.accounting.arrive(packet);
        self.sink.on_duplicate(packet)
    }
}

pub(crate) static NETEM: Discipline = Discipline {
    name: "netem",
    summary: "a line that delays, loses, doubles, corrupts and reorders",
    source: "Linux net/sched/sch_netem.c; iproute2 tc/q_netem.c, netem/",
    params: NetemOptions::PARAMS,
    class_params: &[],
    takes_child: true,
    examples: &[
        "netem delay 5ms 2ms 25% distribution normal loss 5% duplicate 20% corrupt 3% limit 30",
        "netem delay 2ms reorder 25% 50% gap 3 loss gemodel 10% 30% 90% 2% ecn",
        "netem rate 2mbit 14 48 5 limit 20 duplicate 10% loss state 5% 50% 10% 20% 2%",
        "netem delay 1ms slot 2ms 6ms packets 3 bytes 4000",
        "netem delay 3ms duplicate 10% fq_codel limit 20",
        "htb rate 2mbit netem delay 4ms duplicate 10% reorder 10%",
        "tbf rate 1mbit burst 2000 limit 20000 netem loss 10% duplicate 10%",
    ],
    build: |spec, device| Ok(Box::new(Peeked::new(Netem::new(spec, device)?))),
};

/// `NETEM_DIST_SCALE`.
const TABLE_SCALE: i64 = 8_192;

/// 2^62 ns, 146 years: what comes after it can still be counted.
const NEVER: Time = Time::from_nanos(1 << 62);

#[cfg(test)]
mod tests {
    use weir_core::{Dscp, Ecn, FlowLabel};

    use super::*;
    use crate::{Outcome, replay};

    /// Fates of `count` packets of 1000 bytes, one every `apart` microseconds from 1 ms on.
    fn outcome(spec: &str, count: u64, apart: u64) -> Outcome {
        let qdisc = QueueSpec::parse(spec).unwrap().build(&Device::default()).unwrap();
        let arrivals: Vec<_> = (0..count)
            .map(|n| {
                let at = Time::from_nanos((1_000 + n * apart) * 1_000);
                let packet = Packet {
                    handle: n,
                    enqueued_at: at,
                    label: FlowLabel::default(),
                    len: 1_000,
                    flow_id: 0,
                    dscp: Dscp::BE,
                    ecn: Ecn::Ect0,
                };
                (at, packet)
            })
            .collect();
        replay(qdisc, &arrivals)
    }

    fn delays(outcome: &Outcome) -> Vec<u64> {
        let delay =
            |(left, packet): &(Time, Packet)| left.since(packet.enqueued_at).as_nanos() / 1_000;
        outcome.departures.iter().map(delay).collect()
    }

    /// One slow packet must not hold up all behind it: what is due leaves, whatever came first.
    #[test]
    fn jitter_lets_packets_overtake_one_another() {
        let outcome = outcome("netem delay 10ms 4ms", 1_000, 100);
        let delays = delays(&outcome);
        assert_eq!(delays.len(), 1_000);
        assert!(delays.iter().all(|us| (6_000..14_000).contains(us)), "{delays:?}");
        let mean = delays.iter().sum::<u64>() / 1_000;
        assert!((9_800..10_200).contains(&mean), "{mean}");
        let overtaken =
            outcome.departures.windows(2).filter(|pair| pair[0].1.handle > pair[1].1.handle);
        assert!(overtaken.count() > 300);
    }

    #[test]
    fn a_slot_that_ends_before_it_begins_has_the_length_of_its_beginning() {
        let departures = |spec| outcome(spec, 50, 700).departures;
        assert_eq!(departures("netem slot 20ms 5ms"), departures("netem slot 20ms"));
    }

    /// As `tc` reads them: `slot 2000000` is shown as `slot 2ms`, `delay 2000` as `delay 2ms`.
    #[test]
    fn a_slot_without_a_unit_is_in_nanoseconds_and_a_delay_in_microseconds() {
        let departures = |spec| outcome(spec, 12, 100).departures;
        let slots = departures("netem slot 2ms packets 4");
        assert_eq!(departures("netem slot 2000000 packets 4"), slots);
        let spread = "netem slot distribution normal 2000000 100000 delay 2000";
        assert_eq!(
            departures(spread),
            departures("netem slot distribution normal 2ms 100us delay 2ms")
        );
    }

    #[test]
    fn long_slots_are_spread_over_their_whole_range() {
        let slots = outcome("netem slot 0s 100s packets 1", 400, 1).departures;
        let gaps: Vec<_> = slots.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
        let beyond = gaps.iter().filter(|gap| **gap > weir_core::Duration::from_secs(50)).count();
        assert!((150..250).contains(&beyond), "{beyond} of 399 gaps are above 50 s");
    }

    #[test]
    fn a_normal_distribution_has_its_deviation() {
        let delays = delays(&outcome("netem delay 50ms 2ms distribution normal", 20_000, 100));
        let within = delays.iter().filter(|us| (48_000..52_000).contains(*us)).count();
        // 68.3 % lie within a deviation of the mean.
        assert!((13_400..13_900).contains(&within), "{within}");
    }

    #[test]
    fn a_doubled_packet_arrives_twice_and_no_more() {
        let outcome = outcome("netem delay 1ms duplicate 100%", 3, 10);
        let handles: Vec<_> = outcome.departures.iter().map(|(_, packet)| packet.handle).collect();
        assert_eq!(handles, [0, 0, 1, 1, 2, 2]);
        assert!(outcome.drops.is_empty());
    }

    #[test]
    fn a_corrupted_packet_takes_its_time_and_is_dropped() {
        let outcome = outcome("netem rate 8mbit corrupt 100%", 2, 1);
        assert!(outcome.departures.is_empty());
        let reasons: Vec<_> = outcome.drops.iter().map(|(_, reason)| *reason).collect();
        assert_eq!(reasons, [DropReason::LinkLoss; 2]);
    }

    #[test]
    fn slots_let_packets_go_together() {
        let outcome = outcome("netem slot 2ms packets 4", 12, 100);
        let times: Vec<_> =
            outcome.departures.iter().map(|(left, _)| left.as_nanos() / 1_000).collect();
        assert_eq!(times, [[3_000; 4], [5_000; 4], [7_000; 4]].concat());
    }

    #[test]
    fn cells_take_whole_cells() {
        let line = Cells {
            bytes_per_sec: 1_000_000,
            packet_overhead: 10,
            cell_size: 48,
            cell_overhead: 5,
        };
        // 110 bytes are 3 cells of 53 bytes.
        assert_eq!(line.time_of(100), 159_000);
    }
}
