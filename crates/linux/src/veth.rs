//! Where there is no TUN device: a veth pair, of which one end is read and written with a packet socket
//! (packet(7), Documentation/networking/packet_mmap.rst).
//!
//! An ordinary user needs a TUN device node that everybody may open; a packet socket in a network
//! namespace of one's own needs nothing. Packets come one by one here: without GSO packets, and with
//! their checksums done.

#![allow(unsafe_code, reason = "the ring of a packet socket is memory shared with the kernel")]

use std::io::{self, IoSlice};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike, bind, getsockopt, send,
    setsockopt, socket,
};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use weir_packet::{Checksum, Virtio};

use crate::device::PacketDevice;

/// The near end of a veth pair.
#[derive(Debug)]
pub struct Veth {
    socket: OwnedFd,
    ring: Ring,
    /// Bytes in front of every packet that is sent: the Ethernet header for each version of IP.
    ethernet: [[u8; ETHERNET]; 2],
    scratch: Vec<u8>,
}

/// Frames that the kernel fills one after another.
#[derive(Debug)]
struct Ring {
    memory: NonNull<u8>,
    frame: usize,
    frames: usize,
    next: usize,
}

// SAFETY: the ring's memory belongs to this value alone, and to the kernel.
unsafe impl Send for Ring {}

impl Veth {
    /// Reads and writes the device of that index in the calling thread's network namespace, whose peer
    /// has the hardware address `peer`. Packets have `mtu` bytes at most.
    pub fn new(index: u32, peer: [u8; 6], mtu: u32) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        // Nothing comes before it is told from which device.
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
        setsockopt(&socket, PacketVersion, &TPACKET_V2)?;
        setsockopt(&socket, PacketIgnoreOutgoing, &true)?;
        // A frame has the headers of the ring, the Ethernet header and the packet.
        let frame = (mtu as usize + RING_HEADERS).next_power_of_two();
        let block = BLOCK.max(frame);
        let blocks = (RING_FRAMES * frame).div_ceil(block);
        let frames = blocks * (block / frame);
        let request = [block as u32, blocks as u32, frame as u32, frames as u32];
        setsockopt(&socket, PacketRxRing, &request)?;
        let ring = Ring::map(&socket, frame, frames)?;
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: it points to an address of that family and size.
        let address = unsafe { LinkAddr::from_raw((&raw const address).cast(), Some(size)) };
        bind(socket.as_raw_fd(), &address.expect("it is of that family"))?;
        let ethernet = [[0x08, 0x00], [0x86, 0xdd]].map(|ether_type| {
            let mut header = [0; ETHERNET];
            header[..6].copy_from_slice(&peer);
            header[6] = 0x02;
            header[12..].copy_from_slice(&ether_type);
            header
        });
        Ok(Self { socket, ring, ethernet, scratch: Vec::with_capacity(frame) })
    }
}

impl PacketDevice for Veth {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(Virtio, usize)>> {
        let taken = self.ring.take(|packet| {
            let len = packet.len().min(buffer.len());
            buffer[..len].copy_from_slice(&packet[..len]);
            len
        });
        let finished = Virtio { checksum: Checksum::Unknown, gso: None, hdr_len: 0 };
        Ok(taken.map(|len| (finished, len)))
    }

    fn send(&mut self, _: &Virtio, head: &[u8], payload: &[IoSlice<'_>]) -> io::Result<()> {
        let six = head.first().is_some_and(|first| first >> 4 == 6);
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.ethernet[usize::from(six)]);
        self.scratch.extend_from_slice(head);
        for part in payload {
            self.scratch.extend_from_slice(part);
        }
        send(self.socket.as_raw_fd(), &self.scratch, MsgFlags::MSG_DONTWAIT)?;
        Ok(())
    }

    fn take_overrun(&mut self) -> u64 {
        getsockopt(&self.socket, PacketStatistics).map_or(0, |[_, dropped]| u64::from(dropped))
    }

    fn takes_super_packets(&self) -> bool {
        false
    }
}

impl Ring {
    fn map(socket: &OwnedFd, frame: usize, frames: usize) -> io::Result<Self> {
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let len = NonZeroUsize::new(frame * frames).expect("a ring has frames");
        // SAFETY: a new mapping of the ring that the socket was just given, of its size.
        let memory = unsafe { mmap(None, len, protection, MapFlags::MAP_SHARED, socket, 0) }?;
        Ok(Self { memory: memory.cast(), frame, frames, next: 0 })
    }

    /// Shows the next packet, if there is one, from its IP header on, and gives its frame back.
    fn take<T>(&mut self, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        // SAFETY: `next` is below `frames`: the frame lies within the mapping.
        let frame = unsafe { self.memory.add(self.next * self.frame) };
        // SAFETY: a frame begins with its status word, which is aligned as the frame is.
        let status = unsafe { AtomicU32::from_ptr(frame.as_ptr().cast()) };
        if status.load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has filled the frame's header, `struct tpacket2_hdr`, and is done with it.
        let header: TpacketHeader = unsafe { frame.cast().read() };
        let start = (usize::from(header.mac) + ETHERNET).min(self.frame);
        let len = (header.snaplen as usize).saturating_sub(ETHERNET).min(self.frame - start);
        // SAFETY: `start` and `len` were cut to the frame, which nobody writes until it is given back.
        let packet = unsafe { std::slice::from_raw_parts(frame.as_ptr().add(start), len) };
        let result = look(packet);
        status.store(TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.frames;
        Some(result)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `map` made, and nothing refers to it any more.
        let _ = unsafe { munmap(self.memory.cast(), self.frame * self.frames) };
    }
}

sockopt_impl!(PacketVersion, SetOnly, libc::SOL_PACKET, PACKET_VERSION, libc::c_int);
sockopt_impl!(PacketIgnoreOutgoing, SetOnly, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, bool);
// `struct tpacket_req`: the size and number of blocks, and of frames.
sockopt_impl!(PacketRxRing, SetOnly, libc::SOL_PACKET, PACKET_RX_RING, [u32; 4]);
// `struct tpacket_stats`: packets that came, and how many of them were dropped.
sockopt_impl!(PacketStatistics, GetOnly, libc::SOL_PACKET, PACKET_STATISTICS, [u32; 2]);

/// The front of `struct tpacket2_hdr` (include/uapi/linux/if_packet.h).
#[repr(C)]
struct TpacketHeader {
    status: u32,
    len: u32,
    snaplen: u32,
    mac: u16,
    net: u16,
}

const ETHERNET: usize = 14;
/// `struct tpacket2_hdr`, the address behind it, alignment and the Ethernet header.
const RING_HEADERS: usize = 128;
/// Packets that may wait while this process does not run, each in 2 KB: 100 ms at 1 Gbit/s.
const RING_FRAMES: usize = 8192;
const BLOCK: usize = 1 << 16;
// include/uapi/linux/if_packet.h
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VERSION: libc::c_int = 10;
const TPACKET_V2: libc::c_int = 1;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;
