//! A UDP load: packets that leave on time, whatever becomes of them.

use weir_core::{Ecn, Packet, Seed, Time};
use weir_path::{End, FlowDrops};
use weir_scenario::{Flow, FlowRow, UdpLoad, UdpReceiver, UdpRow, UdpSchedule};

use crate::encapsulation::Encapsulation;
use crate::packet_store::UdpPacket;
use crate::run::Network;

/// A UDP load: its sender and its receiver.
pub(crate) struct UdpStream {
    flow: u32,
    load: UdpLoad,
    sender: End,
    encapsulation: Encapsulation,
    /// When packets leave; `None` before the start and after the stop.
    schedule: Option<UdpSchedule>,
    seed: Seed,
    sent: u64,
    receiver: UdpReceiver,
    stopped: bool,
    /// IP bytes of packets that arrived, repetitions included.
    wire_bytes: u64,
    first_data: Option<Time>,
}

impl UdpStream {
    pub fn new(
        flow: u32,
        spec: &Flow,
        load: UdpLoad,
        encapsulation: Encapsulation,
        seed: Seed,
    ) -> Self {
        Self {
            flow,
            load,
            sender: spec.sender(),
            encapsulation,
            schedule: None,
            seed: seed.derive("udp").derive(&flow.to_string()),
            sent: 0,
            receiver: UdpReceiver::new(&load),
            stopped: false,
            wire_bytes: 0,
            first_data: None,
        }
    }

    pub fn start(&mut self, network: &mut Network, now: Time) {
        self.schedule = Some(self.load.schedule(now, self.seed));
        self.send_due(network, now);
    }

    pub fn stop(&mut self) {
        self.stopped = true;
        self.schedule = None;
    }

    /// Sends the packets that are due.
    pub fn send_due(&mut self, network: &mut Network, now: Time) {
        let Some(schedule) = &mut self.schedule else { return };
        let route = &self.encapsulation;
        let ip_len = route.ip_header + UDP_HEADER_BYTES + self.load.payload_bytes;
        while schedule.next() <= now {
            let handle = network.traffic.put_udp(UdpPacket { seq: self.sent, sent: now });
            let packet = Packet {
                handle,
                enqueued_at: now,
                label: route.labels[self.sender as usize],
                len: route.queued_len(ip_len),
                flow_id: self.flow,
                dscp: route.dscp,
                ecn: Ecn::NotEct,
            };
            self.sent += 1;
            network.send(packet, self.sender, now);
            schedule.advance();
        }
    }

    /// A packet of the load arrived at its receiver.
    pub fn on_packet(&mut self, packet: &Packet, network: &mut Network, now: Time) {
        let UdpPacket { seq, sent } = network.traffic.take_udp(packet.handle);
        self.wire_bytes += u64::from(packet.ip_len());
        self.first_data.get_or_insert(now);
        self.receiver.on_packet(seq, now.since(sent), now);
    }

    /// When the next packet leaves.
    pub fn next_send(&self) -> Option<Time> {
        self.schedule.as_ref().map(UdpSchedule::next)
    }

    pub const fn sender(&self) -> End {
        self.sender
    }

    pub const fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub const fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    /// Payload that arrived, each packet once.
    pub const fn delivered_bytes(&self) -> u64 {
        self.receiver.received() * self.load.payload_bytes as u64
    }

    /// The receiver's counts since the last row.
    pub fn receiver_row(&mut self, now: Time) -> UdpRow {
        self.receiver.row(now, self.flow)
    }

    pub fn row(&self, drops: FlowDrops) -> FlowRow {
        drops.added_to(&FlowRow {
            sent_bytes: Some(self.sent * u64::from(self.load.payload_bytes)),
            sent_segments: Some(self.sent),
            retransmitted_bytes: Some(0),
            retransmitted_segments: Some(0),
            timeouts: Some(0),
            loss_probes: Some(0),
            fast_recoveries: Some(0),
            ecn_reductions: Some(0),
            ..FlowRow::arrived(self.flow, self.first_data, self.delivered_bytes())
        })
    }
}

const UDP_HEADER_BYTES: u32 = 8;
