//! The interface of a backend that holds packets back.

use std::os::fd::BorrowedFd;

use weir_core::{Duration, FlowKey, Rate, TcpHeader, Time};
use weir_linux::GuardNews;
use weir_rate_control::{Side, Traffic};

use crate::ShapeError;
use crate::view::SideCounts;

/// A backend that holds packets back at rates that are set while it works.
///
/// On drop it brings back what was there before it, unless that is done already.
pub(crate) trait Shaper: Send {
    /// File descriptor that is readable when packets wait for this process; `None` if none ever do.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Does what is due by `now`, and shows `watch` the packets, where this process sees them.
    fn work(&mut self, watch: &mut dyn Watch, now: Time) -> Result<Found, ShapeError>;

    /// Tells the guard of the line, every [`BEAT`](weir_linux::BEAT), that this process is at work: what the
    /// guard has done.
    fn beat(&mut self) -> Result<Option<GuardNews>, ShapeError>;

    /// Drops what the kernel took in for this process while that stood still: who sent it has sent it again.
    fn drop_unread(&mut self) -> Result<(), ShapeError>;

    /// When there is something to do next, if that is known.
    fn wake_at(&self) -> Option<Time>;

    /// Lets a side's packets leave at `rate` from `now` on, or all at once.
    fn set_rate(&mut self, side: Side, rate: Option<Rate>, now: Time) -> Result<(), ShapeError>;

    /// Brings the counters up to date.
    fn look(&mut self) -> Result<(), ShapeError>;

    /// The device `name` has gone, and another one is called so now.
    ///
    /// # Errors
    /// If that is not shaped.
    fn come_again(&mut self, name: &str) -> Result<(), ShapeError>;

    /// Counters of a side in the form that the controller takes; `None` for a side that is left alone.
    fn traffic(&self, side: Side) -> Option<Traffic>;

    /// Counters of a side in the form that people read; `None` for a side that is left alone.
    fn counts(&mut self, side: Side) -> Option<SideCounts>;

    /// Brings back what was there before.
    fn restore(&mut self) -> Result<(), ShapeError>;

    /// What people are to know of it for as long as it works, in one sentence.
    fn caution(&self) -> Option<String> {
        None
    }

    /// Packets so far that passed because they were not read in time.
    fn missed(&self) -> u64;

    /// The priority that sockets of probes need (SO_PRIORITY), where it is by that that probes do not wait.
    fn probe_priority(&self) -> Option<u32>;
}

/// The packets that [`work`](Shaper::work) found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// None came and none left.
    Nothing,
    /// What was held back has not all been due: a look up to so long after this one would have done.
    Early(Duration),
    /// What was held back was all due, and the line may have been idle since; or nothing was.
    Late,
    /// As many have come as are taken in at once: more may have.
    More,
}

/// Sees every packet before it is queued.
pub(crate) trait Watch {
    /// Whether a packet belongs to one of our own probes.
    fn is_probe(&self, key: &FlowKey, side: Side) -> bool;
    /// Hears that one of our own probes left at `at`; until then it was held back here.
    fn probe_left(&mut self, key: &FlowKey, at: Time);
    /// The answer to one has come, at `at`.
    fn answer_came(&mut self, key: &FlowKey, at: Time);
    /// A packet of the user's comes, or came at `at` on the way in.
    fn comes(&mut self, key: &FlowKey, tcp: Option<&TcpHeader>, bytes: u64, side: Side, at: Time);
    /// A packet of the user's goes.
    fn goes(&mut self, key: &FlowKey, tcp: Option<&TcpHeader>, side: Side, now: Time);
}
