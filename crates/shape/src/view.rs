//! The view of a running shaper.

use serde::{Deserialize, Serialize};
use weir_core::Time;
use weir_rate_control::Decision;

/// View of a running shaper, made a few times a second. `S` are its words: owned ones of a view that was read as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "S: Deserialize<'de> + Default"))]
pub struct View<S = &'static str> {
    /// Nanoseconds since the start.
    pub t_ns: u64,
    /// The process that shapes.
    pub pid: u32,
    /// The device.
    pub device: String,
    /// Whether everything is let through because nobody has asked to shape yet.
    pub open: bool,
    /// Egress and ingress; `None` for one that is left alone.
    pub sides: [Option<SideView<S>>; 2],
    /// Delays since the last view: when what was measured left, ns; the round trip, ns; its source.
    pub delays: Vec<(u64, u64, u32)>,
    /// When a view had delays last, ns, and the median of their round trips, ns; `None` before there were any.
    pub last_delay: Option<(u64, u64)>,
    /// Decisions since the last view, with their times.
    #[serde(skip)]
    pub decisions: Vec<(Time, Decision)>,
    /// Reflectors that answer probes.
    pub reflectors: Vec<String>,
    /// Whether this host cannot ping, and which of the reflectors that were named do not answer, with why if that is known.
    pub trouble: Option<String>,
    /// How late the shaper itself was at worst since the last view, in ns: a busy machine adds that to delays.
    pub late_ns: u64,
    /// Packets that passed because they were not read in time.
    pub missed: u64,
    /// Diagnostics: what keeps it from helping now, in sentences.
    pub warnings: Vec<String>,
}

/// A view of one side of the shaper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "S: Deserialize<'de> + Default"))]
pub struct SideView<S = &'static str> {
    /// The rate, bit/s; `None` lets everything through.
    pub rate_bps: Option<u64>,
    /// Traffic since the last view, bit/s: what was sent into the line on the way out, of which the line may have
    /// dropped some, and what came out of it on the way in.
    pub load_bps: u64,
    /// Name of the controller's state, or what is done in place of control.
    pub state: S,
    /// Why it was entered, in a word, a number and its unit.
    pub reason: S,
    /// Number of the reason, in `unit`.
    pub value: f64,
    /// Unit of the reason's number.
    pub unit: S,
    /// Totals and what waits.
    pub counts: SideCounts,
}

/// Counts of a side's queue since the start, and its backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SideCounts {
    /// Bytes that were sent into the line, or came out of it, as the framing counts them.
    pub bytes: u64,
    /// Bytes that left the queue, as the framing counts them.
    pub departed_bytes: u64,
    /// Packets that wait now.
    pub backlog_packets: u64,
    /// Bytes that wait now.
    pub backlog_bytes: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked.
    pub marked: u64,
    /// Mean time that packets waited since the last view, in ns.
    pub sojourn_ns: Option<u64>,
}

/// The median of the round trips of a view's `delays`, ns; `None` if there are none.
pub(crate) fn median_rtt_ns(delays: &[(u64, u64, u32)]) -> Option<u64> {
    let mut rtts: Vec<u64> = delays.iter().map(|(_, rtt, _)| *rtt).collect();
    rtts.sort_unstable();
    let last = rtts.len().checked_sub(1)?;
    Some(u64::midpoint(rtts[last / 2], rtts[rtts.len() / 2]))
}

/// State and reason of a side whose controller is suspended: a proof measures the line without a shaper.
pub(crate) const PASSED_THROUGH: (&str, &str) = ("passed_through", "proof");
/// State of a side whose rate the user chose.
pub(crate) const FIXED: &str = "fixed";
