//! Congestion control: how large the window is.
//!
//! An algorithm is a file of its own and a line in [`Algorithm`]. Loss recovery calls it as Linux calls
//! `tcp_congestion_ops`: it decides the slow start threshold after a loss and grows the window while
//! there is none; the reduction itself and retransmission are not its business.

mod bbr;
mod cubic;
mod reno;

use weir_core::Rng;

use crate::rate::{RateSample, RateSampler};
use crate::recovery::Phase;
use crate::window::{AckSample, Window};

/// A congestion control algorithm.
pub(crate) trait CongestionControl {
    /// The slow start threshold after a congestion event, in segments.
    fn ssthresh(&mut self, window: &Window) -> u32;

    /// `acked` segments were delivered without a sign of congestion: may grow the window.
    fn on_delivered(&mut self, window: &mut Window, acked: u32);

    /// An acknowledgement brought a round trip.
    fn on_rtt(&mut self, window: &mut Window, sample: &AckSample) {
        let _ = (window, sample);
    }

    /// A retransmission timeout began.
    fn on_timeout(&mut self, window: &Window) {
        let _ = window;
    }

    /// The window when a reduction turns out to have been needless, `prior_cwnd` being the one before it.
    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        window.cwnd.max(prior_cwnd)
    }

    /// How many windows the send buffer holds.
    fn send_buffer_factor(&self) -> u32 {
        2
    }

    /// Data is sent after nothing was in flight.
    fn on_restart(&mut self, window: &Window) {
        let _ = window;
    }

    /// The part that sets the rate and the window by itself, in recovery too; `None` if there is none, and
    /// loss recovery and the window do.
    fn rate_control(&mut self) -> Option<&mut dyn RateControl> {
        None
    }
}

/// A congestion control that goes by the rate at which data arrives (`cong_control`).
pub(crate) trait RateControl {
    /// The connection is open.
    fn on_established(&mut self, window: &mut Window, path: &Path);

    /// An acknowledgement was taken in: sets window and pacing rate.
    fn on_ack(
        &mut self,
        window: &mut Window,
        path: &Path,
        rate: &mut RateSampler,
        sample: &RateSample,
    );

    /// A retransmission timeout began.
    fn on_timeout(&mut self, path: &Path, rate: &RateSampler);

    /// A reduction was taken back.
    fn on_undo(&mut self, path: &Path, rate: &RateSampler);

    /// Data is sent after nothing was in flight.
    fn on_restart(&mut self, window: &mut Window, path: &Path, rate: &RateSampler);

    /// The fewest segments that leave at once.
    fn least_burst(&self, window: &Window) -> u32;
}

/// The sender's measurements of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Segments' size, in bytes.
    pub mss: u32,
    /// Segments delivered, and segments lost, since the start.
    pub delivered: u32,
    pub lost: u32,
    pub in_flight: u32,
    pub phase: Phase,
    /// Eight times the smoothed round trip in microseconds, 0 before the first.
    pub srtt8_us: u32,
    /// The shortest round trip in microseconds, the largest number before the first.
    pub min_rtt_us: u32,
    /// Microseconds until pacing lets the next burst go.
    pub next_burst_us: u64,
}

/// The known algorithms.
#[derive(Clone, Debug)]
pub(crate) enum Algorithm {
    Reno(reno::Reno),
    Cubic(cubic::Cubic),
    Bbr(Box<bbr::Bbr>),
}

/// The names of the known algorithms, as `net.ipv4.tcp_congestion_control` has them.
pub const ALGORITHMS: &[&str] = &["reno", "cubic", "bbr"];

impl Algorithm {
    /// The algorithm called `name`, which draws from `random` what it leaves to chance.
    pub fn named(name: &str, random: Rng) -> Option<Self> {
        match name {
            "reno" => Some(Self::Reno(reno::Reno)),
            "cubic" => Some(Self::Cubic(cubic::Cubic::default())),
            "bbr" => Some(Self::Bbr(Box::new(bbr::Bbr::new(random)))),
            _ => None,
        }
    }
}

impl std::ops::Deref for Algorithm {
    type Target = dyn CongestionControl;
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Reno(reno) => reno,
            Self::Cubic(cubic) => cubic,
            Self::Bbr(bbr) => &**bbr,
        }
    }
}

impl std::ops::DerefMut for Algorithm {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Reno(reno) => reno,
            Self::Cubic(cubic) => cubic,
            Self::Bbr(bbr) => &mut **bbr,
        }
    }
}
