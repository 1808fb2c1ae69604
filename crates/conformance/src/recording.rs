//! The format of recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::Deserialize;
use weir_core::{Duration, Time};

/// A recording of a real Linux discipline under a scripted schedule of arrivals.
#[derive(Debug)]
pub struct Recording {
    /// Name of the recording.
    pub name: String,
    /// The `tc` commands that set the discipline up, one a line, without `tc`.
    pub commands: String,
    /// How far the recording repeats, and with that how runs are held against it.
    pub repeatability: Repeatability,
    /// When the first packet came, if the discipline was made at time zero.
    pub start: Time,
    /// By how much times may differ without a meaning.
    pub grain: Duration,
    /// The 5-tuples, by the numbers that arrivals name.
    pub flows: BTreeMap<u32, RecordedFlow>,
    /// Sorted by time, then by packet.
    pub arrivals: Vec<Arrival>,
    /// Packets that are pure acknowledgements without options, and their numbers.
    pub tcp_acks: BTreeMap<u64, u32>,
    /// Packets that left, in order.
    pub departures: Vec<Departure>,
    /// The packets that never left.
    pub dropped: BTreeSet<u64>,
}

/// How far a recording repeats under other random numbers of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Repeatability {
    /// Every run that was made gave the same recording.
    Exact,
    /// Runs gave the same recording as long as no two flows shared a bucket.
    Hashed {
        /// Runs that gave just this recording.
        agree: u32,
        /// Runs that were made.
        runs: u32,
    },
    /// Different each time; the recording is one run. What is known of others.
    Random(Option<SeedRuns>),
}

/// Figures of runs of Linux with several random seeds.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct SeedRuns {
    /// Number of runs.
    #[serde(rename = "n")]
    pub runs: u32,
    /// Share of the packets that never left, of each run.
    #[serde(rename = "per_run_drop_fraction")]
    pub dropped: Vec<f64>,
    /// Share of the packets that left marked and did not arrive so.
    #[serde(rename = "ce_fraction")]
    pub marked: Span,
    /// Mean time in the discipline of those that left, in milliseconds.
    #[serde(rename = "mean_delay_ms")]
    pub delay_ms: Span,
}

/// Mean and range of a figure over several runs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct Span {
    /// The mean over the runs.
    pub mean: f64,
    /// The least value seen.
    pub min: f64,
    /// The largest value seen.
    pub max: f64,
}

/// The 5-tuple of a flow.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct RecordedFlow {
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
    /// Number of the packet.
    pub id: u64,
    /// Nanoseconds since the first arrival.
    pub at_ns: u64,
    /// Length of the IP packet in bytes.
    pub ip_len: u32,
    /// Number of the packet's flow.
    pub flow: u32,
    /// Code point (DSCP) of the packet, 0 to 63.
    pub dscp: u8,
    /// ECN bits of the packet, 0 to 3.
    pub ecn: u8,
}

/// A packet that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Number of the packet.
    pub id: u64,
    /// Nanoseconds since the first arrival.
    pub at_ns: u64,
    /// ECN bits of the packet, 0 to 3.
    pub ecn: u8,
    /// Code point (DSCP) of the packet, 0 to 63, where the recording has it.
    pub dscp: Option<u8>,
}

