//! Congestion control: how large the window is.
//!
//! An algorithm is a file of its own and a line in [`Algorithm`]. Loss recovery calls it as Linux calls
//! `tcp_congestion_ops`: it decides the slow start threshold after a loss and grows the window while
//! there is none; the reduction itself and retransmission are not its business.

mod cubic;
mod reno;

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

    /// How many windows the send buffer holds.
    fn send_buffer_factor(&self) -> u32 {
        2
    }

    /// Data is sent after nothing was in flight.
    fn on_restart(&mut self, window: &Window) {
        let _ = window;
    }
}

/// The known algorithms.
#[derive(Clone, Debug)]
pub(crate) enum Algorithm {
    Reno(reno::Reno),
    Cubic(cubic::Cubic),
}

/// The names of the known algorithms, as `net.ipv4.tcp_congestion_control` has them.
pub const ALGORITHMS: &[&str] = &["reno", "cubic"];

impl Algorithm {
    /// The algorithm called `name`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "reno" => Some(Self::Reno(reno::Reno)),
            "cubic" => Some(Self::Cubic(cubic::Cubic::default())),
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
        }
    }
}

impl std::ops::DerefMut for Algorithm {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Reno(reno) => reno,
            Self::Cubic(cubic) => cubic,
        }
    }
}
