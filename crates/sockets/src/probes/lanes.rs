//! Sockets of one train of which each has one ping under way at most.
//!
//! Some answers carry no number: an ICMP error quotes the headers of the packet that caused it and perhaps
//! no more (RFC 792), and a handshake has none at all. The socket to which such an answer comes, and so its
//! port, tells which ping it answers. A socket that was answered is the next to be used again: as long as
//! pings are answered one by one, all have the same port.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;
use weir_core::{Duration, Time};

use crate::sys::epoll::{Epoll, Events, Interest};
use crate::sys::time::monotonic_ns;

/// The sockets of one train, opened as they are needed.
pub(super) struct Lanes {
    open: Opener,
    interest: Interest,
    epoll: Epoll,
    events: Events,
    /// By lane; a lane whose socket was closed opens another when it is lent.
    sockets: Vec<Option<Socket>>,
    loans: Loans,
}

/// Opens the socket of a lane.
type Opener = Box<dyn Fn(First) -> io::Result<Socket> + Send>;

/// Whether a socket is the first of its train, which may have a port of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Yes,
    No,
}

impl Lanes {
    /// Lanes of which none is open yet; `interest` is how an answer shows.
    pub fn new(
        open: impl Fn(First) -> io::Result<Socket> + Send + 'static,
        interest: Interest,
    ) -> io::Result<Self> {
        Ok(Self {
            open: Box::new(open),
            interest,
            epoll: Epoll::new()?,
            events: Events::new(1),
            sockets: Vec::new(),
            loans: Loans::new(MAX_LANES),
        })
    }

    /// Opens the first socket, so that what is wrong with it shows before anything is sent.
    pub fn open_first(&mut self) -> io::Result<()> {
        let socket = (self.open)(First::Yes)?;
        self.sockets.push(Some(socket));
        self.loans.opened();
        Ok(())
    }

    /// The lane and socket of ping number `seq`. [`watch`](Self::watch) it once it is in use.
    pub fn lend(&mut self, seq: u32) -> io::Result<(usize, &Socket)> {
        let now = Time::from_nanos(monotonic_ns());
        let lane = match self.loans.place(now) {
            LaneChoice::Idle(lane) => lane,
            LaneChoice::Overdue(lane) => {
                self.give_back(lane);
                lane
            }
            LaneChoice::New => {
                self.sockets.push(None);
                self.loans.opened()
            }
            LaneChoice::Full(lane) => {
                self.close(lane);
                lane
            }
        };
        if self.sockets[lane].is_none() {
            let socket = (self.open)(First::No).or_else(|error| {
                // This process may have no more open: the oldest ping is given up.
                self.close(self.loans.oldest().ok_or(error)?);
                (self.open)(First::No)
            })?;
            self.sockets[lane] = Some(socket);
        }
        self.loans.lend(lane, seq, now);
        Ok((lane, self.socket(lane)?))
    }

    /// From now on the answer to the ping of `lane` is waited for.
    pub fn watch(&self, lane: usize) -> io::Result<()> {
        self.epoll.add(self.socket(lane)?, lane as u64, self.interest)
    }

    /// Watches a socket that is none of these too.
    pub fn watch_other(&self, socket: &Socket) -> io::Result<()> {
        self.epoll.add(socket, NO_LANE, self.interest)
    }

    /// A lane to which something has come, its socket and the number of its ping.
    pub fn ready(&mut self) -> io::Result<(usize, &Socket, u32)> {
        let next = self.epoll.wait(&mut self.events, Duration::ZERO)?.next();
        let lane = next.ok_or(io::ErrorKind::WouldBlock)?.token as usize;
        let seq = self.loans.seq_of(lane).ok_or(io::ErrorKind::WouldBlock)?;
        Ok((lane, self.socket(lane)?, seq))
    }

    /// The ping of `lane` is answered, or cannot be.
    pub fn give_back(&mut self, lane: usize) {
        if let Some(socket) = &self.sockets[lane] {
            // It is not watched if nothing was sent.
            let _ = self.epoll.remove(socket);
        }
        self.loans.give_back(lane);
    }

    /// File descriptor that is readable when something has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Closes the socket of `lane`. Later answers to it count for nothing.
    fn close(&mut self, lane: usize) {
        self.give_back(lane);
        self.sockets[lane] = None;
    }

