//! One tin: flows that are served in turn, each under COBALT.

use weir_core::{Duration, Packet, Rng, Time};

use super::ack_filter::AckFilter;
use super::cobalt::CobaltParams;
use super::diffserv::Plan;
use super::flows::{FLOWS, Flows, Hashes, Isolation, Standing};
use super::longest::Longest;
use super::shaper::{ByteTime, Overhead, Shaper};
use super::turns::{Turn, Turns};
use crate::accounting::Accounting;
use crate::contract::{DropReason, DropSink, MarkReason};
use crate::linux::truesize;
use crate::pool::Pool;

/// A tin at work.
#[derive(Debug)]
pub(super) struct Tin {
    pub plan: &'static Plan,
    /// Its number: queues of tin 1 come behind those of tin 0 in [`Longest`].
    number: usize,
    pub accounting: Accounting,
    pub flows: Flows,
    turns: Turns,
    /// How many flows wait for their turn, or have just had it.
    sparse_flows: u32,
    bulk_flows: u32,
    /// When it has had its share of the bandwidth.
    pub schedule: Time,
    /// Deficit in bytes where there is no bandwidth to share.
    pub deficit: i32,
    pub rates: Rates,
}

/// Parameters that follow from a tin's rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rates {
    pub byte_time: ByteTime,
    /// Bytes on the wire that a flow may send in a turn.
    pub quantum: u16,
    pub cobalt: CobaltParams,
}

/// Parameters that all tins share.
#[derive(Debug)]
pub(super) struct Common {
    pub isolation: Isolation,
    pub overhead: Overhead,
    /// Whether the queue stands behind the bottleneck, where dropped packets have passed it too.
    pub ingress: bool,
    pub ack_filter: AckFilter,
    pub shaper: Shaper,
    pub pool: Pool,
    pub longest: Longest,
    /// Memory of waiting packets, as the kernel accounts it.
    pub memory: u64,
    pub dither: Rng,
    pub blue: Rng,
}

/// Result of one look at a flow.
enum Served {
    Packet(Packet),
    /// The flow was empty and has left its list.
    Empty,
    /// A packet was dropped, and paid for.
    Dropped,
}

impl Rates {
    /// The rates of a tin of `bytes_per_sec`, 0 for no limit; `full_packet` is the device's.
    pub fn new(bytes_per_sec: u64, full_packet: u32, target: Duration, interval: Duration) -> Self {
        let byte_time = ByteTime::of(bytes_per_sec);
        let quantum = match bytes_per_sec {
            0 => MAX_QUANTUM_BYTES,
            rate => (rate >> 12).clamp(MIN_QUANTUM_BYTES, MAX_QUANTUM_BYTES.into()) as u16,
        };
        let cobalt = CobaltParams::new(target, interval, byte_time.time_of(full_packet));
        Self { byte_time, quantum, cobalt }
    }
}

impl Tin {
    pub fn new(plan: &'static Plan, number: usize) -> Self {
        Self {
            plan,
            number,
            accounting: Accounting::default(),
            flows: Flows::default(),
            turns: Turns::new(),
            sparse_flows: 0,
            bulk_flows: 0,
            schedule: Time::ZERO,
            deficit: 0,
            rates: Rates::default(),
        }
    }

    /// Whether any flow has a turn to come.
    pub fn has_turns(&self) -> bool {
        self.sparse_flows + self.bulk_flows > 0
    }

    /// Appends `packet`, which has just arrived, to the queue that it belongs to; the
    /// filter may take another packet out. Returns the flow, which is to be [woken](Self::wake), and by how many bytes
    /// the tin has grown.
    pub fn push(
        &mut self,
        packet: Packet,
        hashes: &Hashes,
        common: &mut Common,
        now: Time,
        sink: &mut dyn DropSink,
    ) -> (usize, i64) {
        let index = self.flows.find(hashes, common.isolation);
        let list = &mut self.flows.get(index).packets;
        self.accounting.arrive(&packet);
        common.memory += u64::from(truesize(&packet));
        common.pool.push(list, &packet);
        let mut less = 0;
        if let Some(ack) = common.ack_filter.apply(&mut common.pool, list, &packet, &*sink) {
            less = ack.len;
            self.accounting.take(&ack);
            self.accounting.discard(ack, DropReason::AckFiltered, sink);
            common.memory -= u64::from(truesize(&ack));
            if common.ingress {
                self.charge(&ack, false, common, now);
            }
        }
        common.longest.add(self.queue(index), packet.len, less);
        (index, i64::from(packet.len) - i64::from(less))
    }

    /// Flow `index` has got a packet.
    pub fn wake(&mut self, index: usize, common: &mut Common) {
        let isolation = common.isolation;
        match self.flows.get(index).standing {
            Standing::Free | Standing::Decaying => {
                self.turns.move_to_end(index, Turn::New);
                self.sparse_flows += 1;
                let share =
                    self.flows.share(index, self.rates.quantum, isolation, &mut common.dither);
                let flow = self.flows.get(index);
                flow.standing = Standing::Sparse;
                flow.deficit = share;
            }
            Standing::SparseWaiting => self.become_bulk(index, isolation),
            Standing::Sparse | Standing::Bulk => {}
        }
    }

    /// Drops the packet at the head of flow `index` because memory is short; `false` if there is none.
    pub fn drop_head(
        &mut self,
        index: usize,
        common: &mut Common,
        now: Time,
        sink: &mut dyn DropSink,
    ) -> bool {
        let Some(packet) = self.pop(index, common) else { return false };
        self.flows.get(index).cobalt.on_overflow(&self.rates.cobalt, now);
        if common.ingress {
            self.charge(&packet, false, common, now);
        }
        self.accounting.discard(packet, DropReason::Overmemory, sink);
        true
    }

