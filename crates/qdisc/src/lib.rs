//! Queue disciplines as pure state machines, with `tc`'s names, parameters and defaults.
//!
//! One file per discipline. A discipline is made from `tc` syntax:
//!
//! ```
//! use weir_core::Time;
//! use weir_qdisc::{Device, QueueSpec};
//!
//! let mut queue = QueueSpec::parse("fq_codel limit 1000 target 5ms ecn")?.build(&Device::default())?;
//! assert!(queue.peek(Time::ZERO, &mut weir_qdisc::Ignore).is_none());
//! # Ok::<(), weir_qdisc::SpecError>(())
//! ```
//!
//! and driven through [`Qdisc`]: the same object stands in the simulator and under real packets.

mod accounting;
mod adjusted;
mod colour;
mod contract;
mod early;
mod in_out;
mod leaves;
mod linux;
mod peeked;
mod pool;
mod port;
mod presets;
mod priomap;
mod registry;
mod replay;
mod scheduler;
mod tc;
mod turns;

mod cake;
mod choke;
mod codel;
mod drr;
mod dualpi2;
mod ets;
mod fifo;
mod fq;
mod fq_codel;
mod fq_pie;
mod fred;
mod frio;
mod gred;
mod hfsc;
mod htb;
mod ingress;
mod marker;
mod netem;
mod pfifo_fast;
mod pie;
mod police;
mod prio;
mod qfq;
mod red;
mod rio;
mod sfb;
mod sfq;
mod skbprio;
mod tbf;

pub use cake::{
    CakeAckFilter, CakeCells, CakeDiffserv, CakeFlowMode, CakeOptions, CakeOverhead,
    diffserv4_shares, diffserv4_tin,
};
pub use choke::ChokeOptions;
pub use codel::CodelOptions;
pub use colour::Colour;
pub use contract::{Backlog, ClassView, Count, DropReason, DropSink, MarkReason, Qdisc, Stats};
pub use fifo::{BfifoOptions, PfifoOptions};
pub use fq::FqOptions;
pub use fq_codel::FqCodelOptions;
pub use fq_pie::FqPieOptions;
pub use htb::{HtbClassParams, HtbOptions};
pub use linux::{Device, JIFFY, RateTable, truesize};
pub use marker::{About, MARKERS, Marker, MarkerKind, MarkerSpec};
pub use pie::{PieOptions, Signals, Steering};
pub use port::{Ignore, Port, ShapedTraffic, Sojourn};
pub use presets::Preset;
pub use red::{RedOptions, RedTold};
pub use registry::{Build, DISCIPLINES, Discipline, find};
pub use replay::{Outcome, replay, replay_tcp};
pub use sfb::SfbOptions;
pub use sfq::SfqOptions;
pub use skbprio::SkbPrioOptions;
pub use tbf::{Lengths, TbfParams};
pub use tc::{
    ClassSpec, Classifier, DefaultValue, Edit, Every, Filter, FilterKind, GsoPackets, Handle,
    Match, MatchField, Param, ParamKind, Params, Placed, QueueSpec, Record, SizeTable, SpecError,
    Unless0,
};
