//! Waiting for many sockets at once (epoll(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::epoll::{self, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;
use weir_core::Duration;

/// A set of sockets that are watched. Level-triggered: what is ready is told until it no longer is.
#[derive(Debug)]
pub struct Epoll(epoll::Epoll);

/// Readiness to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(EpollFlags);

/// A socket that is ready.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// The number under which it was added.
    pub token: u64,
    events: EpollFlags,
}

/// Room for what one wait tells.
pub struct Events(Vec<EpollEvent>);

impl Interest {
    /// Errors only, which are always told.
    pub const NONE: Self = Self(EpollFlags::empty());
    /// Data, or the end of it.
    pub const READ: Self = Self(EpollFlags::EPOLLIN);
    /// Room for data.
    pub const WRITE: Self = Self(EpollFlags::EPOLLOUT);
    /// Either.
    pub const BOTH: Self = Self(EpollFlags::EPOLLIN.union(EpollFlags::EPOLLOUT));
}

impl Ready {
    /// Whether there is data, or the end of it.
    #[must_use]
    pub const fn readable(self) -> bool {
        self.events.contains(EpollFlags::EPOLLIN)
    }

    /// Whether there is room for data.
    #[must_use]
    pub const fn writable(self) -> bool {
        self.events.contains(EpollFlags::EPOLLOUT)
    }

    /// An error or the end of both directions.
    #[must_use]
    pub const fn broken(self) -> bool {
        self.events.intersects(EpollFlags::EPOLLERR.union(EpollFlags::EPOLLHUP))
    }
}

impl Events {
    /// Room for so many.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self(vec![EpollEvent::empty(); room])
    }
}

impl AsFd for Epoll {
    /// Itself can be watched: it is readable while something in it is ready.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// If the kernel has none to give.
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?))
    }

    /// Watches a socket under the number `token`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add(&self, socket: &impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(self.0.add(socket, EpollEvent::new(interest.0, token))?)
    }

    /// Waits for something else of a socket.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn modify(&self, socket: &impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(self.0.modify(socket, &mut EpollEvent::new(interest.0, token))?)
    }

    /// Forgets a socket.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove(&self, socket: &impl AsFd) -> io::Result<()> {
        Ok(self.0.delete(socket)?)
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
        let count = match self.pwait2(&mut events.0, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        Ok(events.0[..count]
            .iter()
            .map(|event| Ready { token: event.data(), events: event.events() }))
    }

    /// epoll_pwait2(2): nix has no wait that is exact to less than a millisecond, and musl no name for it.
    #[expect(unsafe_code, reason = "nix waits in milliseconds")]
    fn pwait2(&self, events: &mut [EpollEvent], timeout: Duration) -> nix::Result<usize> {
        const { assert!(size_of::<TimeSpec>() == 16, "what the kernel takes: two 64-bit numbers") };
        let timeout = TimeSpec::from(std::time::Duration::from_nanos(timeout.as_nanos()));
        // SAFETY: the slice has as many entries as is said, and `timeout` outlives the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.0.as_raw_fd(),
                events.as_mut_ptr(),
                events.len(),
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        Errno::result(result).map(|count| count as usize)
    }
}