/// A fault of a recording's text.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The text is no JSON, or not what the format asks for.
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
        /// Name of the header's field.
        what: &'static str,
        /// The value.
        value: u64,
        /// The largest one allowed.
        most: u64,
    },
    /// A packet that left before it came.
    #[error("packet {packet} leaves at {left_ns} ns, before it arrives at {arrived_ns} ns")]
    Early {
        /// The packet.
        packet: u64,
        /// Departure of the packet, in nanoseconds since the first arrival.
        left_ns: u64,
        /// Arrival of the packet, in nanoseconds since the first one.
        arrived_ns: u64,
    },
    /// A packet that comes or leaves later than any recording goes on.
    #[error(
        "packet {packet} is there {at_ns} ns after the first one, allowed is at most {MAX_AT_NS} (an hour)"
    )]
    Late {
        /// The packet.
        packet: u64,
        /// Its arrival or departure, in nanoseconds since the first arrival.
        at_ns: u64,
    },
    /// Two arrivals with one number.
    #[error("packet {packet} arrives twice")]
    Twice {
        /// The packet.
        packet: u64,
    },
    /// A phase that is no part of a CoDel tick.
    #[error("`first_arrival_mod_1024ns` is {phase_ns}; write a number up to 1023")]
    Phase {
        /// Phase of the first arrival, in nanoseconds.
        phase_ns: u64,
    },
    /// A number of runs that nobody makes, or from which no mean of the middle ones can be told.
    #[error("{what} is {runs}; write a number from {least} to {MAX_RUNS}")]
    Runs {
        /// Where the recording says it.
        what: &'static str,
        /// Number of runs.
        runs: u32,
        /// The least one allowed.
        least: u32,
    },
    /// Runs of Linux of which the recording does not have one share each.
    #[error("`seed_runs` has {shares} shares of dropped packets of {runs} runs")]
    Shares {
        /// How many shares are there.
        shares: usize,
        /// Number of runs.
        runs: u32,
    },
    /// A discipline of that age would not have the phase of the recording's clocks.
    #[error("`age_ns` is {age_ns}; write a multiple of 16000000, 1024000000000 at most")]
    Age {
        /// Age of the discipline, in nanoseconds.
        age_ns: u64,
    },
    /// The recording was made with several hash keys, and does not say how many gave just this one.
    #[error("`other_seeds` is `{text}`, which does not begin with `N of M runs`")]
    Keys {
        /// Text of the recording's `other_seeds`.
        text: String,
    },
    /// The recording has no arrivals to replay.
    #[error("the recording has no arrivals")]
    Empty,
}

impl Recording {
    /// Reads a recording of the format in `vectors/linux-6.12/README.md`.
    ///
    /// # Errors
    /// If the text is not of that format.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut file: File = serde_json::from_str(text)?;
        let repeatability = file.repeatability()?;
        let age_ns = file.age_ns.unwrap_or(SETTLED.as_nanos());
        if age_ns > SETTLED.as_nanos() || !age_ns.is_multiple_of(TICK_NS) {
            return Err(RecordingError::Age { age_ns });
        }
        if file.first_arrival_mod_1024ns > MAX_PHASE_NS {
            return Err(RecordingError::Phase { phase_ns: file.first_arrival_mod_1024ns });
        }
        let mut arrivals = file.arrivals;
        arrivals.sort_by_key(|arrival| (arrival.at_ns, arrival.id));
        if arrivals.is_empty() {
            return Err(RecordingError::Empty);
        }
        for arrival in &arrivals {
            check(arrival, &file.flows)?;
        }
        let departures: Vec<_> = file.departures.into_iter().map(Departure::from).collect();
        check_departures(&arrivals, &departures)?;
        Ok(Self {
            name: file.name,
            commands: commands(&file.qdisc),
            repeatability,
            start: Time::from_nanos(age_ns + file.first_arrival_mod_1024ns),
            grain: if file.grain_ns > 1 { COARSE } else { FINE },
            flows: file.flows,
            arrivals,
            tcp_acks: file.tcp_ack,
            departures,
            dropped: file.dropped.into_iter().collect(),
        })
    }
}

/// Commands that were given on the receiving side carry a remark before them.
fn commands(lines: &[String]) -> String {
    let bare = lines.iter().map(|line| line.trim_start_matches("(on the receiver) "));
    bare.collect::<Vec<_>>().join("\n")
}

fn check(arrival: &Arrival, flows: &BTreeMap<u32, RecordedFlow>) -> Result<(), RecordingError> {
    let packet = arrival.id;
    if !flows.contains_key(&arrival.flow) {
        return Err(RecordingError::Flow { packet, flow: arrival.flow });
    }
    for (what, value, most) in [
        ("DSCP", arrival.dscp.into(), 63),
        ("ECN", arrival.ecn.into(), 3),
        ("length", arrival.ip_len.into(), MAX_IP_LEN),
    ] {
        if value > most {
            return Err(RecordingError::Value { packet, what, value, most });
        }
    }
    check_time(packet, arrival.at_ns)
}

