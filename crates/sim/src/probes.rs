//! Trains of pings through the simulated path.

use weir_core::{Duration, Ecn, FlowLabel, Packet, Time};
use weir_path::{ArrivalPoint, End};
use weir_scenario::{IpVersion, LatencyRow, Probe, ProbeKind};

use crate::encapsulation::Encapsulation;
use crate::packet_store::Ping;
use crate::run::Network;

/// A train of pings: one a period, answered or not.
pub(crate) struct PingTrain {
    probe: u32,
    period: Duration,
    stop: Time,
    next: Time,
    seq: u32,
    packet: Packet,
    /// Length of the answer, as queues count it.
    answer_len: u32,
    /// Flow labels of the pings from the client, and of the answers.
    labels: [FlowLabel; 2],
}

impl PingTrain {
    pub fn new(
        probe: u32,
        spec: &Probe,
        start: Time,
        encapsulation: Encapsulation,
        flow_id: u32,
        ip_version: IpVersion,
    ) -> Self {
        let transport = match spec.kind {
            ProbeKind::Icmp => ICMP_HEADER,
            ProbeKind::Udp | ProbeKind::UdpTtl => UDP_HEADER,
            ProbeKind::Tcp => unreachable!("refused before the run"),
        };
        let ip_header = ip_version.header_bytes();
        let ip_len = ip_header + transport + spec.payload_bytes;
        // A router quotes the packet whose time to live ended.
        let answer = match spec.kind {
            ProbeKind::UdpTtl => (ip_header + ICMP_HEADER + ip_len).min(ip_version.longest_error()),
            _ => ip_len,
        };
        Self {
            probe,
            period: Duration::from_nanos(spec.period_ns),
            stop: Time::from_nanos(spec.stop_ns),
            next: start,
            seq: 0,
            packet: Packet {
                handle: 0,
                enqueued_at: Time::ZERO,
                label: encapsulation.labels[0],
                len: encapsulation.sizes.queued_len(ip_len),
                flow_id,
                dscp: encapsulation.dscp,
                ecn: Ecn::NotEct,
            },
            answer_len: encapsulation.sizes.queued_len(answer),
            labels: encapsulation.labels,
        }
    }

    /// When the next ping is sent.
    pub fn next_send(&self) -> Option<Time> {
        (self.next < self.stop).then_some(self.next)
    }

    /// Sends the next ping.
    pub fn send(&mut self, network: &mut Network, now: Time) {
        let ping = Ping { probe: self.probe, seq: self.seq, sent: now, up: None };
        self.seq += 1;
        self.next += self.period;
        let handle = network.traffic.put_ping(ping);
        network.send(Packet { handle, ..self.packet }, End::Client, now);
    }

    /// A packet of the train arrived: the server or router answers, the client has its sample.
    pub fn on_packet(
        &self,
        packet: &Packet,
        place: ArrivalPoint,
        network: &mut Network,
        now: Time,
    ) -> Option<LatencyRow> {
        if place != ArrivalPoint::End(End::Client) {
            let ping = network.traffic.ping_mut(packet.handle);
            ping.up = Some(now.since(ping.sent));
        }
        let answer =
            Packet { label: self.labels[1], ecn: Ecn::NotEct, len: self.answer_len, ..*packet };
        match place {
            ArrivalPoint::End(End::Server) => {
                network.send(answer, End::Server, now);
                None
            }
            ArrivalPoint::Router { direction, passed } => {
                network.send_back(answer, direction, passed, now);
                None
            }
            ArrivalPoint::End(End::Client) => {
                let Ping { probe, seq, sent, up } = network.traffic.take_answered(packet.handle)?;
                let rtt = now.since(sent);
                Some(LatencyRow {
                    t: sent,
                    probe,
                    seq,
                    rtt: Some(rtt),
                    up,
                    down: up.map(|up| rtt - up),
                    timer_error: Duration::ZERO,
                    server: None,
                })
            }
            ArrivalPoint::Shaper => unreachable!("only the shaper's own probes end there"),
        }
    }
}

const ICMP_HEADER: u32 = 8;
const UDP_HEADER: u32 = 8;
