//! What the standard library and `socket2` do not reach: the only place with `unsafe` code.
//!
//! Each file wraps one family of system calls in functions that are safe to call with any arguments.

pub mod epoll;
pub mod message;
pub mod option;
pub mod time;

use std::io;

/// The error of the system call that just returned a negative number, or its result.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The same for calls that count bytes.
fn checked_len(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
