//! The bytes of the packets on the path, found by the handles of their descriptors.

use weir_core::{Packet, TcpHeader};
use weir_path::Traffic;
use weir_qdisc::{About, DropReason, Fates, MarkReason};
use weir_wire::{Checksum, Cut, Headers};

/// What came out of the kernel in one piece: a packet, or a super-packet whose segments queue one by one.
#[derive(Debug)]
pub(crate) struct Piece {
    /// From the IP header on.
    pub bytes: Vec<u8>,
    /// What they say.
    pub headers: Headers,
    /// How they are cut, if they are a super-packet.
    pub cut: Option<Cut>,
    /// The state of a single packet's checksum.
    pub checksum: Checksum,
    /// Where it goes.
    pub way: Way,
    /// Segments that are still under way.
    left: u32,
}

/// Where a piece goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// The number of the server to or from which it goes.
    pub host: u32,
    /// The router at which its time to live ends, by the number of hops in front of it.
    pub ends_at: Option<u32>,
}

/// All pieces under way, and what became of those that did not arrive.
#[derive(Debug)]
pub(crate) struct Buffers {
    pieces: Vec<Option<Piece>>,
    free: Vec<u32>,
    /// Memory of pieces that have left, by size: used again.
    spare: [Vec<Vec<u8>>; SIZES.len()],
    /// By flow of the scenario.
    pub flows: Vec<FlowFate>,
}

/// What became of a flow's data packets on the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowFate {
    /// How many were dropped.
    pub dropped_packets: u64,
    /// Their IP bytes.
    pub dropped_bytes: u64,
    /// How many were marked CE.
    pub marked_packets: u64,
}

impl Buffers {
    pub fn new(flows: usize) -> Self {
        Self {
            pieces: Vec::new(),
            free: Vec::new(),
            spare: Default::default(),
            flows: vec![FlowFate::default(); flows],
        }
    }

    /// Keeps a copy of `bytes`, which `headers` describe. Returns the number of the piece, of which the
    /// handles of its segments are made with [`handle`].
    pub fn put(
        &mut self,
        bytes: &[u8],
        headers: Headers,
        cut: Option<Cut>,
        checksum: Checksum,
        way: Way,
    ) -> u32 {
        let size = size_class(bytes.len());
        let mut memory = self.spare[size].pop().unwrap_or_else(|| Vec::with_capacity(SIZES[size]));
        memory.clear();
        memory.extend_from_slice(bytes);
        let left = cut.map_or(1, |cut| cut.count() as u32);
        let piece = Piece { bytes: memory, headers, cut, checksum, way, left };
        if let Some(number) = self.free.pop() {
            self.pieces[number as usize] = Some(piece);
            return number;
        }
        self.pieces.push(Some(piece));
        self.pieces.len() as u32 - 1
    }

    /// The piece to which the packet of that handle belongs.
    pub fn get(&self, handle: u64) -> &Piece {
        self.pieces[piece_of(handle)].as_ref().expect("a packet under way has its bytes")
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, handle: u64) -> &mut Piece {
        self.pieces[piece_of(handle)].as_mut().expect("a packet under way has its bytes")
    }

    /// The packet of that handle is no longer under way.
    pub fn release(&mut self, handle: u64) {
        let number = piece_of(handle);
        let piece = self.pieces[number].as_mut().expect("a packet is released once");
        piece.left -= 1;
        if piece.left > 0 {
            return;
        }
        let memory = std::mem::take(&mut piece.bytes);
        self.pieces[number] = None;
        let spare = &mut self.spare[size_class(memory.len())];
        if spare.len() < MAX_SPARE_BUFFERS {
            spare.push(memory);
        }
        self.free.push(number as u32);
    }

    fn fate(&mut self, packet: &Packet) -> Option<&mut FlowFate> {
        let piece = self.get(packet.handle);
        let has_data = piece.cut.is_some() || piece.headers.payload_len() > 0;
        if has_data { self.flows.get_mut(packet.owner as usize) } else { None }
    }
}

impl Fates for Buffers {
    fn on_drop(&mut self, packet: Packet, _: DropReason) {
        if let Some(fate) = self.fate(&packet) {
            fate.dropped_packets += 1;
            fate.dropped_bytes += u64::from(packet.ip_len());
        }
        self.release(packet.handle);
    }

    fn on_mark(&mut self, packet: &Packet, _: MarkReason) {
        if let Some(fate) = self.fate(packet) {
            fate.marked_packets += 1;
        }
    }

    fn tcp_header(&self, packet: &Packet) -> Option<TcpHeader> {
        let piece = self.get(packet.handle);
        let whole = piece.headers.tcp_header(&piece.bytes)?;
        let Some(cut) = piece.cut else { return Some(whole) };
        // A segment's data is a part of the super-packet's.
        let payload = cut.segment(index_of(packet.handle))?.payload();
        let before = (payload.start - cut.header_len()) as u32;
        Some(TcpHeader {
            seq: whole.seq.wrapping_add(before),
            payload: payload.len() as u32,
            ..whole
        })
    }

    /// Both lead to the same bytes, which stay until both have left.
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
        self.get(packet.handle).way.host
    }

    fn ends_at_router(&self, packet: &Packet, passed: u32) -> bool {
        self.get(packet.handle).way.ends_at == Some(passed)
    }
}

/// The handle of segment `index` of piece `number`.
pub(crate) const fn handle(number: u32, index: usize) -> u64 {
    (number as u64) << 16 | index as u64
}

/// Which segment of its piece the packet of that handle is.
pub(crate) const fn index_of(handle: u64) -> usize {
    (handle & 0xffff) as usize
}

const fn piece_of(handle: u64) -> usize {
    (handle >> 16) as usize
}

fn size_class(len: usize) -> usize {
    SIZES.iter().position(|&size| len <= size).expect("no packet is longer")
}

/// Single packets, some segments, full super-packets.
const SIZES: [usize; 3] = [2_048, 16_384, 65_536];
/// Pieces of memory of one size that are kept for later.
const MAX_SPARE_BUFFERS: usize = 4_096;
