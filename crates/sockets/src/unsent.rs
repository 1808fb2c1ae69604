//! Keeps short what waits unsent in a socket.

use std::io::{self, IoSlice};

use socket2::Socket;
use weir_speedtest::protocol::UnsentBound;

use crate::sys::time::monotonic_ns;
use crate::tcp_info::TcpInfo;

/// Lets `TCP_NOTSENT_LOWAT` of a connection follow the rate at which it delivers, as its kernel estimates it:
/// that estimate does not fall when the application is late, as the rate of what it sends would.
#[derive(Debug, Default)]
pub struct Unsent {
    bound: UnsentBound,
    /// When to look next, on `CLOCK_MONOTONIC`.
    next_ns: u64,
}

impl Unsent {
    /// To be called before every write: looks at the connection if it is time to, sets what may wait unsent
    /// in its socket, and returns that in bytes. `None` between looks, and if the connection is gone.
    pub fn look(&mut self, socket: &Socket) -> Option<u32> {
        let now_ns = monotonic_ns();
        if now_ns < self.next_ns {
            return None;
        }
        self.next_ns = now_ns + UnsentBound::LOOK.as_nanos();
        let info = TcpInfo::of(socket).ok()?;
        let bound = self.bound.look(info.delivery_rate_bps().unwrap_or(UNKNOWN_BPS));
        socket.set_tcp_notsent_lowat(bound).ok()?;
        Some(bound)
    }
}

/// Writes, and ends the socket's last segment with it (`MSG_EOR`): that is what makes a small bound hold. Linux asks
/// whether more may wait unsent only where a write begins a segment of the queue, and else adds to the last one up to
/// 64 KiB (`tcp_sendmsg_locked`, net/ipv4/tcp.c), which is 40 ms of 13 Mbit/s. A write that is not a multiple of the
/// connection's segment size costs a short packet.
///
/// # Errors
///
/// The errors of `sendmsg`(2); `WouldBlock` where so much waits already.
pub fn write_apart(socket: &Socket, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    socket.send_vectored_with_flags(parts, libc::MSG_EOR | libc::MSG_NOSIGNAL)
}

/// Kernels before Linux 4.9 know no rate: as loads of the lab have it.
const UNKNOWN_BPS: u64 = 200_000_000;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_socket_is_told_what_the_rate_asks_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut receiver = listener.accept().unwrap().0;
        let socket = Socket::from(sender.try_clone().unwrap());
        let mut unsent = Unsent::default();
        assert_eq!(unsent.look(&socket), Some(UnsentBound::MIN_BYTES), "nothing was delivered");
        assert_eq!(socket.tcp_notsent_lowat().unwrap(), UnsentBound::MIN_BYTES);
        assert_eq!(unsent.look(&socket), None, "it is too early");
        let data = vec![1; 1 << 20];
        let reader = std::thread::spawn(move || receiver.read_exact(&mut vec![0; 8 << 20]));
        for _ in 0..8 {
            sender.write_all(&data).unwrap();
        }
        reader.join().unwrap().unwrap();
        unsent.next_ns = 0;
        let rate = TcpInfo::of(&socket).unwrap().delivery_rate_bps().unwrap();
        assert_eq!(unsent.look(&socket), Some(UnsentBound::at(rate)));
        assert_eq!(socket.tcp_notsent_lowat().unwrap(), UnsentBound::at(rate));
        assert!(rate > 0);
    }

    /// Bytes that wait unsent in a socket whose peer reads nothing, after writes of 4 KiB.
    fn waits(write: impl Fn(&Socket, &[IoSlice<'_>]) -> io::Result<usize>) -> u32 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _receiver = listener.accept().unwrap().0;
        sender.set_nonblocking(true).unwrap();
        let socket = Socket::from(sender);
        socket.set_tcp_notsent_lowat(UnsentBound::MIN_BYTES).unwrap();
        let piece = [0; 4096];
        let refused = loop {
            if let Err(error) = write(&socket, &[IoSlice::new(&piece)]) {
                break error;
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        // tcpi_notsent_bytes
        u32::from_ne_bytes(TcpInfo::of(&socket).unwrap().bytes()[144..148].try_into().unwrap())
    }

    #[test]
    fn a_small_bound_holds_where_writes_end_segments() {
        assert!(waits(write_apart) < UnsentBound::MIN_BYTES + 4096);
        let joined = waits(Socket::send_vectored);
        assert!(joined >= UnsentBound::MIN_BYTES + 4096, "{joined}: then there is no need for it");
    }
}
