//! The world lab: a scenario under the real TCP of this machine's kernel, in real time.
//!
//! [`enter`] moves the process into a lab of its own; then [`run`] does what a scenario says, or [`exec`]
//! runs any program on its line. A lab is a client and a server, each in a network namespace of its own, with a
//! data path between them that carries packets through the same hops that the simulator runs. Both leave nothing behind: namespaces end with the process.

mod buffers;
mod connections;
mod control;
mod datapath;
mod exec;
mod hosts;
mod interface;
mod kernel_path;
mod keys_once;
mod lateness;
mod live;
mod multihoming;
mod pcap;
mod program;
mod quality;
mod request;
mod router;
mod rows;
mod run;
mod shaper;
mod signals;
mod tick_thread;
mod waking;
mod watch;

pub use exec::{Ended, Exec, exec};
pub use hosts::Device;
pub use live::{Live, QueueView, View};
pub use program::{Kind, Program};
pub use quality::{Quality, Warning};
pub use request::serve;
pub use run::{Datapath, Options, Outcome, check, check_kernel_path, run};

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_linux::LinuxError;
use weir_path::{Trace, TraceError};
use weir_scenario::{Scenario, ScenarioError};

/// Why a lab could not be made or did not come to its end, in one sentence.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario is not sound.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A recording is not one.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A recording was not handed in.
    #[error("the recording `{0}` was not given")]
    MissingTrace(String),
    /// A marker asks for what only the simulator knows.
    #[error(
        "hop `{0}`: its marker asks for the sender's window, which only the simulator knows: leave \
         `window sender` out or run it in the world `sim`"
    )]
    SendersWindow(String),
    /// A load or probe cannot be had, or failed.
    #[error(transparent)]
    Net(#[from] weir_sockets::NetError),
    /// The kernel does not say what it has.
    #[error("cannot read what congestion controls this kernel has: {}", weir_core::error_in_words(.0))]
    Kernel(std::io::Error),
    /// A record could not be written.
    #[error(transparent)]
    Record(#[from] weir_record::RecordError),
    /// The world has none: real clients can be run in it.
    #[error(
        "method `{0}`: the world `lab` drives no speed tests by itself: run the scenario in the world `sim`, \
         or a real client in the lab's namespaces"
    )]
    Method(String),
    /// No tunnel is made.
    #[error(
        "tunnel `{0}`: the world `lab` makes none, the world `sim` has them: run the scenario there, or a real \
         VPN in the lab's namespaces"
    )]
    Tunnel(String),
    /// The client's network has the client alone.
    #[error(
        "flow `{0}` is of another machine of the client's network: the world `lab` has the client alone, the \
         world `sim` has others"
    )]
    ClientHost(String),
    /// The shaper cannot be had as the scenario has it, or failed.
    #[error("shaper: {0}")]
    Shaper(String),
    /// The kernel's queues stay as they were made.
    #[error(
        "hop `{0}` changes on the way, which the kernel's queues do not: use the userspace data path"
    )]
    Changes(String),
    /// The request is none.
    #[error("not a request to a lab: {0}")]
    Request(serde_json::Error),
    /// The kernel refused something.
    #[error(transparent)]
    Linux(#[from] LinuxError),
}

/// Moves this process into namespaces of its own. It must have one thread only.
///
/// # Errors
/// If this machine does not allow it: the sentence names the setting.
pub fn enter() -> Result<(), LabError> {
    weir_linux::isolate()?;
    signals::listen();
    Ok(())
}

/// The recordings that `scenario` names, from their `texts`.
fn traces(
    scenario: &Scenario,
    texts: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Arc<Trace>>, LabError> {
    let mut parsed = BTreeMap::new();
    for name in scenario.traces() {
        let text = texts.get(name).ok_or_else(|| LabError::MissingTrace(name.to_owned()))?;
        parsed.insert(name.to_owned(), Arc::new(Trace::parse(name, text)?));
    }
    Ok(parsed)
}
