//! TCP sockets of a network namespace, as the kernel tells of them: sock_diag(7), include/uapi/linux/inet_diag.h.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::LinuxError;
use crate::message::{Message, NLM_F_DUMP, attributes};
use crate::netlink::Netlink;

/// One end of a TCP connection, as its kernel tells of it.
#[derive(Clone, Debug)]
pub struct TcpEnd {
    /// Address of this end.
    pub local: SocketAddr,
    /// The address of the other end.
    pub remote: SocketAddr,
    /// Congestion control, such as `cubic`; `None` where the kernel does not tell.
    pub congestion_control: Option<String>,
    /// Whether the other end has said that no more comes, which the kernel counts as a byte.
    pub heard_all: bool,
    /// `struct tcp_info`, as long as this kernel has it.
    pub info: Vec<u8>,
}

/// All ends of TCP connections in the namespace of `netlink` ([`Netlink::of_sockets`]). Servers may hold IPv4 in sockets
/// of IPv6.
///
/// # Errors
/// If the kernel does not tell of its sockets.
pub fn tcp_ends(netlink: &Netlink) -> Result<Vec<TcpEnd>, LinuxError> {
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        netlink
            .list(&request(family as u8), &mut |body| found.extend(read(body)))
            .map_err(|error| LinuxError::io("cannot list the TCP connections", error))?;
    }
    Ok(found)
}

/// Asks for all connections of a family that carry data: `struct inet_diag_req_v2`.
fn request(family: u8) -> Vec<u8> {
    let mut header = vec![family, libc::IPPROTO_TCP as u8, EXTENSIONS, 0];
    header.extend(STATES.to_ne_bytes());
    header.extend([0; SOCKET_ID]);
    Message::with_header(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &header).finish()
}

/// An end from `struct inet_diag_msg` and what follows it; `None` of a socket without `TCP_INFO`.
fn read(body: &[u8]) -> Option<TcpEnd> {
    let id = body.get(STATE_AND_TIMER..STATE_AND_TIMER + SOCKET_ID)?;
    let v4 = i32::from(*body.first()?) == libc::AF_INET;
    let end = |port: usize, address: usize| {
        let port = u16::from_be_bytes([id[port], id[port + 1]]);
        let bytes: [u8; 16] = id[address..address + 16].try_into().expect("16 of them");
        let ip = if v4 {
            IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])
        } else {
            Ipv6Addr::from(bytes).to_canonical()
        };
        SocketAddr::new(ip, port)
    };
    let heard_all = STATES_AFTER_FIN & (1 << body[1]) != 0;
    let (mut info, mut congestion_control) = (None, None);
    for (kind, value) in attributes(body.get(DIAG_MSG..)?) {
        match kind {
            INET_DIAG_INFO => info = Some(value.to_vec()),
            INET_DIAG_CONG => {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                congestion_control = Some(String::from_utf8_lossy(name).into_owned());
            }
            _ => {}
        }
    }
    Some(TcpEnd {
        local: end(0, 4),
        remote: end(2, 20),
        congestion_control,
        heard_all,
        info: info?,
    })
}

// include/uapi/linux/sock_diag.h, inet_diag.h
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// The bits of both.
const EXTENSIONS: u8 = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
/// Lengths of `struct inet_diag_sockid`, of what stands before it, and of `struct inet_diag_msg`.
const SOCKET_ID: usize = 48;
const STATE_AND_TIMER: usize = 4;
const DIAG_MSG: usize = 72;
/// Established, and all states of one that closes and may still carry data (include/net/tcp_states.h): 1,
/// 4 and 5, 8 and 9, 11.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | STATES_AFTER_FIN;
const STATES_AFTER_FIN: u32 = 1 << 8 | 1 << 9 | 1 << 11;

#[cfg(test)]
mod tests {
    use super::*;

    const ESTABLISHED: u8 = 1;
    const CLOSE_WAIT: u8 = 8;

    /// The kernel's answer about a server's IPv6 socket that holds a connection of IPv4.
    fn answer(info: &[u8], state: u8) -> Vec<u8> {
        let mut header = vec![libc::AF_INET6 as u8, state, 0, 0];
        header.extend(8080u16.to_be_bytes());
        header.extend(40_000u16.to_be_bytes());
        for last in [[10, 1, 0, 1], [10, 0, 0, 1]] {
            header.extend([0; 10]);
            header.extend([0xff; 2]);
            header.extend(last);
        }
        header.resize(DIAG_MSG, 0);
        let mut message = Message::with_header(SOCK_DIAG_BY_FAMILY, 0, &header);
        message.put(INET_DIAG_CONG, b"cubic\0");
        message.put(INET_DIAG_INFO, info);
        message.finish().split_off(16)
    }

    #[test]
    fn the_request_is_as_long_as_the_kernel_wants_it() {
        assert_eq!(request(2).len(), 16 + 56);
    }

    #[test]
    fn an_answer_is_read() {
        let end = read(&answer(&[7; 232], ESTABLISHED)).unwrap();
        assert_eq!(end.local, "10.1.0.1:8080".parse().unwrap());
        assert_eq!(end.remote, "10.0.0.1:40000".parse().unwrap());
        assert_eq!(end.congestion_control.as_deref(), Some("cubic"));
        assert_eq!(end.info, [7; 232]);
        assert!(!end.heard_all);
        assert!(read(&answer(&[7; 232], CLOSE_WAIT)).unwrap().heard_all);
    }
}
