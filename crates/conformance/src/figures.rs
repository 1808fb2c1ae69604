//! A run in figures: what each flow and each class got, lost and waited.

use std::collections::BTreeMap;

use crate::recording::{CE, Departure, Recording};

/// The figures of a run by name, the same names in the same order for every run of one recording.
pub(crate) type Figures = Vec<Figure>;

/// One figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub name: String,
    pub value: f64,
    /// Differences up to here are the recording's grain.
    pub grain: f64,
    /// Change of the value by one packet more or less.
    pub step: f64,
}

/// Counts and delays of a group of packets.
#[derive(Default)]
struct Group {
    arrived: u32,
    left: u32,
    bytes: u64,
    marked: u32,
    delays_ms: Vec<f64>,
}

/// The figures of `departures`, which a discipline made of `recording`'s arrivals.
pub(crate) fn figures(recording: &Recording, departures: &[Departure]) -> Figures {
    let mut left: BTreeMap<u64, &Departure> = BTreeMap::new();
    for departure in departures {
        // Of a duplicate the first copy counts.
        left.entry(departure.id).or_insert(departure);
    }
    let mut groups: BTreeMap<(&str, u32), Group> = BTreeMap::new();
    for arrival in &recording.arrivals {
        let classes = [("all", 0), ("flow", arrival.flow), ("DSCP", arrival.dscp.into())];
        for class in classes {
            let group = groups.entry(class).or_default();
            group.arrived += 1;
            let Some(departure) = left.get(&arrival.id) else { continue };
            group.left += 1;
            group.bytes += u64::from(arrival.ip_len);
            group.marked += u32::from(departure.ecn == CE && arrival.ecn != CE);
            group.delays_ms.push((departure.at_ns - arrival.at_ns) as f64 / 1e6);
        }
    }
    let grain_ms = recording.grain.as_nanos() as f64 / 1e6;
    let mut figures = Figures::new();
    for ((kind, number), group) in &mut groups {
        let who = if *kind == "all" { "all".to_owned() } else { format!("{kind} {number}") };
        let mut add = |what: &str, value, grain, step| {
            figures.push(Figure { name: format!("{what} of {who}"), value, grain, step });
        };
        add("packets dropped", f64::from(group.arrived - group.left), 0.0, 1.0);
        add("bytes that left", group.bytes as f64, 0.0, FULL_PACKET);
        add("packets marked", f64::from(group.marked), 0.0, 1.0);
        group.delays_ms.sort_by(f64::total_cmp);
        for percent in [10, 50, 90, 100] {
            let value = quantile(&group.delays_ms, percent);
            add(&format!("delay in ms, percentile {percent}"), value, grain_ms, SHORT_WAIT_MS);
        }
    }
    figures
}

/// The least value that at least `percent` of them do not exceed; 0 of none.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100);
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// Bytes of an IP packet.
const FULL_PACKET: f64 = 1_500.0;

/// About what a short packet takes at the recordings' rates.
const SHORT_WAIT_MS: f64 = 0.1;
