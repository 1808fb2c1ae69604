//! Samples of flows and queues, taken at fixed intervals.

use weir_core::{Duration, Seed, Time};
use weir_qdisc::{Backlog, DropReason, MarkReason, Stats};
use weir_world::{QueueRow, Scenario, Sink, TcpRow, ThroughputRow};

use crate::connection::Connection;
use crate::network::Hop;

/// What the last samples saw, so that the next report what came since.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// Delivered bytes and bytes on the wire, by flow.
    flows: Vec<(u64, u64)>,
    starts: Vec<Time>,
    /// Statistics of the hops and, behind each, of its classes.
    queues: Vec<Vec<Stats>>,
}

impl Sampler {
    pub fn new(scenario: &Scenario, seed: Seed) -> Self {
        let hops = scenario.path.up.len() + scenario.path.down.len();
        Self {
            flows: vec![(0, 0); scenario.flows.len()],
            starts: (0..scenario.flows.len()).map(|n| scenario.flow_start(n, seed)).collect(),
            queues: vec![Vec::new(); hops],
        }
    }

    /// A row for each flow that is running, or still delivers after it stopped.
    pub fn throughput(&mut self, connections: &[Connection], now: Time, sink: &mut dyn Sink) {
        for (flow, connection) in connections.iter().enumerate() {
            let seen = (connection.delivered_bytes(), connection.wire_bytes);
            let before = std::mem::replace(&mut self.flows[flow], seen);
            let running = self.starts[flow] < now && !connection.is_stopped();
            if running || seen != before {
                sink.throughput(&ThroughputRow {
                    t: now,
                    flow: flow as u32,
                    bytes: seen.0 - before.0,
                    wire_bytes: seen.1 - before.1,
                });
            }
        }
    }

    /// A row for each flow that is running.
    pub fn tcp(&self, connections: &[Connection], now: Time, sink: &mut dyn Sink) {
        for (flow, connection) in connections.iter().enumerate() {
            if self.starts[flow] >= now || connection.is_stopped() {
                continue;
            }
            let info = connection.sender_info();
            sink.tcp(&TcpRow {
                t: now,
                flow: flow as u32,
                cwnd: info.cwnd,
                ssthresh: info.ssthresh,
                in_flight: info.in_flight,
                srtt: info.srtt,
                rttvar: info.rttvar,
                rto: info.rto,
                pacing_rate_bps: info.pacing_rate * 8,
                retransmits: info.counters.segments_retransmitted,
                timeouts: info.counters.timeouts,
            });
        }
    }

    /// A row for each queue, and one for each of its classes.
    pub fn queues(&mut self, hops: &mut [Hop], now: Time, sink: &mut dyn Sink) {
        for (hop, seen) in hops.iter_mut().zip(&mut self.queues) {
            let mut places = seen.iter_mut();
            let mut fresh = Vec::new();
            let mut since = |stats: Stats| match places.next() {
                Some(before) => Since::new(&std::mem::replace(before, stats), &stats),
                None => {
                    fresh.push(stats);
                    Since::new(&Stats::default(), &stats)
                }
            };
            let sojourn = hop.port.take_sojourn();
            let left = sojourn.packets > 0;
            let mut row = since(hop.port.stats()).row(now, &hop.name, "", hop.port.backlog());
            row.sojourn_mean = sojourn.mean();
            row.sojourn_max = left.then_some(sojourn.max);
            row.wire_bytes = std::mem::take(&mut hop.wire_bytes);
            sink.queue(&row);
            hop.port.classes(&mut |class| {
                sink.queue(&since(class.stats).row(now, &hop.name, class.name, class.backlog));
            });
            seen.extend(fresh);
        }
    }
}

/// The difference of two statistics.
struct Since {
    departed_packets: u64,
    departed_bytes: u64,
    dropped: [u64; DropReason::ALL.len()],
    marked: [u64; MarkReason::ALL.len()],
}

impl Since {
    fn new(before: &Stats, after: &Stats) -> Self {
        let dropped =
            |reason: usize| after.dropped[reason].packets - before.dropped[reason].packets;
        Self {
            departed_packets: after.departed.packets - before.departed.packets,
            departed_bytes: after.departed.bytes - before.departed.bytes,
            dropped: std::array::from_fn(dropped),
            marked: std::array::from_fn(|reason| after.marked[reason] - before.marked[reason]),
        }
    }

    fn row<'a>(&self, t: Time, queue: &'a str, class: &'a str, backlog: Backlog) -> QueueRow<'a> {
        QueueRow {
            t,
            queue,
            class,
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
            sojourn_mean: None,
            sojourn_max: None,
            departed_packets: self.departed_packets,
            departed_bytes: self.departed_bytes,
            wire_bytes: 0,
            dropped: self.dropped,
            marked: self.marked,
        }
    }
}

/// Sampling at a fixed interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticker {
    period: Duration,
}

impl Ticker {
    /// A ticker of that period, or `None` for a period of 0: never.
    pub const fn new(period_ns: u64) -> Option<Self> {
        if period_ns == 0 { None } else { Some(Self { period: Duration::from_nanos(period_ns) }) }
    }

    /// The next tick after `now`.
    pub fn after(self, now: Time) -> Time {
        let period = self.period.as_nanos();
        Time::from_nanos((now.as_nanos() / period + 1) * period)
    }
}
