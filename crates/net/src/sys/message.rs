//! Datagrams with what the kernel tells about them (cmsg(3)).
#![expect(unsafe_code, reason = "system calls that neither std nor socket2 offer")]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

use socket2::{Domain, SockAddr, SockAddrStorage, Socket};

use super::{checked_len, option};

/// A datagram, or a piece of a stream, that was received.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Bytes of it that stand in the buffer.
    pub len: usize,
    /// Who sent it, or for an error to whom the packet that caused it was sent; `None` on a stream.
    pub peer: Option<SocketAddr>,
    /// When the kernel took it in, in nanoseconds on `CLOCK_REALTIME`, if it says so.
    pub real_ns: Option<u64>,
    /// To which address of this machine, if [`tell_everything`] was asked for.
    pub to: Option<IpAddr>,
    /// The TOS byte with which it came, likewise.
    pub tos: Option<u8>,
    /// The ICMP message, if it was taken from the queue of errors.
    pub icmp: Option<Icmp>,
}

/// Type and code of an ICMP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Its type.
    pub kind: u8,
    /// Its code.
    pub code: u8,
}

/// Takes what has arrived, without waiting.
pub fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<Received> {
    receive_with(socket, buffer, 0)
}

/// Takes an ICMP error with the beginning of the packet that caused it (`IP_RECVERR`, ip(7)).
pub fn receive_error(socket: &Socket, buffer: &mut [u8]) -> io::Result<Received> {
    receive_with(socket, buffer, libc::MSG_ERRQUEUE)
}

/// Sends `payload` to `peer` with `tos` in its IP header.
pub fn send_to(socket: &Socket, payload: &[u8], peer: SocketAddr, tos: u8) -> io::Result<()> {
    send_from(socket, payload, None, peer, tos)
}

/// The same from an address of this machine: on one with several, an answer has to come from the address
/// that was asked.
pub fn send_from(
    socket: &Socket,
    payload: &[u8],
    from: Option<IpAddr>,
    peer: SocketAddr,
    tos: u8,
) -> io::Result<()> {
    let (level, name) = match peer {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    };
    let address = SockAddr::from(peer);
    let mut control = Writer { control: Control([0; CONTROL]), len: 0 };
    control.push(level, name, libc::c_int::from(tos));
    match from {
        Some(IpAddr::V4(from)) => {
            let spec_dst = libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) };
            let any = libc::in_addr { s_addr: 0 };
            let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: spec_dst, ipi_addr: any };
            control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
        Some(IpAddr::V6(from)) => {
            let ipi6_addr = libc::in6_addr { s6_addr: from.octets() };
            let info = libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 };
            control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        }
        None => {}
    }
    let mut part =
        libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
    // SAFETY: a header of zeros is a valid one; every pointer put into it outlives the call, and the
    // lengths are those of what they point to.
    let result = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_name = address.as_ptr().cast_mut().cast();
        header.msg_namelen = address.len();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.control.0.as_mut_ptr().cast();
        header.msg_controllen = control.len as _;
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL)
    };
    checked_len(result).map(|_| ())
}

/// Asks for everything that [`Received`] may tell: when, to which address, with which TOS byte.
pub fn tell_everything(socket: &Socket) -> io::Result<()> {
    option::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    match socket.domain()? {
        Domain::IPV4 => {
            option::set(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
            option::set(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)
        }
        _ => {
            option::set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
            option::set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)
        }
    }
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
    let mut received = Received { len, peer, real_ns: None, to: None, tos: None, icmp: None };
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
                (libc::IPPROTO_IP, libc::IP_TOS) => received.tos = read::<u8>(message),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    received.tos = read::<libc::c_int>(message).map(|tos| tos as u8);
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    received.to = read::<libc::in_pktinfo>(message).map(|info| {
                        // In the order of the network, as all addresses in such structures.
                        Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into()
                    });
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    received.to = read::<libc::in6_pktinfo>(message)
                        .map(|info| Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
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
        let enough = libc::CMSG_LEN(size_of::<T>() as u32);
        // Which type the length has depends on the C library.
        ((*message).cmsg_len as u64 >= u64::from(enough))
            .then(|| libc::CMSG_DATA(message).cast::<T>().read_unaligned())
    }
}

/// Control messages that are being written, one behind the other.
struct Writer {
    control: Control,
    len: usize,
}

impl Writer {
    fn push<T: Copy>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) {
        let size = size_of::<T>() as u32;
        // SAFETY: takes no pointers.
        let (space, len) = unsafe { (libc::CMSG_SPACE(size) as usize, libc::CMSG_LEN(size)) };
        let room = &mut self.control.0[self.len..];
        assert!(room.len() >= space, "there is room for all messages that are ever written");
        let message = room.as_mut_ptr().cast::<libc::cmsghdr>();
        // SAFETY: there is room for the message, which is aligned, since all before it took their whole
        // aligned space; the value is written behind its header, without asking for alignment.
        unsafe {
            (*message).cmsg_level = level;
            (*message).cmsg_type = kind;
            (*message).cmsg_len = len as _;
            libc::CMSG_DATA(message).cast::<T>().write_unaligned(value);
        }
        self.len += space;
    }
}

/// Room for control messages, aligned as they need.
#[repr(align(8))]
struct Control([u8; CONTROL]);

/// A time stamp, an error with the address of the router that sent it, and some more.
const CONTROL: usize = 256;
/// `SO_EE_ORIGIN_ICMP` and `SO_EE_ORIGIN_ICMP6`.
const ICMP_ORIGINS: [u8; 2] = [2, 3];

#[cfg(test)]
mod tests {
    use socket2::Type;

    use super::*;

    fn bound(address: &str) -> Socket {
        let address: SocketAddr = address.parse().unwrap();
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None).unwrap();
        socket.bind(&address.into()).unwrap();
        socket
    }

    #[test]
    fn a_datagram_tells_its_way_and_its_mark_and_an_answer_comes_from_where_it_went() {
        let (server, client) = (bound("0.0.0.0:0"), bound("127.0.0.1:0"));
        tell_everything(&server).unwrap();
        let port = server.local_addr().unwrap().as_socket().unwrap().port();
        let asked = SocketAddr::new("127.0.0.9".parse().unwrap(), port);
        send_to(&client, b"ask", asked, 0xb9).unwrap();
        let mut buffer = [0; 16];
        let received = receive(&server, &mut buffer).unwrap();
        assert_eq!((received.to, received.tos), (Some(asked.ip()), Some(0xb9)));
        assert!(received.real_ns.is_some());
        send_from(&server, b"answer", received.to, received.peer.unwrap(), 0).unwrap();
        let answer = receive(&client, &mut buffer).unwrap();
        assert_eq!((answer.peer, answer.len), (Some(asked), 6));
    }
}
