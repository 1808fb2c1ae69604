//! Where packets leave and enter the kernel.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use weir_packet::Virtio;

/// A device whose packets this process reads and writes. It never blocks.
pub trait PacketDevice: Send {
    /// File descriptor that is readable when packets wait.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Takes the next packet that the kernel sends: its bytes, from the IP header on, go to the front of
    /// `buffer`, which holds the longest. `None` if none waits.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(Virtio, usize)>>;

    /// Hands a packet to the kernel: `head` and then `payload`.
    fn send(&mut self, virtio: &Virtio, head: &[u8], payload: &[IoSlice<'_>]) -> io::Result<()>;

    /// Packets that were lost on their way here because nobody read them in time, as far as the device itself
    /// counts them, since the last call.
    fn take_overrun(&mut self) -> u64;

    /// Whether packets of many segments can be handed over.
    fn takes_super_packets(&self) -> bool;
}

/// The longest packet with its headers.
pub const MAX_PACKET_BYTES: usize = 65_535;
/// Segments that are handed over as one packet at most: as many as a TCP sender puts into one GSO packet.
pub const MAX_GRO_SEGMENTS: usize = 46;