    /// Serves flows until one yields a packet, or turns out to be empty. `decaying_first` is whether a
    /// flow that is being forgotten may be looked at before the others: once each time that the
    /// discipline is asked.
    pub fn serve(
        &mut self,
        decaying_first: &mut bool,
        common: &mut Common,
        now: Time,
        sink: &mut dyn DropSink,
    ) -> Option<Packet> {
        loop {
            let decaying = self.turns.first(Turn::Decaying);
            let index = decaying
                .filter(|_| *decaying_first)
                .or_else(|| self.turns.first(Turn::New))
                .or_else(|| self.turns.first(Turn::Old))
                .or(decaying)?;
            *decaying_first = false;
            if self.flows.get(index).deficit <= 0 {
                self.end_turn(index, common);
                continue;
            }
            match self.take(index, common, now, sink) {
                Served::Packet(packet) => return Some(packet),
                Served::Empty => return None,
                Served::Dropped => {}
            }
        }
    }

    /// A packet was sent, or dropped in its place: the bandwidth that it takes is paid for. Returns its
    /// bytes on the wire.
    fn charge(&mut self, packet: &Packet, sent: bool, common: &mut Common, now: Time) -> u32 {
        let wire = common.overhead.wire_len(packet);
        if !common.shaper.byte_time.is_unlimited() {
            let time = self.rates.byte_time.time_of(wire);
            // A tin that is behind its schedule catches up, but is never more than a packet ahead.
            self.schedule = if self.schedule < now {
                self.schedule + time
            } else {
                self.schedule.max(now + time)
            };
            common.shaper.charge(wire, sent);
        }
        wire
    }

    fn become_bulk(&mut self, index: usize, isolation: Isolation) {
        self.sparse_flows -= 1;
        self.bulk_flows += 1;
        self.flows.get(index).standing = Standing::Bulk;
        self.flows.count_bulk(index, isolation);
    }

    /// Flow `index` has used up its turn and goes behind the others.
    fn end_turn(&mut self, index: usize, common: &mut Common) {
        let isolation = common.isolation;
        let flow = self.flows.get(index);
        if flow.standing == Standing::Sparse {
            if flow.packets.is_empty() {
                flow.standing = Standing::SparseWaiting;
            } else {
                self.become_bulk(index, isolation);
            }
        }
        let share = self.flows.share(index, self.rates.quantum, isolation, &mut common.dither);
        self.flows.get(index).deficit += share;
        self.turns.move_to_end(index, Turn::Old);
    }

    /// The next packet of flow `index` that COBALT lets pass.
    fn take(
        &mut self,
        index: usize,
        common: &mut Common,
        now: Time,
        sink: &mut dyn DropSink,
    ) -> Served {
        loop {
            let Some(mut packet) = self.pop(index, common) else {
                self.rest(index, common.isolation, now);
                return Served::Empty;
            };
            let flow = self.flows.get(index);
            let bulk_flows = if common.ingress { self.bulk_flows } else { 0 };
            let cobalt = &mut flow.cobalt;
            let decision =
                cobalt.decide(&packet, &self.rates.cobalt, bulk_flows, now, &mut common.blue);
            // The last packet of a flow may be marked but not dropped.
            let reason = decision.drop.filter(|_| !flow.packets.is_empty());
            let Some(reason) = reason else {
                if decision.mark {
                    self.accounting.mark(&mut packet, MarkReason::TargetExceeded, sink);
                }
                self.pay(index, &packet, true, common, now);
                return Served::Packet(packet);
            };
            if common.ingress {
                self.pay(index, &packet, false, common, now);
            }
            self.accounting.discard(packet, reason, sink);
            if common.ingress {
                return Served::Dropped;
            }
        }
    }

    /// [`charge`](Self::charge), to the flow's turn and the tin's too.
    fn pay(&mut self, index: usize, packet: &Packet, sent: bool, common: &mut Common, now: Time) {
        let wire = self.charge(packet, sent, common, now) as i32;
        self.flows.get(index).deficit -= wire;
        // With a bandwidth nothing ever adds to it, and nothing reads it: as in Linux it goes round.
        self.deficit = self.deficit.wrapping_sub(wire);
    }

    /// Flow `index` turned out to be empty: it waits until COBALT's state has decayed, then is free.
    fn rest(&mut self, index: usize, isolation: Isolation, now: Time) {
        let flow = self.flows.get(index);
        flow.cobalt.on_empty(&self.rates.cobalt, now);
        let standing = flow.standing;
        if flow.cobalt.is_at_rest(now) {
            flow.standing = Standing::Free;
            self.turns.remove(index);
        } else {
            flow.standing = Standing::Decaying;
            self.turns.move_to_end(index, Turn::Decaying);
        }
        match standing {
            Standing::Sparse | Standing::SparseWaiting => self.sparse_flows -= 1,
            Standing::Bulk => {
                self.bulk_flows -= 1;
                self.flows.uncount_bulk(index, isolation);
            }
            Standing::Decaying | Standing::Free => {}
        }
    }

    fn pop(&mut self, index: usize, common: &mut Common) -> Option<Packet> {
        let packet = common.pool.pop(&mut self.flows.get(index).packets)?;
        self.accounting.take(&packet);
        common.memory -= u64::from(truesize(&packet));
        common.longest.subtract(self.queue(index), packet.len);
        Some(packet)
    }

    const fn queue(&self, index: usize) -> usize {
        self.number * FLOWS + index
    }
}

/// Least and most bytes that a flow may send in a turn (`cake_set_rate`).
const MIN_QUANTUM_BYTES: u64 = 300;
const MAX_QUANTUM_BYTES: u16 = 1514;
