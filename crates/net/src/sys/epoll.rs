//! Waiting for many sockets at once (epoll(7)).
#![expect(unsafe_code, reason = "system calls that neither std nor socket2 offer")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use weir_core::Duration;

use super::checked;
use super::time::timespec;

/// A set of sockets that are watched. Level-triggered: what is ready is told until it no longer is.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u32);

/// A socket that is ready.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// The number under which it was added.
    pub token: u64,
    events: u32,
}

/// Room for what one wait tells.
pub struct Events(Vec<libc::epoll_event>);

impl Interest {
    /// Errors only, which are always told.
    pub const NONE: Self = Self(0);
    /// Data, or the end of it.
    pub const READ: Self = Self(libc::EPOLLIN as u32);
    /// Room for data.
    pub const WRITE: Self = Self(libc::EPOLLOUT as u32);
    /// Either.
    pub const BOTH: Self = Self((libc::EPOLLIN | libc::EPOLLOUT) as u32);
}

impl Ready {
    /// Whether there is data, or the end of it.
    #[must_use]
    pub const fn readable(self) -> bool {
        self.events & libc::EPOLLIN as u32 != 0
    }

    /// Whether there is room for data.
    #[must_use]
    pub const fn writable(self) -> bool {
        self.events & libc::EPOLLOUT as u32 != 0
    }

    /// An error or the end of both directions.
    #[must_use]
    pub const fn broken(self) -> bool {
        self.events & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0
    }
}

impl Events {
    /// Room for so many.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self(vec![libc::epoll_event { events: 0, u64: 0 }; room])
    }
}

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// If the kernel has none to give.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers; the descriptor returned is new and nobody else's.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: as above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches a socket under the number `token`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add(&self, socket: &impl AsRawFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, token, interest)
    }

    /// Waits for something else of a socket.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn modify(&self, socket: &impl AsRawFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, token, interest)
    }

    /// Forgets a socket.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove(&self, socket: &impl AsRawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, socket, 0, Interest::NONE)
    }

    /// Waits until something is ready, `timeout` at most. A signal ends the wait early.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn wait<'e>(
        &self,
        events: &'e mut Events,
        timeout: Duration,
    ) -> io::Result<impl Iterator<Item = Ready> + use<'e>> {
        let timeout = timespec(timeout.as_nanos());
        let room = events.0.len() as libc::c_int;
        // musl has no name for this call.
        const { assert!(size_of::<libc::timespec>() == 16, "what the kernel takes: two 64-bit numbers") };
        // SAFETY: the vector has `room` entries, and `timeout` outlives the call.
        let result = checked(unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.0.as_mut_ptr(),
                room,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        } as libc::c_int);
        let count = match result {
            Ok(count) => count as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        Ok(events.0[..count].iter().map(|event| Ready { token: event.u64, events: event.events }))
    }

    fn control(
        &self,
        operation: libc::c_int,
        socket: &impl AsRawFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.0, u64: token };
        // SAFETY: `event` outlives the call, and a wrong descriptor only yields an error.
        let result = unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), operation, socket.as_raw_fd(), &raw mut event)
        };
        checked(result).map(|_| ())
    }
}
