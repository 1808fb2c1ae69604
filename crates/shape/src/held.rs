//! The packets that the kernel holds for us, found by the handles of their descriptors.

use weir_core::{Framing, Packet, TcpHeader};
use weir_linux::QueuedId;
use weir_packet::Headers;
use weir_qdisc::{DropReason, DropSink, MarkReason};

use crate::gso::Segments;
use crate::rules::Class;

/// A packet that waits in one of our disciplines.
#[derive(Debug)]
pub(crate) struct HeldPacket {
    /// The kernel's number for it.
    pub id: QueuedId,
    pub headers: Headers,
    /// What it is on the line, if it is a GSO packet.
    pub segments: Option<Segments>,
    /// The class that the rules gave it, if they did.
    pub class: Option<Class>,
    /// Bytes of the packet, from the IP header on; of one that is not written into the first alone.
    pub bytes: Vec<u8>,
}

/// All packets that are held, by their handles.
#[derive(Debug, Default)]
pub(crate) struct HeldPackets {
    slots: Vec<Option<HeldPacket>>,
    free: Vec<usize>,
    /// Memory of packets that have gone.
    spare: Vec<Vec<u8>>,
    /// Packets that a discipline has dropped, each as the kernel's number.
    pub dropped: Vec<QueuedId>,
}

impl HeldPackets {
    /// Keeps a packet: its handle.
    pub fn put(
        &mut self,
        id: QueuedId,
        headers: Headers,
        segments: Option<Segments>,
        packet: &[u8],
    ) -> u64 {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(packet);
        let held = HeldPacket { id, headers, segments, class: None, bytes };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(held);
        slot as u64
    }

    /// A packet has a class.
    pub fn set_class(&mut self, handle: u64, class: Class) {
        self.slots[handle as usize].as_mut().expect("it is held").class = Some(class);
    }

    /// A packet goes: it, to be given [back](Self::give_back) when it is done with.
    pub fn take(&mut self, handle: u64) -> HeldPacket {
        let slot = handle as usize;
        self.free.push(slot);
        self.slots[slot].take().expect("a handle is taken once")
    }

    /// A packet has gone.
    pub fn give_back(&mut self, held: HeldPacket) {
        if self.spare.len() < MAX_SPARE_BUFFERS {
            self.spare.push(held.bytes);
        }
    }
}

impl DropSink for HeldPackets {
    fn on_drop(&mut self, packet: Packet, _: DropReason) {
        let held = self.take(packet.handle);
        self.dropped.push(held.id);
        self.give_back(held);
    }

    fn on_mark(&mut self, _: &Packet, _: MarkReason) {}

    fn tcp_header(&self, packet: &Packet) -> Option<TcpHeader> {
        let held = self.slots[packet.handle as usize].as_ref()?;
        held.headers.tcp_header(&held.bytes)
    }

    fn wire_bytes(&self, packet: &Packet, framing: &Framing) -> u64 {
        let held = self.slots[packet.handle as usize].as_ref().expect("it is held");
        match held.segments {
            Some(segments) => segments.wire_bytes(framing),
            None => framing.wire_bytes(packet.ip_len()),
        }
    }
}

/// Pieces of memory that are kept for packets to come.
const MAX_SPARE_BUFFERS: usize = 1024;
