//! Flows of one tin: which queue a packet goes to, and how large a share it gets.
//!
//! Queues are found by an 8-way set-associative hash: a flow may sit in any of the eight queues of its
//! set, and two flows share one only when all eight are taken. Hosts, for the modes that are fair to
//! them, are found in the same way in a table of their own.

use weir_core::{Draw, FlowLabel, Rng};

use super::cobalt::CobaltState;
use super::options::CakeFlowMode;
use crate::pool::List;

/// The queues of one tin.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// Empty until the tin's first packet, as are the other two.
    flows: Vec<CakeFlow>,
    /// Hash of the flow that each queue serves or served last.
    tags: Vec<u32>,
    hosts: Vec<Host>,
}

/// One queue.
#[derive(Clone, Debug, Default)]
pub(super) struct CakeFlow {
    pub packets: List,
    pub cobalt: CobaltState,
    /// Bytes on the wire that the flow may still send in this turn.
    pub deficit: i32,
    pub standing: Standing,
    /// Places of its source and its destination in the table of hosts.
    hosts: [u16; 2],
}

/// In which capacity a flow takes turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not at all: the queue is free for another flow.
    #[default]
    Free,
    /// It has not used up a turn yet.
    Sparse,
    /// It has, but was empty when that came out; takes its turns among the bulk flows.
    SparseWaiting,
    /// It has, and had more to send.
    Bulk,
    /// Empty, and COBALT's state has not come to rest yet.
    Decaying,
}

/// CAKE's flow mode: the fields that tell flows apart, and the hosts to which a tin is fair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Isolation {
    /// Flows are 5-tuples; otherwise hosts, or all is one flow.
    pub by_flow: bool,
    /// Source, destination: part of what a flow is, or, with `by_flow`, to be fair to first.
    pub by_host: [bool; 2],
}

/// The fields of a packet that are hashed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashes {
    flow: u32,
    hosts: [u32; 2],
}

/// An entry of the table of hosts: one source and, apart from it, one destination.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    tags: [u32; 2],
    bulk_flows: [u16; 2],
}

impl Isolation {
    pub const FLOWBLIND: Self = Self { by_flow: false, by_host: [false, false] };
    pub const SRCHOST: Self = Self { by_flow: false, by_host: [true, false] };
    pub const DSTHOST: Self = Self { by_flow: false, by_host: [false, true] };
    pub const HOSTS: Self = Self { by_flow: false, by_host: [true, true] };
    pub const FLOWS: Self = Self { by_flow: true, by_host: [false, false] };
    pub const DUAL_SRCHOST: Self = Self { by_flow: true, by_host: [true, false] };
    pub const DUAL_DSTHOST: Self = Self { by_flow: true, by_host: [false, true] };
    pub const TRIPLE_ISOLATE: Self = Self { by_flow: true, by_host: [true, true] };

    pub const fn of(mode: CakeFlowMode) -> Self {
        match mode {
            CakeFlowMode::Flowblind => Self::FLOWBLIND,
            CakeFlowMode::Srchost => Self::SRCHOST,
            CakeFlowMode::Dsthost => Self::DSTHOST,
            CakeFlowMode::Hosts => Self::HOSTS,
            CakeFlowMode::Flows => Self::FLOWS,
            CakeFlowMode::DualSrchost => Self::DUAL_SRCHOST,
            CakeFlowMode::DualDsthost => Self::DUAL_DSTHOST,
            CakeFlowMode::TripleIsolate => Self::TRIPLE_ISOLATE,
        }
    }

    /// Whether hosts on that side are to get equal shares.
    const fn fair_to(self, side: usize) -> bool {
        self.by_flow && self.by_host[side]
    }
}

impl Hashes {
    /// The hashes of a packet of that label. A filter may have chosen the flow's, the hosts', or both.
    pub fn new(
        label: &FlowLabel,
        isolation: Isolation,
        key: u64,
        flow: Option<u32>,
        host: Option<u32>,
    ) -> Self {
        let hosts = match (host, isolation.by_host) {
            (Some(host), _) => [host; 2],
            (None, [false, false]) => [0; 2],
            (None, _) => [label.src, label.dst].map(|address| hash_of_host(address, key)),
        };
        let mut hash = flow.unwrap_or(if isolation.by_flow { label.hash } else { 0 });
        if !isolation.by_flow {
            for side in SIDES.filter(|&side| isolation.by_host[side]) {
                hash ^= hosts[side];
            }
        }
        Self { flow: hash, hosts }
    }
}

