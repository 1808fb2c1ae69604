//! How much of an upload may wait unsent in the client's socket (`TCP_NOTSENT_LOWAT`).
//!
//! More than 5 ms would delay what shares the connection (draft-ietf-ippm-responsiveness-09, section "Server
//! side influence", which asks it of both sides); much less would leave the line idle.

use weir_core::Duration;

/// Follows the rate of an upload.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnsentBound {
    rate_bps: u64,
}

impl UnsentBound {
    /// How often to look.
    pub const LOOK: Duration = Duration::from_millis(50);
    /// Ten segments, which is TCP's initial window (RFC 6928).
    pub const LEAST: u32 = 14_600;

    /// The bound in bytes, once so many more bytes were acknowledged in the last [`Self::LOOK`].
    pub fn look(&mut self, acknowledged: u64) -> u32 {
        // Smoothed over four looks: acknowledgements come in clumps.
        self.rate_bps = (3 * self.rate_bps + acknowledged * 8 * LOOKS_PER_SECOND) / 4;
        Self::at(self.rate_bps)
    }

    /// The bound in bytes at a rate in bit/s.
    #[must_use]
    pub fn at(rate_bps: u64) -> u32 {
        u32::try_from(rate_bps / 8 / SHARES_OF_SECOND).unwrap_or(u32::MAX).max(Self::LEAST)
    }

    /// The bound of an upload over a WebSocket, which shares its connection with nothing: that of 200 Mbit/s,
    /// as loads of the lab have it.
    #[must_use]
    pub fn of_websocket() -> u32 {
        Self::at(200_000_000)
    }
}

const LOOKS_PER_SECOND: u64 = 20;
/// 5 ms.
const SHARES_OF_SECOND: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_five_milliseconds_of_the_rate() {
        let mut bound = UnsentBound::default();
        assert_eq!(bound.look(0), UnsentBound::LEAST);
        // 625 kB in 50 ms are 100 Mbit/s.
        let last = (0..40).map(|_| bound.look(625_000)).last();
        assert!((62_400..=62_500).contains(&last.unwrap()), "{last:?}");
        assert_eq!(UnsentBound::of_websocket(), 125_000);
    }
}
