//! The flows that `fq` knows.

use weir_core::{Duration, Time};

use super::FqParams;
use crate::linux::JIFFY;
use crate::pool::List;

/// The flows that are known, found by their keys.
pub(super) struct Flows {
    pub flows: Vec<FqFlow>,
    free: Vec<u32>,
    /// The flows of each bucket.
    buckets: Vec<Vec<u32>>,
    /// How many have packets.
    pub waiting: u32,
}

pub(super) struct FqFlow {
    key: u32,
    pub band: usize,
    pub packets: List,
    pub len: u32,
    pub credit: i64,
    pub state: FqFlowState,
    /// When by its rate it may send again.
    pub next_packet: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FqFlowState {
    /// In the turns of its band, or throttled.
    InTurn,
    /// In neither since that jiffy, made odd.
    Detached(u64),
}

impl FqFlow {
    /// Has the flow wait after `len` bytes, so that it keeps to `rate`; a fast one may first use up its
    /// credit.
    pub fn pace(&mut self, len: i64, rate: u64, params: &FqParams, now: Time) {
        let mut len = len as u64;
        if rate <= params.low_rate {
            self.credit = 0;
        } else {
            len = len.max(params.quantum as u64);
            if self.credit > 0 {
                return;
            }
        }
        let mut nanos = (len * NANOS_PER_SEC / rate).min(NANOS_PER_SEC);
        if let Some(due) = self.next_packet {
            // What the last packet was late by, this one need not wait.
            nanos -= (nanos / 2).min(now.since(due).as_nanos());
        }
        self.next_packet = Some(now + Duration::from_nanos(nanos));
    }
}

impl Flows {
    /// No flows yet, in `buckets` buckets, a power of two.
    pub fn new(buckets: usize) -> Self {
        Self { flows: Vec::new(), free: Vec::new(), buckets: vec![Vec::new(); buckets], waiting: 0 }
    }

    /// The flow of that key. On the way to it flows of the same bucket are forgotten that have long been
    /// empty.
    pub fn find(&mut self, key: u32, initial_quantum: i64, now: Time) -> u32 {
        let bucket = bucket_of(key, self.buckets.len());
        let long_ago = jiffies(now).checked_sub(FORGOTTEN_AFTER);
        let mut forgotten = 0;
        let Self { flows, free, buckets, .. } = self;
        buckets[bucket].retain(|&index| {
            let flow = &flows[index as usize];
            let is_old =
                matches!(flow.state, FqFlowState::Detached(at) if long_ago.is_some_and(|ago| at < ago));
            let forget = is_old && flow.key != key && forgotten < FORGOTTEN_AT_ONCE;
            if forget {
                forgotten += 1;
                free.push(index);
            }
            !forget
        });
        let known = buckets[bucket].iter().find(|&&index| flows[index as usize].key == key);
        if let Some(&index) = known {
            return index;
        }
        let flow = FqFlow {
            key,
            band: 0,
            packets: List::default(),
            len: 0,
            credit: initial_quantum,
            state: FqFlowState::Detached(jiffies(now) | 1),
            next_packet: None,
        };
        let index = if let Some(index) = free.pop() {
            flows[index as usize] = flow;
            index
        } else {
            flows.push(flow);
            (flows.len() - 1) as u32
        };
        buckets[bucket].push(index);
        index
    }
}

/// The kernel's ticks.
pub(super) fn jiffies(now: Time) -> u64 {
    now.as_nanos() / JIFFY.as_nanos()
}

/// The bucket of a flow, by the hash that the kernel takes of the odd number that stands for a socket
/// (`hash_ptr`).
fn bucket_of(key: u32, buckets: usize) -> usize {
    let bits = buckets.trailing_zeros();
    let hash = (u64::from(key) << 1 | 1).wrapping_mul(GOLDEN_RATIO_64);
    hash.checked_shr(u64::BITS - bits).unwrap_or(0) as usize
}

/// `FQ_GC_AGE`, in jiffies, and `FQ_GC_MAX`.
const FORGOTTEN_AFTER: u64 = 3_000_000_000 / JIFFY.as_nanos();
const FORGOTTEN_AT_ONCE: u32 = 8;
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// `GOLDEN_RATIO_64` of `include/linux/hash.h`.
const GOLDEN_RATIO_64: u64 = 0x61c8_8646_80b5_83eb;