impl Flows {
    /// The queue that takes packets of these hashes, reserved for them from here on.
    pub fn find(&mut self, hashes: &Hashes, isolation: Isolation) -> usize {
        if self.flows.is_empty() {
            self.flows = vec![CakeFlow::default(); FLOWS];
            self.tags = vec![0; FLOWS];
            self.hosts = vec![Host::default(); FLOWS];
        }
        if isolation == Isolation::FLOWBLIND {
            return 0;
        }
        let hash = hashes.flow;
        let direct = hash as usize % FLOWS;
        if self.tags[direct] == hash && self.flows[direct].standing != Standing::Free {
            return direct;
        }
        let known = ways(direct).find(|&way| self.tags[way] == hash);
        let is_free = |way: &usize| self.flows[*way].standing == Standing::Free;
        let index = known.or_else(|| ways(direct).find(is_free)).unwrap_or(direct);
        // Also where two flows have to share: then the newcomer's hosts count.
        if known.is_none() || is_free(&index) {
            self.settle(index, hashes, isolation);
        }
        self.tags[index] = hash;
        index
    }

    pub fn get(&mut self, index: usize) -> &mut CakeFlow {
        &mut self.flows[index]
    }

    /// `index` becomes a bulk flow.
    pub fn count_bulk(&mut self, index: usize, isolation: Isolation) {
        for side in SIDES {
            let count = self.bulk_flows_of(index, side);
            if isolation.fair_to(side) && usize::from(*count) < FLOWS {
                *count += 1;
            }
        }
    }

    /// `index` is no longer a bulk flow.
    pub fn uncount_bulk(&mut self, index: usize, isolation: Isolation) {
        for side in SIDES {
            let count = self.bulk_flows_of(index, side);
            if isolation.fair_to(side) {
                *count = count.saturating_sub(1);
            }
        }
    }

    /// Bytes that flow `index` may send in a turn, of `quantum` bytes: a flow of a host with several bulk
    /// flows gets one part. The remainder of the division is dithered.
    pub fn share(
        &mut self,
        index: usize,
        quantum: u16,
        isolation: Isolation,
        dither: &mut Rng,
    ) -> i32 {
        let mut load = 1;
        for side in SIDES.filter(|&side| isolation.fair_to(side)) {
            load = load.max(*self.bulk_flows_of(index, side));
        }
        let part = u32::from(u16::MAX / load);
        ((u32::from(quantum) * part + dither.below(1 << 16) as u32) >> 16) as i32
    }

    /// A new flow takes queue `index`: its hosts are looked up.
    fn settle(&mut self, index: usize, hashes: &Hashes, isolation: Isolation) {
        let is_bulk = self.flows[index].standing == Standing::Bulk;
        if is_bulk {
            self.uncount_bulk(index, isolation);
        }
        for side in SIDES.filter(|&side| isolation.fair_to(side)) {
            self.flows[index].hosts[side] = self.find_host(hashes.hosts[side], side) as u16;
        }
        if is_bulk {
            self.count_bulk(index, isolation);
        }
    }

    fn find_host(&mut self, hash: u32, side: usize) -> usize {
        let direct = hash as usize % FLOWS;
        let known = ways(direct).find(|&way| self.hosts[way].tags[side] == hash);
        let is_free = |way: &usize| self.hosts[*way].bulk_flows[side] == 0;
        let place = known.or_else(|| ways(direct).find(is_free)).unwrap_or(direct);
        self.hosts[place].tags[side] = hash;
        place
    }

    fn bulk_flows_of(&mut self, index: usize, side: usize) -> &mut u16 {
        let host = self.flows[index].hosts[side];
        &mut self.hosts[usize::from(host)].bulk_flows[side]
    }
}

/// The places of the set to which `direct` belongs, from it on and round.
fn ways(direct: usize) -> impl Iterator<Item = usize> {
    let set = direct - direct % WAYS;
    (direct..direct + WAYS).map(move |way| set + way % WAYS)
}

/// A hash of a host, the same for sources and destinations: multiply and shift with a random odd
/// factor (Dietzfelbinger et al., "A reliable randomized algorithm for the closest-pair problem",
/// 1997).
const fn hash_of_host(address: u32, key: u64) -> u32 {
    ((address as u64 + 1).wrapping_mul(key | 1) >> 32) as u32
}

/// Source and destination.
const SIDES: std::ops::Range<usize> = 0..2;

/// Queues a tin (`CAKE_QUEUES`).
pub(super) const FLOWS: usize = 1024;

