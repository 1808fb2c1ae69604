//! Socket options and calls on TCP sockets that `socket2` does not have.
#![expect(unsafe_code, reason = "system calls that neither std nor socket2 offer")]

use std::io;
use std::os::fd::AsRawFd;

use socket2::Socket;

use super::{checked, checked_len};

/// Sets an option whose value is an `int`.
pub fn set(socket: &Socket, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_bytes(socket, level, name, &value.to_ne_bytes())
}

/// Sets an option whose value are these bytes.
pub fn set_bytes(socket: &Socket, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads `value.len()` bytes from `value`.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    checked(result).map(|_| ())
}

/// Reads an option into `value` and says how many bytes of it the kernel filled.
pub fn get_bytes(socket: &Socket, level: i32, name: i32, value: &mut [u8]) -> io::Result<usize> {
    let mut len = value.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `value`, and the count to `len`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut len)
    };
    checked(result).map(|_| len as usize)
}

/// Takes up to `most` bytes of a TCP stream without copying them, and says how many there were; 0 at
/// its end (`MSG_TRUNC`, tcp(7)).
pub fn discard(socket: &Socket, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC on a TCP socket the kernel throws the bytes away and writes nothing; the
    // only callers have TCP sockets, and on any other the null pointer yields EFAULT.
    checked_len(unsafe {
        libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), most, libc::MSG_TRUNC)
    })
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
    checked(result).map(|_| ())
}

/// Raises the number of files that this process may have open as far as it may, and returns it.
pub fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives the call.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: `limit` outlives the call.
        checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    }
    Ok(limit.rlim_cur)
}
