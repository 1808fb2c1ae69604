//! TUN devices: Documentation/networking/tuntap.rst of the kernel.

#![allow(
    unsafe_code,
    reason = "the requests that make a TUN device are ioctls, whose arguments nobody checks"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::sys::uio::readv;
use weir_packet::Virtio;

use crate::device::{MAX_GRO_SEGMENTS, PacketDevice};

/// A TUN device with virtio headers.
#[derive(Debug)]
pub struct Tun {
    file: File,
    offloads: bool,
}

impl Tun {
    /// Makes a TUN device called `name` in the calling thread's network namespace. With `offloads` the
    /// kernel hands over whole GSO packets, and takes them.
    pub fn new(name: &str, offloads: bool) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(TUN_NODE)?;
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        let mut request =
            InterfaceRequest { name: [0; libc::IFNAMSIZ], flags: flags as u16, _rest: [0; 22] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        let fd = file.as_raw_fd();
        // SAFETY: `request` is laid out as `struct ifreq` and outlives the call.
        unsafe { tunsetiff(fd, &raw const request) }?;
        let header = Virtio::LEN as libc::c_int;
        // SAFETY: the argument is an int that outlives the call.
        unsafe { tunsetvnethdrsz(fd, &raw const header) }?;
        let features = if offloads { F_CSUM | F_TSO4 | F_TSO6 | F_TSO_ECN } else { 0 };
        // SAFETY: the argument is a number.
        unsafe { tunsetoffload(fd, features) }?;
        Ok(Self { file, offloads })
    }
}

impl PacketDevice for Tun {
    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(Virtio, usize)>> {
        let mut header = [0; Virtio::LEN];
        let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
        let read = match readv(&self.file, &mut parts) {
            Ok(read) => read,
            Err(nix::Error::EAGAIN) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let len = read.saturating_sub(Virtio::LEN);
        let virtio = Virtio::parse(&header, len)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Some((virtio, len)))
    }

    fn send(&mut self, virtio: &Virtio, head: &[u8], payload: &[IoSlice<'_>]) -> io::Result<()> {
        let header = virtio.to_bytes();
        let mut parts = [IoSlice::new(&[]); MAX_IO_SLICES];
        parts[0] = IoSlice::new(&header);
        parts[1] = IoSlice::new(head);
        parts[2..2 + payload.len()].copy_from_slice(payload);
        self.file.write_vectored(&parts[..2 + payload.len()]).map(|_| ())
    }

    fn take_overrun(&mut self) -> u64 {
        // The kernel counts them as dropped by the device.
        0
    }

    fn takes_super_packets(&self) -> bool {
        self.offloads
    }
}

/// `struct ifreq` as TUNSETIFF reads it.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: u16,
    _rest: [u8; 22],
}

// The numbers of the first and the last say an `int`, which is not what they take.
nix::ioctl_write_ptr_bad!(
    tunsetiff,
    nix::request_code_write!(TUN, 202, size_of::<libc::c_int>()),
    InterfaceRequest
);
nix::ioctl_write_ptr!(tunsetvnethdrsz, TUN, 216, libc::c_int);
nix::ioctl_write_int_bad!(
    tunsetoffload,
    nix::request_code_write!(TUN, 208, size_of::<libc::c_uint>())
);

/// Device node that a program opens to have a TUN device.
pub const TUN_NODE: &str = "/dev/net/tun";
/// Header, headers of the packet, and its payload in up to as many pieces as segments are joined.
const MAX_IO_SLICES: usize = 2 + MAX_GRO_SEGMENTS;
// include/uapi/linux/if_tun.h
const TUN: u8 = b'T';
const F_CSUM: libc::c_int = 0x01;
const F_TSO4: libc::c_int = 0x02;
const F_TSO6: libc::c_int = 0x04;
const F_TSO_ECN: libc::c_int = 0x08;
