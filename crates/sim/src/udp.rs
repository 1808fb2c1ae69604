//! A UDP load: packets that leave on time, whatever becomes of them.

use weir_core::{Ecn, Packet, Seed, Time};
use weir_path::{End, FlowDrops};
use weir_scenario::{Flow, FlowRow, UdpLoad, UdpReceiver, UdpRow, UdpSender};

use crate::encapsulation::Encapsulation;
use crate::packet_store::UdpPacket;
use crate::run::Network;

/// A UDP load: its sender and its receiver.
pub(crate) struct UdpStream {
    flow: u32,
    load: UdpLoad,
    sender: End,
    encapsulation: Encapsulation,
    sending: UdpSender,
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
        (span, seed): ((Time, Time), Seed),
    ) -> Self {
        Self {
            flow,
            load,
            sender: spec.sender(),
            encapsulation,
            sending: load.sender(flow, span, seed),
            receiver: UdpReceiver::new(&load),
            stopped: false,
            wire_bytes: 0,
            first_data: None,
        }
    }

    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Sends the packets that are due.
    pub fn send_due(&mut self, network: &mut Network, now: Time) {
        if self.stopped {
            return;
        }
        let route = &self.encapsulation;
        let ip_len = route.sizes.ip_header + UDP_HEADER_BYTES + self.load.payload_bytes;
        while let Some(seq) = self.sending.take_due(now) {
            let handle = network.traffic.put_udp(UdpPacket { seq, sent: now, is_request: false });
            let packet = Packet {
                handle,
                enqueued_at: now,
                label: route.labels[self.sender as usize],
                len: route.sizes.queued_len(ip_len),
                flow_id: self.flow,
                dscp: route.dscp,
                ecn: Ecn::NotEct,
            };
            network.send(packet, self.sender, now);
        }
    }

    /// A packet of the load arrived at its receiver.
    pub fn on_packet(&mut self, packet: &Packet, network: &mut Network, now: Time) {
        let UdpPacket { seq, sent, .. } = network.traffic.take_udp(packet.handle);
        self.wire_bytes += u64::from(packet.ip_len());
        self.first_data.get_or_insert(now);
        self.receiver.on_packet(seq, now.since(sent), now);
    }

    /// When the next packet leaves.
    pub fn next_send(&self) -> Option<Time> {
        if self.stopped { None } else { self.sending.next() }
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

    /// Whether the sender has sent anything since the last row.
    pub fn has_sent(&self) -> bool {
        self.sending.has_counts()
    }

    /// What receiver and sender counted since the last row.
    pub fn counts_row(&mut self, now: Time) -> UdpRow {
        let sent = self.sending.take_counts();
        self.receiver.row(now, self.flow, Some(sent))
    }

    pub fn row(&self, drops: FlowDrops) -> FlowRow {
        let arrived = (self.first_data, self.delivered_bytes());
        drops.added_to(&self.sending.row(self.flow, arrived.0, arrived.1))
    }
}

const UDP_HEADER_BYTES: u32 = 8;