    fn socket(&self, lane: usize) -> io::Result<&Socket> {
        self.sockets[lane].as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

/// Accounting of which lane has which ping.
#[derive(Debug)]
struct Loans {
    most: usize,
    /// The ping of each lane, if one is under way.
    lent: Vec<Option<u32>>,
    /// Lanes and since when, by the number of their ping.
    lanes: BTreeMap<u32, (usize, Time)>,
    /// The latest to be answered comes first.
    idle: Vec<usize>,
}

/// Lane that the next ping takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneChoice {
    /// To a lane without a ping.
    Idle(usize),
    /// To one whose ping is so old that its answer will not come.
    Overdue(usize),
    /// To one more lane.
    New,
    /// To the one with the oldest ping: no more are allowed.
    Full(usize),
}

impl Loans {
    const fn new(most: usize) -> Self {
        Self { most, lent: Vec::new(), lanes: BTreeMap::new(), idle: Vec::new() }
    }

    /// Another lane is open: its number.
    fn opened(&mut self) -> usize {
        let lane = self.lent.len();
        self.lent.push(None);
        self.idle.push(lane);
        lane
    }

    fn place(&self, now: Time) -> LaneChoice {
        if let Some(&lane) = self.idle.last() {
            return LaneChoice::Idle(lane);
        }
        let is_overdue = |since| now.checked_since(since).is_some_and(|age| age > MAX_ROUND_TRIP);
        match self.lanes.first_key_value() {
            Some((_, &(lane, since))) if is_overdue(since) => LaneChoice::Overdue(lane),
            Some((_, &(lane, _))) if self.lent.len() >= self.most => LaneChoice::Full(lane),
            _ => LaneChoice::New,
        }
    }

    /// The lane of the oldest ping.
    fn oldest(&self) -> Option<usize> {
        self.lanes.first_key_value().map(|(_, &(lane, _))| lane)
    }

    fn lend(&mut self, lane: usize, seq: u32, now: Time) {
        self.give_back(lane);
        self.idle.retain(|&idle| idle != lane);
        self.lent[lane] = Some(seq);
        self.lanes.insert(seq, (lane, now));
    }

    fn give_back(&mut self, lane: usize) {
        if let Some(seq) = self.lent[lane].take() {
            self.lanes.remove(&seq);
            self.idle.push(lane);
        }
    }

    fn seq_of(&self, lane: usize) -> Option<u32> {
        self.lent.get(lane).copied().flatten()
    }
}

/// In place of a lane's number.
const NO_LANE: u64 = u64::MAX;
/// Lanes of a train: so many pings may be under way at once. Beyond them the oldest is given up.
pub(crate) const MAX_LANES: usize = 1024;
/// An answer later than this does not come: longer than any buffer that was ever reported (20 s).
const MAX_ROUND_TRIP: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(5);

    fn loans(most: usize) -> Loans {
        let mut loans = Loans::new(most);
        for seq in 0..most as u32 {
            assert_eq!(loans.place(NOW), LaneChoice::New);
            let lane = loans.opened();
            loans.lend(lane, seq, NOW);
        }
        loans
    }

    #[test]
    fn pings_that_are_answered_one_by_one_share_a_lane() {
        let mut loans = loans(1);
        for seq in 1..10 {
            assert_eq!(loans.seq_of(0), Some(seq - 1));
            loans.give_back(0);
            assert_eq!(loans.place(NOW), LaneChoice::Idle(0));
            loans.lend(0, seq, NOW);
        }
    }

    #[test]
    fn a_lane_whose_ping_is_lost_is_not_lent_again_while_its_answer_may_come() {
        let mut loans = loans(3);
        loans.give_back(1);
        loans.lend(1, 3, NOW);
        loans.give_back(1);
        assert_eq!(loans.place(NOW), LaneChoice::Idle(1));
        loans.lend(1, 4, NOW);
        let lent: Vec<_> = (0..3).map(|lane| loans.seq_of(lane)).collect();
        assert_eq!(lent, [Some(0), Some(4), Some(2)]);
        assert_eq!((loans.place(NOW), loans.oldest()), (LaneChoice::Full(0), Some(0)));
        assert_eq!(loans.place(NOW + MAX_ROUND_TRIP), LaneChoice::Full(0));
        let late = NOW + MAX_ROUND_TRIP + Duration::from_nanos(1);
        assert_eq!(loans.place(late), LaneChoice::Overdue(0));
        loans.lend(0, 5, late);
        assert_eq!((loans.seq_of(0), loans.oldest()), (Some(5), Some(2)));
    }

    #[test]
    fn what_was_given_back_means_no_ping() {
        let mut loans = loans(2);
        loans.give_back(0);
        loans.give_back(0);
        assert_eq!((loans.seq_of(0), loans.seq_of(7)), (None, None));
        assert_eq!(loans.idle, [0]);
    }
}
