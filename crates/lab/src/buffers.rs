//! The bytes of the packets on the path, found by the handles of their descriptors.

use weir_core::{Duration, Packet, TcpHeader};
use weir_packet::{Checksum, Headers, Segmenter};
use weir_path::{FlowDrops, Traffic};
use weir_qdisc::{About, DropReason, DropSink, MarkReason};

/// The bytes of one packet out of the kernel, or of one GSO packet whose segments queue one by one.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Bytes of the packet, from the IP header on.
    pub bytes: Vec<u8>,
    /// Parsed headers of the packet.
    pub headers: Headers,
    /// How the bytes are cut into segments, if they are a GSO packet.
    pub segmenter: Option<Segmenter>,
    /// The state of a single packet's checksum.
    pub checksum: Checksum,
    /// Where it goes.
    pub route: PacketRoute,
    /// Segments that are still under way.
    left: u32,
}

/// How a buffer's packets came, and where they go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketRoute {
    /// The number of the server to or from which it goes; that of its path where the client has several.
    pub host: u32,
    /// The router at which its time to live ends, by the number of hops in front of it.
    pub ends_at: Option<u32>,
    /// How long it has waited for the data path, as far as that can know.
    pub waited: Duration,
}

/// The packet store of the lab: the bytes of all packets under way, and the counts of those dropped or marked.
#[derive(Debug)]
pub(crate) struct Buffers {
    buffers: Vec<Option<Buffer>>,
    free: Vec<u32>,
    /// Memory of buffers whose packets have left, by size: used again.
    spare: [Vec<Vec<u8>>; SIZES.len()],
    /// By flow of the scenario.
    pub flows: Vec<FlowDrops>,
}

impl Buffers {
    pub fn new(flows: usize) -> Self {
        Self {
            buffers: Vec::new(),
            free: Vec::new(),
            spare: Default::default(),
            flows: vec![FlowDrops::default(); flows],
        }
    }

    /// Keeps a copy of `bytes`, which `headers` describe. Returns the number of the buffer, of which the
    /// handles of its segments are made with [`handle`].
    pub fn put(
        &mut self,
        bytes: &[u8],
        headers: Headers,
        segmenter: Option<Segmenter>,
        checksum: Checksum,
        route: PacketRoute,
    ) -> u32 {
        let size = size_class(bytes.len());
        let mut memory = self.spare[size].pop().unwrap_or_else(|| Vec::with_capacity(SIZES[size]));
        memory.clear();
        memory.extend_from_slice(bytes);
        let left = segmenter.map_or(1, |segmenter| segmenter.count() as u32);
        let buffer = Buffer { bytes: memory, headers, segmenter, checksum, route, left };
        if let Some(number) = self.free.pop() {
            self.buffers[number as usize] = Some(buffer);
            return number;
        }
        self.buffers.push(Some(buffer));
        self.buffers.len() as u32 - 1
    }

    /// The buffer that holds the packet of that handle.
    pub fn get(&self, handle: u64) -> &Buffer {
        self.buffers[buffer_of(handle)].as_ref().expect("a packet under way has its bytes")
    }

    /// The buffer that holds the packet of that handle, to be changed.
    pub fn get_mut(&mut self, handle: u64) -> &mut Buffer {
        self.buffers[buffer_of(handle)].as_mut().expect("a packet under way has its bytes")
    }

    /// The packet of that handle is no longer under way.
    pub fn release(&mut self, handle: u64) {
        let number = buffer_of(handle);
        let buffer = self.buffers[number].as_mut().expect("a packet is released once");
        buffer.left -= 1;
        if buffer.left > 0 {
            return;
        }
        let memory = std::mem::take(&mut buffer.bytes);
        self.buffers[number] = None;
        let spare = &mut self.spare[size_class(memory.len())];
        if spare.len() < MAX_SPARE_BUFFERS {
            spare.push(memory);
        }
        self.free.push(number as u32);
    }

    fn drops_of(&mut self, packet: &Packet) -> Option<&mut FlowDrops> {
        let buffer = self.get(packet.handle);
        let has_data = buffer.segmenter.is_some() || buffer.headers.payload_len() > 0;
        if has_data { self.flows.get_mut(packet.flow_id as usize) } else { None }
    }
}

impl DropSink for Buffers {
    fn on_drop(&mut self, packet: Packet, _: DropReason) {
        if let Some(drops) = self.drops_of(&packet) {
            drops.on_drop(&packet);
        }
        self.release(packet.handle);
    }

    fn on_mark(&mut self, packet: &Packet, _: MarkReason) {
        if let Some(drops) = self.drops_of(packet) {
            drops.on_mark();
        }
    }

    fn tcp_header(&self, packet: &Packet) -> Option<TcpHeader> {
        let buffer = self.get(packet.handle);
        let whole = buffer.headers.tcp_header(&buffer.bytes)?;
        let Some(segmenter) = buffer.segmenter else { return Some(whole) };
        // A segment's data is a part of the GSO packet's.
        let payload = segmenter.segment(index_of(packet.handle))?.payload();
        let before = (payload.start - segmenter.header_len()) as u32;
        Some(TcpHeader {
            seq: whole.seq.wrapping_add(before),
            payload: payload.len() as u32,
            ..whole
        })
    }

    /// Gives a duplicate the same bytes, which stay until both packets have left.
    fn on_duplicate(&mut self, packet: &Packet) -> u64 {
        self.get_mut(packet.handle).left += 1;
        packet.handle
    }
}

impl About for Buffers {
    fn window(&self, _packet: &Packet) -> Option<u32> {
        None
    }
}

impl Traffic for Buffers {
    fn host_of(&self, packet: &Packet) -> u32 {
        self.get(packet.handle).route.host
    }

    fn ends_at_router(&self, packet: &Packet, passed: u32) -> bool {
        self.get(packet.handle).route.ends_at == Some(passed)
    }
}

/// The handle of segment `index` of buffer `number`.
pub(crate) const fn handle(number: u32, index: usize) -> u64 {
    (number as u64) << 16 | index as u64
}

/// The index of the packet of that handle among the segments of its buffer.
pub(crate) const fn index_of(handle: u64) -> usize {
    (handle & 0xffff) as usize
}

const fn buffer_of(handle: u64) -> usize {
    (handle >> 16) as usize
}

fn size_class(len: usize) -> usize {
    SIZES.iter().position(|&size| len <= size).expect("no packet is longer")
}

/// Single packets, some segments, full GSO packets.
const SIZES: [usize; 3] = [2_048, 16_384, 65_536];
/// Pieces of memory of one size that are kept for later.
const MAX_SPARE_BUFFERS: usize = 4_096;
