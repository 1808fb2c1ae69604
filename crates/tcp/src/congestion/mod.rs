//! Congestion control: how large the window is.
//!
//! An algorithm is a file of its own, which declares an [`Algorithm`], and its place in [`ALGORITHMS`]. Loss recovery calls it as Linux calls
//! `tcp_congestion_ops`: it decides the slow start threshold after a loss and grows the window while
//! there is none; the reduction itself and retransmission are not its business.

mod bbr;
mod cdg;
mod cubic;
mod dctcp;
mod ledbat;
mod lp;
mod reno;
mod westwood;

use std::fmt::Debug;

use weir_core::Rng;

use crate::rate::{RateSample, RateSampler};
use crate::recovery::Phase;
use crate::window::{AckSample, Window};

/// A congestion control algorithm at work on one connection. What it does not say itself it does as Reno.
pub(crate) trait CongestionControl: Debug + Send {
    /// The slow start threshold after a congestion event, in segments.
    fn ssthresh(&mut self, window: &Window) -> u32 {
        reno::half(window)
    }

    /// `acked` segments were delivered while no reduction was under way: may grow the window, or find the
    /// path congested by the round trips alone.
    fn on_delivered(&mut self, window: &mut Window, acked: u32) -> Verdict {
        reno::grow(window, acked);
        Verdict::Fine
    }

    /// The connection is open; `ecn` says whether both ends agreed on ECN.
    fn on_established(&mut self, window: &Window, ecn: bool) {
        let _ = (window, ecn);
    }

    /// An acknowledgement was taken in (`in_ack_event` and `pkts_acked`).
    fn on_ack(&mut self, window: &mut Window, sample: &AckSample) {
        let _ = (window, sample);
    }

    /// Fast recovery begins, the threshold being set: may change it (`set_state`).
    fn on_recovery(&mut self, window: &mut Window) {
        let _ = window;
    }

    /// A reduction is over: may set the window by itself (`CA_EVENT_COMPLETE_CWR`).
    fn on_reduction_end(&mut self, window: &mut Window) {
        let _ = window;
    }

    /// A timeout has set the threshold: may change it (`CA_EVENT_LOSS`).
    fn on_loss(&mut self, window: &mut Window) {
        let _ = window;
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

    /// Data is sent after nothing was in flight (`CA_EVENT_TX_START`).
    fn on_restart(&mut self, window: &Window) {
        let _ = window;
    }

    /// The window is about to be reduced after a silence longer than a timeout (`CA_EVENT_CWND_RESTART`).
    fn on_idle_restart(&mut self, window: &Window) {
        let _ = window;
    }

    /// Whether it counts congestion marks one by one: both ends speak ECN, and the receiver echoes each mark
    /// (`TCP_CONG_NEEDS_ECN`).
    fn counts_marks(&self) -> bool {
        false
    }

    /// The part that sets the rate and the window by itself, in recovery too; `None` if there is none, and
    /// loss recovery and the window do.
    fn rate_control(&mut self) -> Option<&mut dyn RateControl> {
        None
    }
}

/// What an algorithm makes of the path when data was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing speaks against going on.
    Fine,
    /// The window must be reduced as if congestion had been echoed.
    Congested,
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
    /// Eight times the smoothed round trip in microseconds; `None` before the first sample.
    pub srtt8_us: Option<u32>,
    /// The shortest round trip in microseconds, the largest number before the first.
    pub min_rtt_us: u32,
    /// Microseconds until pacing lets the next burst go.
    pub next_burst_us: u64,
}

/// A congestion control of the registry: its name and source, and how a connection's own one is made.
#[derive(Debug)]
pub struct Algorithm {
    /// Name of the congestion control, as `net.ipv4.tcp_congestion_control` has it.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Source: RFC or paper, and kernel file.
    pub source: &'static str,
    /// Makes one, which draws from the random stream what it leaves to chance.
    pub(crate) begin: fn(Rng) -> Box<dyn CongestionControl>,
}

/// Every congestion control, in the order in which messages and `weir list` name them.
pub static ALGORITHMS: &[&Algorithm] = &[
    &reno::RENO,
    &cubic::CUBIC,
    &bbr::BBR,
    &westwood::WESTWOOD,
    &dctcp::DCTCP,
    &cdg::CDG,
    &lp::LP,
    &ledbat::LEDBAT,
];

impl Algorithm {
    /// The algorithm called `name`.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        ALGORITHMS.iter().find(|known| known.name == name).copied()
    }
}

/// What to write in place of a name that no congestion control has: the nearest one, or which there are.
pub(crate) fn instead_of(name: &str) -> String {
    let known = || ALGORITHMS.iter().map(|known| known.name);
    match weir_core::nearest(name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
    }
}
