//! Trains of pings through the simulated path.

use weir_core::{Dscp, Duration, ETHERNET_HEADER, Ecn, FlowLabel, Packet, Time};
use weir_world::{IpVersion, LatencyRow, Probe, ProbeKind};

use crate::cargo::Ping;
use crate::network::{End, Network};

/// A train of pings: one a period, answered or not.
pub(crate) struct PingTrain {
    probe: u32,
    host: u32,
    period: Duration,
    stop: Time,
    next: Time,
    seq: u32,
    packet: Packet,
    /// From the client, and from the server.
    labels: [FlowLabel; 2],
}

impl PingTrain {
    pub fn new(
        probe: u32,
        spec: &Probe,
        start: Time,
        labels: [FlowLabel; 2],
        owner: u32,
        ip_version: IpVersion,
    ) -> Self {
        let transport = match spec.kind {
            ProbeKind::Icmp => ICMP_HEADER,
            ProbeKind::Udp => UDP_HEADER,
        };
        let ip_len = ip_version.header_bytes() + transport + spec.payload_bytes;
        Self {
            probe,
            host: spec.host,
            period: Duration::from_nanos(spec.period_ns),
            stop: Time::from_nanos(spec.stop_ns),
            next: start,
            seq: 0,
            packet: Packet {
                handle: 0,
                enqueued_at: Time::ZERO,
                label: labels[0],
                len: ip_len + ETHERNET_HEADER,
                owner,
                dscp: Dscp::new(spec.dscp).expect("the scenario was checked"),
                ecn: Ecn::NotEct,
            },
            labels,
        }
    }

    pub const fn host(&self) -> u32 {
        self.host
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
        let handle = network.cargo.put_ping(ping);
        network.send(Packet { handle, ..self.packet }, End::Client, self.host, now);
    }

    /// A packet of the train arrived: the server answers, the client has its sample.
    pub fn on_packet(
        &self,
        packet: &Packet,
        end: End,
        network: &mut Network,
        now: Time,
    ) -> Option<LatencyRow> {
        match end {
            End::Server => {
                let ping = network.cargo.ping_mut(packet.handle);
                ping.up = Some(now.since(ping.sent));
                let answer = Packet { label: self.labels[1], ecn: Ecn::NotEct, ..*packet };
                network.send(answer, End::Server, self.host, now);
                None
            }
            End::Client => {
                let Ping { probe, seq, sent, up } = network.cargo.take_ping(packet.handle);
                let rtt = now.since(sent);
                let down = up.map(|up| rtt - up);
                Some(LatencyRow { t: sent, probe, seq, rtt: Some(rtt), up, down })
            }
        }
    }
}

const ICMP_HEADER: u32 = 8;
const UDP_HEADER: u32 = 8;
