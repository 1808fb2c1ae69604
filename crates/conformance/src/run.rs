//! A recording's arrivals through a discipline of ours.

use std::collections::BTreeMap;

use weir_core::{Dscp, Ecn, FlowKey, Packet, Protocol, Seed, TcpFlags, TcpHeader, Time};
use weir_qdisc::{Device, QueueSpec, SpecError, replay_tcp};

use crate::recording::{CE, Departure, Recording};

/// A run of our discipline with a recording's arrivals.
#[derive(Debug)]
pub struct Run {
    /// Packets that left, in order.
    pub departures: Vec<Departure>,
    /// Shares of dropped and marked packets over the whole run.
    pub shares: Shares,
}

/// A run in three numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// Share of the packets that never left.
    pub dropped: f64,
    /// Share of the packets that left marked and did not arrive so.
    pub marked: f64,
    /// Mean time in the discipline of those that left, in milliseconds.
    pub delay_ms: f64,
}

impl Run {
    /// Replays `recording` with the random numbers and the flow hash of `seed`.
    ///
    /// # Errors
    /// If the recording's commands name a discipline or a parameter that is not here.
    pub fn of(recording: &Recording, seed: u64) -> Result<Self, SpecError> {
        let device = Device { seed: Seed::new(seed), ..Device::default() };
        let qdisc = QueueSpec::parse(&recording.commands)?.build(&device)?;
        let start = recording.start.as_nanos();
        let outcome = replay_tcp(qdisc, &packets(recording, start, seed), &headers(recording));
        let departures = outcome.departures.into_iter().map(|(at, packet)| Departure {
            id: packet.handle,
            at_ns: at.as_nanos() - start,
            ecn: packet.ecn.bits(),
            dscp: Some(packet.dscp.get()),
        });
        let departures: Vec<_> = departures.collect();
        let shares = Shares::of(recording, &departures);
        Ok(Self { departures, shares })
    }
}

impl Shares {
    fn of(recording: &Recording, departures: &[Departure]) -> Self {
        let mut waiting: BTreeMap<u64, _> =
            recording.arrivals.iter().map(|arrival| (arrival.id, (arrival, false))).collect();
        let mut marked = 0;
        // A packet of a slow line waits for years.
        let mut delay_ns: u128 = 0;
        for departure in departures {
            let (arrival, left) = waiting.get_mut(&departure.id).expect("no packet is made up");
            // Of a duplicate the first copy counts.
            if !std::mem::replace(left, true) {
                marked += u32::from(departure.ecn == CE && arrival.ecn != CE);
                delay_ns += u128::from(departure.at_ns - arrival.at_ns);
            }
        }
        let total = recording.arrivals.len() as f64;
        let left = waiting.values().filter(|(_, left)| *left).count() as f64;
        Self {
            dropped: (total - left) / total,
            marked: f64::from(marked) / total,
            delay_ms: delay_ns as f64 / 1e6 / left.max(1.0),
        }
    }
}

fn headers(recording: &Recording) -> BTreeMap<u64, TcpHeader> {
    let header = |ack| TcpHeader { ack, flags: TcpFlags::ACK, ..TcpHeader::default() };
    recording.tcp_acks.iter().map(|(&packet, &ack)| (packet, header(ack))).collect()
}

fn packets(recording: &Recording, start: u64, seed: u64) -> Vec<(Time, Packet)> {
    let labels: BTreeMap<u32, _> = recording
        .flows
        .iter()
        .map(|(&number, flow)| {
            let key = FlowKey {
                src: flow.src,
                dst: flow.dst,
                sport: flow.sport,
                dport: flow.dport,
                protocol: Protocol(flow.proto),
            };
            (number, key.label(seed))
        })
        .collect();
    let packet = |arrival: &crate::recording::Arrival| {
        let at = Time::from_nanos(start + arrival.at_ns);
        let packet = Packet {
            handle: arrival.id,
            enqueued_at: at,
            label: labels[&arrival.flow],
            len: arrival.ip_len + weir_core::ETHERNET_HEADER,
            flow_id: arrival.flow,
            dscp: Dscp::new(arrival.dscp).expect("checked when the recording was read"),
            ecn: Ecn::from_tos(arrival.ecn),
        };
        (at, packet)
    };
    recording.arrivals.iter().map(packet).collect()
}
