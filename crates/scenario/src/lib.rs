//! Scenarios as data, for every world: a resolved [`Scenario`] goes in, samples come out through a [`Sink`].
//!
//! The simulator, the lab and the net run the same scenario and fill the same tables; whatever reads
//! the record cannot tell which of them made it. [`file`](mod@file) is how people write scenarios, and makes resolved ones of them.

mod access;
mod addresses;
mod application;
mod check;
mod client_paths;
pub mod file;
mod flight;
mod goodput;
mod meter;
mod notes;
mod route;
mod rows;
mod sample;
mod scenario;
mod shaper;
mod speed_test;
mod table;
mod tcp;
mod tunnel;
mod udp;

pub use access::{Access, AirtimeParams, GrantParams, Reconfiguration};
pub use application::sizes;
pub use application::{Action, Application, Client, DnsLoad, Outcome, VideoLoad, WebLoad};
pub use client_paths::{ClientPaths, MAX_CLIENT_PATHS};
pub use flight::{FlightError, FlightParams, LossError, LossParams, ReorderParams};
pub use goodput::Goodput;
pub use meter::ThroughputMeter;
pub use notes::RecordSink;
pub use route::{Route, hops_before_router};
pub use rows::{
    Drops, EmulatorRow, FlowRow, JitterBufferCounts, LatencyRow, LiveTcp, Marks, MethodRow,
    QueueRow, SegmentState, ServerTurn, ShaperRow, TABLES, TcpRow, ThroughputRow, TransferRow,
    UdpRow, UdpSenderCounts,
};
pub use sample::Sink;
pub use scenario::{
    Change, Flow, Hop, Host, LineChange, LineRate, Opener, Path, Phase, Probe, ProbeKind, Sampling,
    Scenario, ScenarioError,
};
pub use shaper::{Reflector, Shaper, ShaperProbe, Span, Trouble, TroubleKind};
pub use speed_test::SpeedTest;
pub use table::{Column, ColumnType, OfEach, Row, Table, Values};
pub use tcp::{LINUX_INITIAL_WINDOW_SEGMENTS, LINUX_RTO_MIN, Overrides, TcpSettings};
pub use tunnel::{Tunnel, TunnelKind};
pub use udp::{UdpLoad, UdpPattern, UdpReceiver, UdpSchedule, UdpSender};
pub use weir_core::{Direction, IpVersion};
