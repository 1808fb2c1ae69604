//! The format of recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::Deserialize;

/// What a real Linux discipline did with a scripted schedule of arrivals.
#[derive(Debug)]
pub struct Recording {
    /// Its name.
    pub name: String,
    /// The `tc` commands that set the discipline up, one a line, without `tc`.
    pub commands: String,
    /// What it can be held against.
    pub kind: Kind,
    /// Nanoseconds by which the first arrival lies after a multiple of 1024 ns, a tick of CoDel.
    pub phase_ns: u64,
    /// The 5-tuples, by the numbers that arrivals name.
    pub flows: BTreeMap<u32, Flow>,
    /// Sorted by time, then by packet.
    pub arrivals: Vec<Arrival>,
    /// In order.
    pub departures: Vec<Departure>,
    /// The packets that never left.
    pub dropped: BTreeSet<u64>,
}

/// How far a recording repeats under other random numbers of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Always the same.
    Exact,
    /// The same as long as no two flows share a bucket.
    Hashed,
    /// Different each time, within these ranges.
    Random(Ranges),
}

/// What runs with several random seeds lay between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    /// Share of the packets that never left.
    pub dropped: Span,
    /// Share of the packets that left marked and did not arrive so.
    pub marked: Span,
    /// Mean time in the discipline of those that left, in milliseconds.
    pub delay_ms: Span,
}

/// From least to most.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct Span {
    /// The least value seen.
    pub min: f64,
    /// The largest value seen.
    pub max: f64,
}

/// The 5-tuple of a flow.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Flow {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// IP protocol.
    pub proto: u8,
}

/// A packet handed to the discipline.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Arrival {
    /// Its number.
    pub id: u64,
    /// Nanoseconds since the first arrival.
    pub at_ns: u64,
    /// Length of the IP packet in bytes.
    pub ip_len: u32,
    /// Its flow.
    pub flow: u32,
    /// Its code point, 0 to 63.
    pub dscp: u8,
    /// Its two ECN bits.
    pub ecn: u8,
}

/// A packet that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its number.
    pub id: u64,
    /// Nanoseconds since the first arrival.
    pub at_ns: u64,
    /// Its two ECN bits.
    pub ecn: u8,
    /// Its code point, where the recording has it.
    pub dscp: Option<u8>,
}

/// What is wrong with a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// Not JSON, or not what the format asks for.
    #[error("this is no recording of a discipline: {0}")]
    Format(#[from] serde_json::Error),
    /// An arrival names a flow that is not there.
    #[error("packet {packet} belongs to flow {flow}, which the recording's `flows` do not have")]
    Flow {
        /// The packet.
        packet: u64,
        /// The flow it names.
        flow: u32,
    },
    /// A number that no header can carry.
    #[error("packet {packet} has {what} {value}, allowed is at most {most}")]
    Value {
        /// The packet.
        packet: u64,
        /// What it is.
        what: &'static str,
        /// The value.
        value: u64,
        /// The largest one allowed.
        most: u64,
    },
    /// Nothing to replay.
    #[error("the recording has no arrivals")]
    Empty,
}

impl Recording {
    /// Reads a recording of the format in `vectors/linux-6.12/README.md`.
    ///
    /// # Errors
    /// If the text is not of that format.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let file: File = serde_json::from_str(text)?;
        let kind = file.kind();
        let mut arrivals = file.arrivals;
        arrivals.sort_by_key(|arrival| (arrival.at_ns, arrival.id));
        if arrivals.is_empty() {
            return Err(RecordingError::Empty);
        }
        for arrival in &arrivals {
            check(arrival, &file.flows)?;
        }
        Ok(Self {
            name: file.name,
            commands: commands(&file.qdisc),
            kind,
            phase_ns: file.first_arrival_mod_1024ns,
            flows: file.flows,
            arrivals,
            departures: file.departures.into_iter().map(Departure::from).collect(),
            dropped: file.dropped.into_iter().collect(),
        })
    }
}

/// Commands that were given on the receiving side carry a remark before them.
fn commands(lines: &[String]) -> String {
    let bare = lines.iter().map(|line| line.trim_start_matches("(on the receiver) "));
    bare.collect::<Vec<_>>().join("\n")
}

fn check(arrival: &Arrival, flows: &BTreeMap<u32, Flow>) -> Result<(), RecordingError> {
    let packet = arrival.id;
    if !flows.contains_key(&arrival.flow) {
        return Err(RecordingError::Flow { packet, flow: arrival.flow });
    }
    for (what, value, most) in
        [("DSCP", arrival.dscp, 63), ("ECN", arrival.ecn, 3)].map(|(a, b, c)| (a, b.into(), c))
    {
        if value > most {
            return Err(RecordingError::Value { packet, what, value, most });
        }
    }
    Ok(())
}

/// The file as it is written.
#[derive(Deserialize)]
struct File {
    name: String,
    qdisc: Vec<String>,
    flows: BTreeMap<u32, Flow>,
    first_arrival_mod_1024ns: u64,
    arrivals: Vec<Arrival>,
    departures: Vec<DepartureRow>,
    dropped: Vec<u64>,
    #[serde(default)]
    random_discipline: bool,
    #[serde(default)]
    determinism: Determinism,
    seed_runs: Option<SeedRuns>,
}

#[derive(Default, Deserialize)]
struct Determinism {
    #[serde(default)]
    other_seeds: String,
}

#[derive(Deserialize)]
struct SeedRuns {
    drop_fraction: Span,
    ce_fraction: Span,
    mean_delay_ms: Span,
}

impl File {
    fn kind(&self) -> Kind {
        if let Some(runs) = &self.seed_runs {
            return Kind::Random(Ranges {
                dropped: runs.drop_fraction,
                marked: runs.ce_fraction,
                delay_ms: runs.mean_delay_ms,
            });
        }
        if self.random_discipline {
            return Kind::Random(self.one_run());
        }
        if self.determinism.other_seeds.contains("hash collisions") {
            return Kind::Hashed;
        }
        Kind::Exact
    }

    /// A random recording that tells of no other seeds is a range of one run.
    fn one_run(&self) -> Ranges {
        let arrived: BTreeMap<u64, &Arrival> =
            self.arrivals.iter().map(|arrival| (arrival.id, arrival)).collect();
        let total = self.arrivals.len().max(1) as f64;
        let mut marked = 0;
        let mut delay_ns = 0.0;
        for departure in self.departures.iter().map(|row| Departure::from(*row)) {
            let Some(arrival) = arrived.get(&departure.id) else { continue };
            marked += u32::from(departure.ecn == CE && arrival.ecn != CE);
            delay_ns += departure.at_ns as f64 - arrival.at_ns as f64;
        }
        let only = |value: f64| Span { min: value, max: value };
        Ranges {
            dropped: only(self.dropped.len() as f64 / total),
            marked: only(f64::from(marked) / total),
            delay_ms: only(delay_ns / 1e6 / self.departures.len().max(1) as f64),
        }
    }
}

/// A row of `departures`: three columns, or four where the code point was recorded too.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum DepartureRow {
    WithDscp(u64, u64, u8, u8),
    Plain(u64, u64, u8),
}

impl From<DepartureRow> for Departure {
    fn from(row: DepartureRow) -> Self {
        match row {
            DepartureRow::WithDscp(id, at_ns, ecn, dscp) => {
                Self { id, at_ns, ecn, dscp: Some(dscp) }
            }
            DepartureRow::Plain(id, at_ns, ecn) => Self { id, at_ns, ecn, dscp: None },
        }
    }
}

/// The ECN bits of "congestion experienced".
pub(crate) const CE: u8 = 3;
