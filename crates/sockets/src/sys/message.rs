//! Datagrams with what the kernel tells about them (cmsg(3)).

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use socket2::{Domain, Socket};

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
    /// The ICMP error, if it was taken from the queue of errors.
    pub error: Option<IcmpError>,
}

/// An ICMP error and who sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// Type and code of the message.
    pub icmp: Icmp,
    /// Who sent it, if the kernel says so.
    pub from: Option<IpAddr>,
    /// Error number that a socket gets for it (`icmp_err_convert` in Linux).
    pub errno: i32,
}

/// Type and code of an ICMP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Type of the message.
    pub kind: u8,
    /// Code of the message.
    pub code: u8,
}

impl Icmp {
    /// "Time to live exceeded in transit" (RFC 792; RFC 4443, section 3.3).
    #[must_use]
    pub fn is_time_exceeded(self, v4: bool) -> bool {
        self == Self { kind: if v4 { 11 } else { 3 }, code: 0 }
    }

    /// "Port unreachable" (RFC 792; RFC 4443, section 3.1).
    #[must_use]
    pub fn is_closed_port(self, v4: bool) -> bool {
        self == if v4 { Self { kind: 3, code: 3 } } else { Self { kind: 1, code: 4 } }
    }
}

/// Takes what has arrived, without waiting.
pub fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<Received> {
    receive_with(socket, buffer, MsgFlags::empty())
}

/// Takes an ICMP error with the beginning of the packet that caused it (`IP_RECVERR`, ip(7)).
pub fn receive_error(socket: &Socket, buffer: &mut [u8]) -> io::Result<Received> {
    receive_with(socket, buffer, MsgFlags::MSG_ERRQUEUE)
}

/// Sends `payload` to `peer` with `tos` in its IP header.
pub fn send_to(socket: &Socket, payload: &[u8], peer: SocketAddr, tos: u8) -> io::Result<()> {
    send_from(socket, payload, None, peer, tos)
}

/// Sends `payload` to `peer` with `tos` in its IP header, from an address of this machine: on one with several,
/// an answer has to come from the address that was asked.
pub fn send_from(
    socket: &Socket,
    payload: &[u8],
    from: Option<IpAddr>,
    peer: SocketAddr,
    tos: u8,
) -> io::Result<()> {
    let class = i32::from(tos);
    let mark = match peer {
        SocketAddr::V4(_) => ControlMessage::Ipv4Tos(&tos),
        SocketAddr::V6(_) => ControlMessage::Ipv6TClass(&class),
    };
    let any = libc::in_addr { s_addr: 0 };
    let (info_v4, info_v6);
    let source = match from {
        Some(IpAddr::V4(from)) => {
            let ipi_spec_dst = libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) };
            info_v4 = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst, ipi_addr: any };
            Some(ControlMessage::Ipv4PacketInfo(&info_v4))
        }
        Some(IpAddr::V6(from)) => {
            let ipi6_addr = libc::in6_addr { s6_addr: from.octets() };
            info_v6 = libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 };
            Some(ControlMessage::Ipv6PacketInfo(&info_v6))
        }
        None => None,
    };
    let (alone, both);
    let messages = match source {
        None => {
            alone = [mark];
            &alone[..]
        }
        Some(source) => {
            both = [mark, source];
            &both[..]
        }
    };
    let peer = SockaddrStorage::from(peer);
    let parts = [IoSlice::new(payload)];
    sendmsg(socket.as_raw_fd(), &parts, messages, MsgFlags::MSG_NOSIGNAL, Some(&peer))?;
    Ok(())
}

/// Asks for everything that [`Received`] may tell: when, to which address, with which TOS byte.
pub fn tell_everything(socket: &Socket) -> io::Result<()> {
    setsockopt(socket, sockopt::ReceiveTimestampns, &true)?;
    if socket.domain()? == Domain::IPV4 {
        setsockopt(socket, sockopt::Ipv4PacketInfo, &true)?;
        setsockopt(socket, sockopt::IpRecvTos, &true)?;
    } else {
        setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        setsockopt(socket, sockopt::Ipv6RecvTClass, &true)?;
    }
    Ok(())
}

fn receive_with(socket: &Socket, buffer: &mut [u8], flags: MsgFlags) -> io::Result<Received> {
    let mut control = Control([0; CONTROL]);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = flags | MsgFlags::MSG_DONTWAIT;
    let message =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control.0), flags)?;
    let peer = message.address.as_ref().and_then(standard);
    let mut received =
        Received { len: message.bytes, peer, real_ns: None, to: None, tos: None, error: None };
    for told in message.cmsgs()? {
        match told {
            ControlMessageOwned::ScmTimestampns(at) => {
                received.real_ns = Some(at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64);
            }
            ControlMessageOwned::Ipv4Tos(tos) => received.tos = Some(tos),
            ControlMessageOwned::Ipv6TClass(tos) => received.tos = Some(tos as u8),
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                // In the order of the network, as all addresses in such structures.
                received.to = Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                received.to = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            }
            ControlMessageOwned::Ipv4RecvErr(error, from) => {
                let from = from.map(|v4| Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes()).into());
                received.error = icmp_error(&error, from);
            }
            ControlMessageOwned::Ipv6RecvErr(error, from) => {
                let from = from.map(|v6| Ipv6Addr::from(v6.sin6_addr.s6_addr).into());
                received.error = icmp_error(&error, from);
            }
            _ => {}
        }
    }
    Ok(received)
}

/// The error, if it came by ICMP: the kernel has errors of its own too.
fn icmp_error(error: &libc::sock_extended_err, from: Option<IpAddr>) -> Option<IcmpError> {
    let icmp = Icmp { kind: error.ee_type, code: error.ee_code };
    let is_icmp = ICMP_ORIGINS.contains(&error.ee_origin);
    is_icmp.then_some(IcmpError { icmp, from, errno: error.ee_errno as i32 })
}

/// An address of the internet as the standard library writes it.
fn standard(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|&v4| SocketAddr::V4(SocketAddrV4::from(v4)));
    v4.or_else(|| address.as_sockaddr_in6().map(|&v6| SocketAddr::V6(SocketAddrV6::from(v6))))
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
