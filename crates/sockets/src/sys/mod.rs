//! System calls that the standard library and `socket2` lack: by `nix`, and by `libc` where that has no call either.
//!
//! Each file wraps one family of system calls in functions that are safe to call with any arguments.

pub mod epoll;
pub mod message;
pub mod option;
pub mod time;