fn check_time(packet: u64, at_ns: u64) -> Result<(), RecordingError> {
    if at_ns > MAX_AT_NS {
        return Err(RecordingError::Late { packet, at_ns });
    }
    Ok(())
}

fn check_departures(arrivals: &[Arrival], departures: &[Departure]) -> Result<(), RecordingError> {
    let mut arrived = BTreeMap::new();
    for Arrival { id: packet, at_ns, .. } in arrivals {
        if arrived.insert(*packet, *at_ns).is_some() {
            return Err(RecordingError::Twice { packet: *packet });
        }
    }
    for departure in departures {
        let (packet, left_ns) = (departure.id, departure.at_ns);
        check_time(packet, left_ns)?;
        match arrived.get(&packet) {
            Some(&arrived_ns) if left_ns < arrived_ns => {
                return Err(RecordingError::Early { packet, left_ns, arrived_ns });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The file as it is written.
#[derive(Deserialize)]
struct File {
    name: String,
    qdisc: Vec<String>,
    flows: BTreeMap<u32, RecordedFlow>,
    first_arrival_mod_1024ns: u64,
    /// Age of the discipline when the first packet came, where its timers show in the recording.
    age_ns: Option<u64>,
    #[serde(default)]
    grain_ns: u64,
    arrivals: Vec<Arrival>,
    #[serde(default)]
    tcp_ack: BTreeMap<u64, u32>,
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

impl File {
    fn repeatability(&mut self) -> Result<Repeatability, RecordingError> {
        let runs = self.seed_runs.take();
        if let Some(runs) = &runs {
            // The means of spans are taken without both extremes, and their scatter needs two values.
            check_runs("`n` of `seed_runs`", runs.runs, 4)?;
            if runs.dropped.len() as u64 != u64::from(runs.runs) {
                return Err(RecordingError::Shares { shares: runs.dropped.len(), runs: runs.runs });
            }
        }
        if runs.is_some() || self.random_discipline {
            return Ok(Repeatability::Random(runs));
        }
        let text = &self.determinism.other_seeds;
        if text.contains("hash collisions") {
            let mut words = text.split(' ');
            let agree = words.next().and_then(|word| word.parse().ok());
            let of = words.nth(1).and_then(|word| word.parse().ok());
            return match (agree, of) {
                (Some(agree), Some(of)) if agree <= of => {
                    check_runs("the number of runs of `other_seeds`", of, 1)?;
                    Ok(Repeatability::Hashed { agree, runs: of })
                }
                _ => Err(RecordingError::Keys { text: text.clone() }),
            };
        }
        Ok(Repeatability::Exact)
    }
}

fn check_runs(what: &'static str, runs: u32, least: u32) -> Result<(), RecordingError> {
    if !(least..=MAX_RUNS).contains(&runs) {
        return Err(RecordingError::Runs { what, runs, least });
    }
    Ok(())
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

/// Long enough for buckets to have filled and timers to run.
const SETTLED: Duration = Duration::from_secs(1_024);

/// A multiple of the kernel's jiffy (4 ms) and of CoDel's tick (1024 ns), whose phases recordings keep.
const TICK_NS: u64 = 16_000_000;

/// An hour; the longest recording of Linux goes on for 20 s.
const MAX_AT_NS: u64 = 3_600_000_000_000;

/// The first arrival's place within a tick of CoDel.
const MAX_PHASE_NS: u64 = 1_023;

/// The length field of an IPv4 header has 16 bits.
const MAX_IP_LEN: u64 = 65_535;

/// Far more than the 20 of the recordings, and few enough to be counted through.
const MAX_RUNS: u32 = 10_000;

/// Thrice the grain of most recordings.
pub(crate) const FINE: Duration = Duration::from_nanos(3);

/// Where the clock had a grain of 256 ns, timers were at least 500 ns away.
const COARSE: Duration = Duration::from_micros(1);
