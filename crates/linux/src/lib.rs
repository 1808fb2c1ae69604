//! The part that touches the Linux kernel: namespaces, devices, the live data path.
//!
//! A lab is a client and a server, each in a network namespace of its own, with a scenario's path between
//! them. [`isolate`] moves this process out of the host's namespaces, [`Hosts::new`] makes the two ends,
//! and [`DataPath::start`] carries packets between them through the same hops that the simulator runs.

mod buffers;
mod clock;
mod connections;
mod datapath;
mod device;
mod ethtool;
mod facts;
mod hosts;
mod intercept;
mod isolate;
mod kernel_path;
mod lateness;
mod message;
mod netlink;
mod nft;
mod offload;
mod pcap;
mod pcapng;
mod program;
mod router;
mod rows;
mod shaped;
mod signals;
mod tc;
mod tun;
mod veth;
mod watch;

pub use buffers::FlowDrops;
pub use clock::go_first;
pub use connections::{Connection, ConnectionWatch};
pub use datapath::{DataPath, PathReport, PathSample, Settings};
pub use facts::{DeviceCounters, DeviceFacts, device_facts};
pub use hosts::{DEVICE as CLIENT_DEVICE, Device, Hosts};
pub use intercept::{Intercept, QueuedPacket};
pub use isolate::{Namespace, isolate};
pub use kernel_path::{behind_kernel_queues, check_kernel_queues};
pub use offload::{Flowtable, filters_in_hardware, flowtables};
pub use program::{Program, name_hosts};
pub use rows::OwnedQueueRow;
pub use shaped::{
    KernelClasses, KernelCounts, KernelQueue, KernelRule, KernelShaper, OwnPort, kernel_has,
};
pub use signals::{END_REQUESTS, is_ignored};
pub use tc::kernel_lacks;
pub use watch::QueueWatch;

/// Error of this part, in one sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LinuxError(String);

impl LinuxError {
    /// An error that says `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Error of another crate, in its own words.
    fn plain(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }

    /// `what` failed because of `error`.
    fn io(what: &str, error: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {error}"))
    }
}
