//! Waiting for many sockets at once (epoll(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{self, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
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

/// A length of time as system calls without a name in libc take it: `struct __kernel_timespec`.
#[repr(C)]
#[derive(Debug, PartialEq, Eq)]
struct KernelTime {
    seconds: i64,
    nanoseconds: i64,
}

impl From<Duration> for KernelTime {
    fn from(length: Duration) -> Self {
        // 2^64 ns are less than 2^35 s.
        let part = |ns: u64| ns as i64;
        let ns = length.as_nanos();
        Self { seconds: part(ns / 1_000_000_000), nanoseconds: part(ns % 1_000_000_000) }
    }
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
            // Linux before 5.11.
            Err(Errno::ENOSYS) => self.poll_first(&mut events.0, timeout),
            told => told,
        };
        let count = match count {
            Err(Errno::EINTR) => 0,
            told => told?,
        };
        Ok(events.0[..count]
            .iter()
            .map(|event| Ready { token: event.data(), events: event.events() }))
    }

    /// epoll_pwait2(2): nix has no wait that is exact to less than a millisecond, and musl no name for it.
    ///
    /// The kernel takes 64-bit numbers everywhere; a libc of 32 bits has other ones in its `timespec`.
    #[expect(unsafe_code, reason = "nix waits in milliseconds")]
    fn pwait2(&self, events: &mut [EpollEvent], timeout: Duration) -> nix::Result<usize> {
        let timeout = KernelTime::from(timeout);
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

    /// The same by two calls that every kernel has.
    fn poll_first(&self, events: &mut [EpollEvent], timeout: Duration) -> nix::Result<usize> {
        let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(timeout.as_nanos()));
        ppoll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], Some(timeout), None)?;
        self.0.wait(events, EpollTimeout::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;

    #[test]
    fn both_ways_to_wait_tell_the_same() {
        let epoll = Epoll::new().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        epoll.add(&far, 7, Interest::READ).unwrap();
        type Wait = fn(&Epoll, &mut [EpollEvent], Duration) -> nix::Result<usize>;
        let ways: [Wait; 2] = [Epoll::pwait2, Epoll::poll_first];
        let short = Duration::from_micros(300);
        let mut room = vec![EpollEvent::empty(); 2];
        for wait in ways {
            let before = Instant::now();
            assert_eq!(wait(&epoll, &mut room, short), Ok(0));
            assert!(before.elapsed() >= std::time::Duration::from_micros(300));
        }
        near.write_all(b"x").unwrap();
        for wait in ways {
            assert_eq!(wait(&epoll, &mut room, Duration::from_millis(60_000)), Ok(1));
            assert_eq!((room[0].data(), room[0].events()), (7, EpollFlags::EPOLLIN));
        }
    }

    #[test]
    fn a_length_of_time_is_two_64_bit_numbers() {
        assert_eq!(size_of::<KernelTime>(), 16);
        let time = KernelTime::from(Duration::from_nanos(u64::MAX));
        assert_eq!(time, KernelTime { seconds: 18_446_744_073, nanoseconds: 709_551_615 });
    }
}
