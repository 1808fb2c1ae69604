//! The send queue between an application and its TCP socket.

use weir_core::Time;
use weir_speedtest::protocol::UnsentBound;

/// The send queue of one end: bytes taken from the application that the socket has not taken yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendQueue {
    /// Bytes that may wait unsent in the socket (`TCP_NOTSENT_LOWAT`); `None` for as many as its buffer holds.
    most_unsent: Option<u32>,
    /// Whether it waits for half of that to be sent.
    waits: bool,
    /// Bytes taken from the application and not by the socket, and how many may be.
    staged: u64,
    most_staged: u64,
    secured: bool,
}

impl SendQueue {
    /// A send queue of a connection with or without TLS.
    pub const fn new(most_unsent: Option<u32>, secured: bool) -> Self {
        // Without TLS it is the one frame that the socket did not take.
        let records =
            UnsentBound::of_records(if let Some(most) = most_unsent { most } else { u32::MAX });
        let most_staged = if secured { records as u64 } else { 1 };
        Self { most_unsent, waits: false, staged: 0, most_staged, secured }
    }

    /// Sets the bytes that may wait unsent.
    pub const fn bound(&mut self, most_unsent: u32) {
        *self = Self {
            waits: self.waits,
            staged: self.staged,
            ..Self::new(Some(most_unsent), self.secured)
        };
    }

    /// Whether nothing waits before the socket.
    pub const fn is_empty(&self) -> bool {
        self.staged == 0
    }

    /// Whether the application is asked for more.
    pub const fn wants_more(&self) -> bool {
        self.staged < self.most_staged
    }

    /// Takes `bytes` from the application.
    pub const fn stage(&mut self, bytes: u64) {
        self.staged += bytes;
    }

    /// Bytes that the socket takes now, of which `unsent` wait in it; none if its send buffer has no room.
    ///
    /// A sender that had to wait goes on once half of what may wait is sent (`sk_stream_memory_free`).
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

/// How fast loads of an end go, which bounds what may wait unsent. The kernel's own estimate, by which real
/// ends go, is this rate here, where no application is late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoadRate {
    bound: UnsentBound,
    /// When it was looked last, and how many bytes had reached the other end; `None` while there is no load.
    looked: Option<(Time, u64)>,
}

impl LoadRate {
    /// The new bound of unsent bytes if it is time to look, under load; `reached` bytes reached the other end
    /// by `now`.
    pub fn look(&mut self, reached: u64, now: Time) -> Option<u32> {
        let (then, before) = *self.looked.get_or_insert((now, reached));
        let span = now.since(then);
        if span < UnsentBound::LOOK {
            return None;
        }
        self.looked = Some((now, reached));
        let bits = u128::from(reached - before) * 8;
        let rate = bits * 1_000_000_000 / u128::from(span.as_nanos());
        Some(self.bound.look(u64::try_from(rate).unwrap_or(u64::MAX)))
    }

    /// Notes that there is no load: the time until the next one says nothing about the rate.
    pub const fn pause(&mut self) {
        self.looked = None;
    }
}

/// Bytes that an application writes at once.
const WRITE: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_had_to_wait_goes_on_once_half_is_sent() {
        let mut send_queue = SendQueue::new(Some(100_000), true);
        send_queue.stage(90_000);
        assert!(!send_queue.wants_more());
        assert_eq!(send_queue.hand_over(true, 70_000), 30_000);
        assert_eq!(send_queue.hand_over(true, 100_000), 0);
        assert_eq!(send_queue.hand_over(true, 50_000), 0);
        assert_eq!(send_queue.hand_over(false, 49_999), 0);
        assert_eq!(send_queue.hand_over(true, 49_999), 50_001);
        assert_eq!(send_queue.hand_over(true, 0), 9_999);
        assert!(send_queue.is_empty());
    }

    #[test]
    fn without_a_bound_the_buffer_decides() {
        let mut send_queue = SendQueue::new(None, false);
        assert!(send_queue.wants_more());
        send_queue.stage(16_384);
        assert!(!send_queue.wants_more());
        assert_eq!(send_queue.hand_over(false, 0), 0);
        assert_eq!(send_queue.hand_over(true, 10_000_000), 16_384);
    }

    #[test]
    fn the_bound_follows_the_rate_of_the_load() {
        let mut rate = LoadRate::default();
        assert_eq!(rate.look(1_000, Time::from_millis(100)), None);
        assert_eq!(rate.look(5_000, Time::from_millis(149)), None);
        assert_eq!(rate.look(11_000, Time::from_millis(150)), Some(UnsentBound::MIN_BYTES));
        // 1.25 MB in 100 ms are 100 Mbit/s.
        assert_eq!(rate.look(1_261_000, Time::from_millis(250)), Some(62_500));
        // A second without load says nothing; a look at nothing takes a quarter.
        rate.pause();
        assert_eq!(rate.look(1_261_000, Time::from_millis(1_250)), None);
        assert_eq!(rate.look(1_261_000, Time::from_millis(1_300)), Some(46_875));
    }

    #[test]
    fn tls_keeps_no_more_than_the_socket() {
        let mut send_queue = SendQueue::new(Some(20_000), true);
        send_queue.stage(16_384);
        assert!(send_queue.wants_more());
        send_queue.bound(14_600);
        assert!(!send_queue.wants_more());
        send_queue.bound(500_000);
        send_queue.stage(49_151);
        assert!(send_queue.wants_more());
        send_queue.stage(1);
        assert!(!send_queue.wants_more(), "64 KiB whatever the bound");
    }
}
