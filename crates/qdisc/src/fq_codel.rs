//! `fq_codel`: flows in queues of their own, served in turn, each under CoDel.
//!
//! Follows Linux `net/sched/sch_fq_codel.c` and RFC 8290. Nothing is done differently.

use weir_core::{Duration, Packet, Time};

use crate::Device;
use crate::accounting::Accounting;
use crate::codel::{
    CE_THRESHOLD, CodelParams, CodelQueue, CodelState, INTERVAL, TARGET, codel_dequeue,
};
use crate::contract::{Backlog, DropReason, DropSink, Stats};
use crate::linux::truesize;
use crate::peeked::{Peeked, TakesNext};
use crate::pool::{List, Pool};
use crate::registry::Discipline;
use crate::tc::{Classifier, QueueSpec, Record, SpecError, nonzero_size, number, params, switch};
use crate::turns::Turns;

struct FqCodel {
    limit: u32,
    memory_limit: u64,
    drop_batch: u32,
    codel: CodelParams,
    classifier: Classifier,
    major: u16,

    flows: Vec<FqCodelFlow>,
    turns: Turns,
    store: Store,
}

/// One queue.
#[derive(Clone, Default)]
struct FqCodelFlow {
    packets: List,
    codel: CodelState,
}

/// The packets of all flows.
struct Store {
    pool: Pool,
    accounting: Accounting,
    /// Bytes that wait in each flow, apart from the flows themselves: finding the longest is then a
    /// scan of one short array.
    backlogs: Vec<u32>,
    memory: u64,
}

impl FqCodel {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let options: FqCodelOptions = spec.read(device)?;
        let FqCodelOptions { flows, target, interval, ce_threshold, ecn, .. } = options;
        let full_packet = device.full_packet();
        Ok(Self {
            limit: options.limit,
            memory_limit: options.memory_limit.min(1 << 31),
            drop_batch: options.drop_batch,
            codel: CodelParams::new(target, interval, ce_threshold, full_packet, ecn),
            classifier: Classifier::new(&spec.filters),
            major: spec.major(),
            flows: vec![FqCodelFlow::default(); flows],
            turns: Turns::new(flows, options.quantum),
            store: Store {
                pool: Pool::default(),
                accounting: Accounting::default(),
                backlogs: vec![0; flows],
                memory: 0,
            },
        })
    }

    /// Asks the processor for the packet that is taken next, which has waited for so long that it is far away.
    fn prefetch_next(&self) {
        if let Some(flow) = self.turns.next() {
            self.store.pool.prefetch_first(&self.flows[flow].packets);
        }
    }

    fn flow_of(&self, packet: &Packet) -> Option<usize> {
        self.classifier.flow(packet, self.major, self.flows.len())
    }

    /// The queue is full: drops up to half of the longest flow, from its head, `drop_batch` packets
    /// at most.
    fn drop_from_longest(&mut self, reason: DropReason, sink: &mut dyn DropSink) {
        let index = longest(&self.store.backlogs);
        let enough = self.store.backlogs[index] / 2;
        let flow = &mut self.flows[index];
        let mut bytes = 0;
        let mut drops = 0;
        while let Some(packet) = self.store.pop(index, &mut flow.packets) {
            bytes += packet.len;
            drops += 1;
            self.store.accounting.discard(packet, reason, sink);
            if drops >= self.drop_batch || bytes >= enough {
                break;
            }
        }
        // CoDel shall signal more strongly too.
        flow.codel.add_drops(drops);
    }
}

impl TakesNext for FqCodel {
    #[inline(always)]
    fn enqueue(&mut self, packet: &Packet, _now: Time, sink: &mut dyn DropSink) {
        let Some(index) = self.flow_of(packet) else {
            return self.store.accounting.xmit_drop(*packet, DropReason::Unclassified, sink);
        };
        self.store.push(index, &mut self.flows[index].packets, packet);
        self.turns.join(index);
        let over_memory = self.store.memory > self.memory_limit;
        if over_memory || self.store.accounting.backlog().packets > self.limit {
            let reason = if over_memory { DropReason::Overmemory } else { DropReason::Overlimit };
            self.drop_from_longest(reason, sink);
        }
    }

    /// Where nothing waits the packet is the next of its flow as soon as it has come, and has no sojourn.
    #[inline(always)]
    fn pass(&mut self, packet: &Packet, _now: Time) -> bool {
        let has_room = u64::from(truesize(packet)) <= self.memory_limit;
        if !has_room || self.store.accounting.backlog().packets > 0 {
            return false;
        }
        let Some(index) = self.flow_of(packet) else { return false };
        self.turns.join(index);
        while let Some(flow) = self.turns.current().filter(|&flow| flow != index) {
            self.flows[flow].codel.on_empty();
            self.turns.pass();
        }
        self.flows[index].codel.on_empty();
        self.turns.charge(index, packet.len);
        self.store.accounting.pass(packet);
        true
    }

