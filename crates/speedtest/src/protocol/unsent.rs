//! How much of a load may wait unsent in a socket (`TCP_NOTSENT_LOWAT`).
//!
//! What waits there delays whatever else is sent over the connection: a self probe of the responsiveness test
//! would measure it along with the network. The draft asks both ends for about 5 ms of the rate
//! (draft-ietf-ippm-responsiveness-09, section "Server side influence"); much less would leave the line idle.

use weir_core::Duration;

/// Follows the rate at which a connection delivers.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnsentBound {
    rate_bps: u64,
}

impl UnsentBound {
    /// How often to look at the rate.
    pub const LOOK: Duration = Duration::from_millis(50);
    /// Four segments. Half of the bound is left when the sender is woken: the two that Linux sends at least at
    /// once (`tcp_min_tso_segs`).
    pub const MIN_BYTES: u32 = 4 * 1460;
    /// 5 ms at 1.7 Gbit/s. What an application is late by does not grow with the rate, and this is memory of
    /// every connection.
    pub const MAX_BYTES: u32 = 1 << 20;

    /// The bound in bytes after the rate was measured as `rate_bps` bit/s.
    pub fn look(&mut self, rate_bps: u64) -> u32 {
        // Down over four looks: single rates vary, and too little costs throughput at once, while too much
        // costs a few milliseconds of a few probes.
        self.rate_bps = rate_bps.max((3 * self.rate_bps + rate_bps) / 4);
        Self::at(self.rate_bps)
    }

    /// The bound in bytes at a rate in bit/s.
    #[must_use]
    pub fn at(rate_bps: u64) -> u32 {
        let share = rate_bps / 8 / SHARES_OF_SECOND;
        share.clamp(Self::MIN_BYTES.into(), Self::MAX_BYTES.into()) as u32
    }

    /// The bound of an upload over a WebSocket, which shares its connection with nothing: that of 200 Mbit/s,
    /// as loads of the lab have it.
    #[must_use]
    pub fn of_websocket() -> u32 {
        Self::at(200_000_000)
    }

    /// Bytes of records that TLS may keep when the socket takes no more, if `bound` bytes may wait in the
    /// socket.
    ///
    /// They delay as much as those in the socket. 64 KiB are rustls' own bound.
    #[must_use]
    pub const fn of_records(bound: u32) -> u32 {
        if bound < MAX_RECORD_BYTES { bound } else { MAX_RECORD_BYTES }
    }
}

/// Number of bounds in a second: a bound is 5 ms of the load's rate.
const SHARES_OF_SECOND: u64 = 200;
const MAX_RECORD_BYTES: u32 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_five_milliseconds_of_the_rate() {
        let mut bound = UnsentBound::default();
        assert_eq!(bound.look(0), UnsentBound::MIN_BYTES);
        assert_eq!(bound.look(100_000_000), 62_500);
        assert_eq!(bound.look(20_000_000_000), UnsentBound::MAX_BYTES);
        assert_eq!(UnsentBound::of_websocket(), 125_000);
    }

    #[test]
    fn it_goes_up_at_once_and_down_by_and_by() {
        let mut bound = UnsentBound::default();
        let bytes = [200_000_000, 40_000_000, 40_000_000, 0].map(|rate| bound.look(rate));
        assert_eq!(bytes, [125_000, 100_000, 81_250, 60_937]);
        let last = (0..40).map(|_| bound.look(40_000_000)).last();
        assert_eq!(last, Some(25_000));
    }

    #[test]
    fn records_of_tls_wait_no_longer_than_what_the_socket_has() {
        assert_eq!(UnsentBound::of_records(UnsentBound::MIN_BYTES), UnsentBound::MIN_BYTES);
        assert_eq!(UnsentBound::of_records(UnsentBound::MAX_BYTES), 64 << 10);
    }
}
