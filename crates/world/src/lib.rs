//! The contract of every world: a resolved [`Scenario`] in, samples out through a [`Sink`].
//!
//! The simulator, the lab and the net run the same scenario and fill the same tables; whatever reads
//! the record cannot tell which of them made it.

mod addresses;
mod sample;
mod scenario;

pub use sample::{
    EmulatorRow, FlowRow, LatencyRow, LiveTcp, QueueRow, ServerTurn, Sink, TcpRow, ThroughputRow,
    Verdict,
};
pub use scenario::{
    Direction, Flow, Hop, Host, IpVersion, LineRate, Opener, Path, Phase, Probe, ProbeKind,
    Sampling, Scenario, ScenarioError, TcpSettings,
};
