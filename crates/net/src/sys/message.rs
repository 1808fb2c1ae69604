//! Datagrams with what the kernel tells about them (cmsg(3)).
#![expect(unsafe_code, reason = "system calls that neither std nor socket2 offer")]

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use socket2::{SockAddr, SockAddrStorage, Socket};

use super::checked_len;

/// A datagram, or a piece of a stream, that was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Bytes of it that stand in the buffer.
    pub len: usize,
    /// Who sent it, or for an error to whom the packet that caused it was sent; `None` on a stream.
    pub peer: Option<SocketAddr>,
    /// When the kernel took it in, in nanoseconds on `CLOCK_REALTIME`, if it says so.
    pub real_ns: Option<u64>,
    /// The ICMP message, if it was taken from the queue of errors.
    pub icmp: Option<Icmp>,
}

/// Type and code of an ICMP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Icmp {
    pub kind: u8,
    pub code: u8,
}

/// Takes what has arrived, without waiting.
pub(crate) fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<Received> {
    receive_with(socket, buffer, 0)
}

/// Takes an ICMP error with the beginning of the packet that caused it (`IP_RECVERR`, ip(7)).
pub(crate) fn receive_error(socket: &Socket, buffer: &mut [u8]) -> io::Result<Received> {
    receive_with(socket, buffer, libc::MSG_ERRQUEUE)
}

/// Sends `payload` to `peer` with `tos` in its IP header.
pub(crate) fn send_to(
    socket: &Socket,
    payload: &[u8],
    peer: SocketAddr,
    tos: u8,
) -> io::Result<()> {
    let (level, name) = match peer {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    };
    let address = SockAddr::from(peer);
    let mut control = Control([0; CONTROL]);
    let mut part =
        libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
    // SAFETY: a header of zeros is a valid one; every pointer put into it outlives the call, the
    // lengths are those of what they point to, and `control` is aligned and has room for one `int`.
    let result = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_name = address.as_ptr().cast_mut().cast();
        header.msg_namelen = address.len();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(size_of::<libc::c_int>() as u32) as _;
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        (*first).cmsg_level = level;
        (*first).cmsg_type = name;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as _;
        libc::CMSG_DATA(first).cast::<libc::c_int>().write_unaligned(libc::c_int::from(tos));
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL)
    };
    checked_len(result).map(|_| ())
}

fn receive_with(socket: &Socket, buffer: &mut [u8], flags: i32) -> io::Result<Received> {
    let mut control = Control([0; CONTROL]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a header of zeros is a valid one.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL as _;
    let mut address = SockAddrStorage::zeroed();
    header.msg_name = (&raw mut address).cast();
    header.msg_namelen = address.size_of();
    // SAFETY: every pointer in the header outlives the call, and the lengths are those of what they
    // point to.
    let len = checked_len(unsafe {
        libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags | libc::MSG_DONTWAIT)
    })?;
    // SAFETY: the kernel wrote an address of that length, or none and the length 0.
    let address = unsafe { SockAddr::new(address, header.msg_namelen) };
    let peer = if header.msg_namelen == 0 { None } else { address.as_socket() };
    let mut received = Received { len, peer, real_ns: None, icmp: None };
    // SAFETY: the kernel filled `control` with well-formed messages; the macros stay within its length,
    // and `read` copies only if the message has as many bytes as the type.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(one) = message.as_ref() {
            match (one.cmsg_level, one.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    received.real_ns = read::<libc::timespec>(message)
                        .map(|at| at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64);
                }
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                    received.icmp = read::<libc::sock_extended_err>(message)
                        .filter(|error| ICMP_ORIGINS.contains(&error.ee_origin))
                        .map(|error| Icmp { kind: error.ee_type, code: error.ee_code });
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    Ok(received)
}

/// What a control message carries, if it is long enough.
///
/// # Safety
/// `message` must point to a whole control message, and `T` must be valid for any bytes.
unsafe fn read<T: Copy>(message: *const libc::cmsghdr) -> Option<T> {
    // SAFETY: promised by the caller; CMSG_LEN counts the header and the padding behind it.
    unsafe {
        let enough = libc::CMSG_LEN(size_of::<T>() as u32) as usize;
        ((*message).cmsg_len >= enough)
            .then(|| libc::CMSG_DATA(message).cast::<T>().read_unaligned())
    }
}

/// Room for control messages, aligned as they need.
#[repr(align(8))]
struct Control([u8; CONTROL]);

/// A time stamp, an error with the address of the router that sent it, and some more.
const CONTROL: usize = 256;
/// `SO_EE_ORIGIN_ICMP` and `SO_EE_ORIGIN_ICMP6`.
const ICMP_ORIGINS: [u8; 2] = [2, 3];
