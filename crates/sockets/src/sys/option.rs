//! Socket options and calls on TCP sockets that `socket2` does not have.
#![expect(unsafe_code, reason = "system calls that neither nix nor socket2 offers")]

use std::io;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::setsockopt;
use nix::{setsockopt_impl, sockopt_impl};
use socket2::Socket;

sockopt_impl!(
    /// ICMP messages that a raw socket does not hear: a bit for each type.
    IcmpFilter, SetOnly, libc::SOL_RAW, ICMP_FILTER, u32
);
sockopt_impl!(
    /// The rate at which a socket is paced at most, in bytes a second.
    MaxPacingRate, SetOnly, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, libc::c_ulong
);
sockopt_impl!(
    /// The shortest retransmission timeout of a TCP socket, in microseconds.
    RtoMinMicros, SetOnly, libc::IPPROTO_TCP, TCP_RTO_MIN_US, i32
);
sockopt_impl!(
    /// The greatest window that a TCP socket announces, in bytes.
    WindowClamp, SetOnly, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, i32
);

/// Hears no ICMP messages on a raw socket but those whose type's bit is 0 (raw(7)).
pub(crate) fn set_icmp_filter(socket: &Socket, types: u32) -> io::Result<()> {
    Ok(setsockopt(socket, IcmpFilter, &types)?)
}

/// Paces what a socket sends to at most so many bytes a second (`SO_MAX_PACING_RATE`, socket(7)).
///
/// # Errors
/// If the kernel refuses.
pub fn set_max_pacing_rate(socket: &Socket, rate: u64) -> io::Result<()> {
    // The greatest number of all switches pacing off.
    let rate = libc::c_ulong::try_from(rate).unwrap_or(NO_PACING).min(NO_PACING - 1);
    Ok(setsockopt(socket, MaxPacingRate, &rate)?)
}

/// Sets the shortest retransmission timeout of a TCP socket, in microseconds (Linux 6.15).
pub(crate) fn set_rto_min_us(socket: &Socket, micros: i32) -> io::Result<()> {
    Ok(setsockopt(socket, RtoMinMicros, &micros)?)
}

/// Bounds the window that a TCP socket announces, in bytes (`TCP_WINDOW_CLAMP`, tcp(7)).
pub(crate) fn set_window_clamp(socket: &Socket, bytes: i32) -> io::Result<()> {
    Ok(setsockopt(socket, WindowClamp, &bytes)?)
}

/// Reads an option into `value` and says how many bytes of it the kernel filled.
pub fn get_bytes(socket: &Socket, level: i32, name: i32, value: &mut [u8]) -> io::Result<usize> {
    let mut len = value.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `value`, and the count to `len`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut len)
    };
    Ok(Errno::result(result).map(|_| len as usize)?)
}

/// Takes up to `most` bytes of a TCP stream without copying them, and says how many there were; 0 at
/// its end (`MSG_TRUNC`, tcp(7)).
pub fn discard(socket: &Socket, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC on a TCP socket the kernel throws the bytes away and writes nothing; the
    // only callers have TCP sockets, and on any other the null pointer yields EFAULT.
    let result =
        unsafe { libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), most, libc::MSG_TRUNC) };
    Ok(Errno::result(result).map(|len| len as usize)?)
}

/// Ends a TCP connection at once: what was not sent yet is dropped, and the peer is told by a reset.
pub fn abort(socket: &Socket) -> io::Result<()> {
    let address = libc::sockaddr {
        sa_family: libc::AF_UNSPEC as libc::sa_family_t,
        ..libc::sockaddr { sa_family: 0, sa_data: [0; 14] }
    };
    // SAFETY: `address` outlives the call, and its length is given.
    let result = unsafe {
        libc::connect(
            socket.as_raw_fd(),
            &raw const address,
            size_of::<libc::sockaddr>() as libc::socklen_t,
        )
    };
    Ok(Errno::result(result).map(drop)?)
}

/// Raises the number of files that this process may have open as far as it may, and returns it.
pub fn raise_open_files() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

const NO_PACING: libc::c_ulong = libc::c_ulong::MAX;
/// `include/uapi/linux/icmp.h`; the C library's crate lacks it.
const ICMP_FILTER: i32 = 1;
/// `include/uapi/linux/tcp.h` since Linux 6.15.
const TCP_RTO_MIN_US: i32 = 45;