    /// Serves the flows in turn (RFC 8290, section 4.2) until one yields a packet.
    #[inline(always)]
    fn take_next(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        loop {
            let index = self.turns.current()?;
            let flow = &mut self.flows[index];
            let mut queue = FlowQueue { store: &mut self.store, packets: &mut flow.packets, index };
            let taken = codel_dequeue(&mut queue, &mut flow.codel, &self.codel, now, sink);
            if let Some(packet) = &taken {
                self.turns.charge(index, packet.len);
                if self.store.accounting.backlog().packets > FEW_PACKETS {
                    self.prefetch_next();
                }
                return taken;
            }
            self.turns.pass();
        }
    }

    fn accounting(&mut self) -> Option<&mut Accounting> {
        Some(&mut self.store.accounting)
    }

    fn backlog(&self) -> Backlog {
        self.store.accounting.backlog()
    }

    fn stats(&self) -> Stats {
        self.store.accounting.stats()
    }
}

impl Store {
    #[inline(always)]
    fn push(&mut self, index: usize, packets: &mut List, packet: &Packet) {
        self.accounting.arrive(packet);
        self.backlogs[index] += packet.len;
        self.memory += u64::from(truesize(packet));
        self.pool.push(packets, packet);
    }

    #[inline(always)]
    fn pop(&mut self, index: usize, packets: &mut List) -> Option<Packet> {
        let taken = self.pool.pop(packets);
        if let Some(packet) = &taken {
            self.accounting.take(packet);
            self.backlogs[index] -= packet.len;
            self.memory -= u64::from(truesize(packet));
        }
        taken
    }
}

/// One flow as CoDel sees it. The backlog that keeps CoDel quiet is the whole discipline's.
struct FlowQueue<'a> {
    store: &'a mut Store,
    packets: &'a mut List,
    index: usize,
}

impl CodelQueue for FlowQueue<'_> {
    #[inline(always)]
    fn pop(&mut self) -> Option<Packet> {
        self.store.pop(self.index, self.packets)
    }

    fn backlog_bytes(&self) -> u64 {
        self.store.accounting.backlog().bytes
    }

    fn accounting(&mut self) -> &mut Accounting {
        &mut self.store.accounting
    }
}

/// So many packets stay in the nearest cache by themselves.
const FEW_PACKETS: u32 = 256;

/// The index of the largest backlog; the first of equal ones, as in Linux.
fn longest(backlogs: &[u32]) -> usize {
    let largest = backlogs.iter().copied().max().unwrap_or(0);
    backlogs.iter().position(|&backlog| backlog == largest).expect("there is a flow")
}

params! {
    /// Parameters of `fq_codel`.
    #[derive(Clone, Copy, Debug)]
    pub struct FqCodelOptions {
        /// most packets that may wait in all flows together
        pub limit: u32 = number("packets", 1, u32::MAX as u64).default("10240").or_0(),
        /// number of queues over which flows are hashed
        pub flows: usize = number("queues", 1, 65_536).default("1024").or_0(),
        pub target: Duration = TARGET,
        pub interval: Duration = INTERVAL,
        /// bytes that a flow may send in one turn (256 at least)
        pub quantum: u32 = number("bytes", 1, 1 << 20)
            .default_of("one full packet", |device| { device.full_packet().to_string() })
            .or_0(),
        /// mark packets whose sender speaks ECN instead of dropping them
        pub ecn: bool = switch().off_by("noecn").default("on"),
        pub ce_threshold: Option<Duration> = CE_THRESHOLD,
        /// most memory that waiting packets may take, as the kernel accounts it
        pub memory_limit: u64 = nonzero_size().default("32Mb"),
        /// most packets dropped at once from the longest flow when the queue is full
        pub drop_batch: u32 = number("packets", 1, u32::MAX as u64)
            .aliases(&["drop_batch_size"])
            .default("64")
            .or_0(),
    }
}

pub(crate) static FQ_CODEL: Discipline = Discipline {
    name: "fq_codel",
    summary: "flows in queues of their own, served in turn, each under CoDel",
    source: "Linux net/sched/sch_fq_codel.c; RFC 8290",
    params: FqCodelOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "fq_codel limit 40 flows 4",
        "fq_codel memory_limit 64Kb quantum 300 target 1ms interval 10ms",
        "fq_codel noecn flows 1 limit 60 drop_batch 8",
    ],
    build: |spec, device| Ok(Box::new(Peeked::new(FqCodel::new(spec, device)?))),
};
