//! What stands between an application and its TCP: what the socket takes, and what waits before it.

use weir_core::Time;
use weir_probe::UnsentBound;

/// One end's way out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlet {
    /// Bytes that may wait unsent in the socket (`TCP_NOTSENT_LOWAT`); `None` for as many as its buffer holds.
    most_unsent: Option<u32>,
    /// Whether it waits for half of that to be sent.
    waits: bool,
    /// Bytes taken from the application and not by the socket, and how many may be.
    staged: u64,
    most_staged: u64,
}

impl Outlet {
    /// A way out over TLS or not.
    pub const fn new(most_unsent: Option<u32>, secured: bool) -> Self {
        let most_staged = if secured { TLS_BUFFER } else { 1 };
        Self { most_unsent, waits: false, staged: 0, most_staged }
    }

    /// So many bytes may wait unsent from now on.
    pub const fn bound(&mut self, most_unsent: u32) {
        self.most_unsent = Some(most_unsent);
    }

    /// Whether nothing waits before the socket.
    pub const fn is_empty(&self) -> bool {
        self.staged == 0
    }

    /// Whether the application is asked for more.
    pub const fn wants_more(&self) -> bool {
        self.staged < self.most_staged
    }

    /// The application gives so many bytes.
    pub const fn stage(&mut self, bytes: u64) {
        self.staged += bytes;
    }

    /// How many bytes the socket takes now, whose send buffer has room or not, and in which so many wait
    /// unsent. Who had to wait goes on once half of what may wait is sent (`sk_stream_memory_free`).
    pub fn hand_over(&mut self, has_room: bool, unsent: u64) -> u64 {
        if !has_room {
            return 0;
        }
        let most = self.most_unsent.map_or(u64::MAX, u64::from);
        let limit = if self.waits { most / 2 } else { most };
        self.waits = unsent >= limit;
        if self.waits {
            return 0;
        }
        let bytes = self.staged.min(most - unsent).min(WRITE);
        self.staged -= bytes;
        bytes
    }
}

/// How fast a client's uploads go, which bounds what may wait unsent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UploadRate {
    bound: UnsentBound,
    looked: Time,
    acked: u64,
}

impl UploadRate {
    /// An upload begins when so many bytes are acknowledged.
    pub fn beginning(now: Time, acked: u64) -> Self {
        Self { looked: now, acked, ..Self::default() }
    }

    /// So many bytes are acknowledged by `now`: the bound, if it was time to look.
    pub fn look(&mut self, acked: u64, now: Time) -> Option<u32> {
        let mut found = None;
        while now.since(self.looked) >= UnsentBound::LOOK {
            self.looked += UnsentBound::LOOK;
            let bytes = acked - std::mem::replace(&mut self.acked, acked);
            found = Some(self.bound.look(bytes));
        }
        found
    }
}

/// What an application writes at once, in bytes.
const WRITE: u64 = 64 << 10;
/// What TLS keeps of records that the socket does not take, in bytes: rustls' bound, at both ends. Without TLS
/// it is the one frame that the socket did not take.
const TLS_BUFFER: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_had_to_wait_goes_on_once_half_is_sent() {
        let mut outlet = Outlet::new(Some(100_000), true);
        outlet.stage(90_000);
        assert!(!outlet.wants_more());
        assert_eq!(outlet.hand_over(true, 70_000), 30_000);
        assert_eq!(outlet.hand_over(true, 100_000), 0);
        assert_eq!(outlet.hand_over(true, 50_000), 0);
        assert_eq!(outlet.hand_over(false, 49_999), 0);
        assert_eq!(outlet.hand_over(true, 49_999), 50_001);
        assert_eq!(outlet.hand_over(true, 0), 9_999);
        assert!(outlet.is_empty());
    }

    #[test]
    fn without_a_bound_the_buffer_decides() {
        let mut outlet = Outlet::new(None, false);
        assert!(outlet.wants_more());
        outlet.stage(16_384);
        assert!(!outlet.wants_more());
        assert_eq!(outlet.hand_over(false, 0), 0);
        assert_eq!(outlet.hand_over(true, 10_000_000), 16_384);
    }

    #[test]
    fn the_bound_of_an_upload_follows_its_rate() {
        let mut rate = UploadRate::beginning(Time::from_millis(100), 1_000);
        assert_eq!(rate.look(5_000, Time::from_millis(149)), None);
        assert_eq!(rate.look(1_000, Time::from_millis(150)), Some(UnsentBound::LEAST));
        let fast = (4..44).map(|n| rate.look(n * 625_000, Time::from_millis(n * 50))).last();
        assert!(fast.flatten().is_some_and(|bytes| bytes > 62_000), "{fast:?}");
    }
}