/// Queues in which a flow may sit (`CAKE_SET_WAYS`).
const WAYS: usize = 8;

#[cfg(test)]
mod tests {
    use weir_core::Seed;

    use super::*;

    fn hashes(flow: u32) -> Hashes {
        Hashes { flow, hosts: [0; 2] }
    }

    fn take(flows: &mut Flows, hash: u32) -> usize {
        let index = flows.find(&hashes(hash), Isolation::FLOWS);
        flows.get(index).standing = Standing::Sparse;
        index
    }

    #[test]
    fn eight_flows_of_one_set_do_not_collide_and_a_ninth_does() {
        let mut flows = Flows::default();
        let taken: Vec<_> = (1..=8).map(|n| take(&mut flows, n * 1024 + 13)).collect();
        assert_eq!(taken, [13, 14, 15, 8, 9, 10, 11, 12]);
        assert_eq!(take(&mut flows, 9 * 1024 + 13), 13, "shares with the first");
        // The newcomer owns the queue now; the first flow comes back to it all the same.
        assert_eq!(flows.tags[13], 9 * 1024 + 13);
        assert_eq!(take(&mut flows, 1024 + 13), 13);
        // Whoever has a queue keeps it.
        assert_eq!(take(&mut flows, 4 * 1024 + 13), 8);
    }

    #[test]
    fn a_free_queue_is_used_again() {
        let mut flows = Flows::default();
        for n in 1..=8 {
            take(&mut flows, n * 1024);
        }
        flows.get(5).standing = Standing::Free;
        assert_eq!(take(&mut flows, 9 * 1024), 5);
    }

    #[test]
    fn modes_tell_apart_what_they_say() {
        let label = |src, dst, hash| FlowLabel { src, dst, hash, ..FlowLabel::default() };
        let of = |isolation: Isolation, one: FlowLabel| {
            Hashes::new(&one, isolation, 0x1234_5678_9abc_def1, None, None).flow
        };
        let one = label(1, 2, 10);
        let same_hosts = label(1, 2, 11);
        let same_source = label(1, 3, 12);
        let same_destination = label(4, 2, 13);
        for (isolation, same) in [
            (Isolation::FLOWS, [false, false, false]),
            (Isolation::SRCHOST, [true, true, false]),
            (Isolation::DSTHOST, [true, false, true]),
            (Isolation::HOSTS, [true, false, false]),
            (Isolation::TRIPLE_ISOLATE, [false, false, false]),
        ] {
            let others = [same_hosts, same_source, same_destination];
            let found = others.map(|other| of(isolation, one) == of(isolation, other));
            assert_eq!(found, same, "{isolation:?}");
        }
    }

    #[test]
    fn a_host_shares_its_quantum_among_its_bulk_flows() {
        let mut flows = Flows::default();
        let isolation = Isolation::DUAL_SRCHOST;
        let mut dither = Seed::new(1).stream("dither");
        let hashes = |flow, source| Hashes { flow, hosts: [source, 0] };
        let busy: Vec<_> = [(1, 77), (2, 77), (3, 77), (4, 88)]
            .map(|(flow, source)| {
                let index = flows.find(&hashes(flow, source), isolation);
                flows.get(index).standing = Standing::Bulk;
                flows.count_bulk(index, isolation);
                index
            })
            .to_vec();
        let mut mean = |table: &mut Flows, index| {
            let shares = (0..10_000).map(|_| table.share(index, 1514, isolation, &mut dither));
            f64::from(shares.sum::<i32>()) / 10_000.0
        };
        // 65535/3 of 65536 parts and 65535 of 65536, the dither keeping the fraction.
        assert!((mean(&mut flows, busy[0]) - 1514.0 * 21_845.0 / 65_536.0).abs() < 0.02);
        assert!((mean(&mut flows, busy[3]) - 1514.0 * 65_535.0 / 65_536.0).abs() < 0.02);
        flows.uncount_bulk(busy[1], isolation);
        assert!((mean(&mut flows, busy[0]) - 1514.0 * 32_767.0 / 65_536.0).abs() < 0.02);
    }

    #[test]
    fn a_filter_chooses_flow_and_host() {
        let label = FlowLabel { src: 1, dst: 2, hash: 99, ..FlowLabel::default() };
        let chosen = Hashes::new(&label, Isolation::TRIPLE_ISOLATE, 7, Some(4), Some(6));
        assert_eq!((chosen.flow, chosen.hosts), (4, [6, 6]));
    }
}
