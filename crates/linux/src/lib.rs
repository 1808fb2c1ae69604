//! Access to the Linux kernel, for the lab and for the shaper: netlink, queue disciplines, nf_tables, NFQUEUE,
//! namespaces, TUN and veth devices. It knows kernels and no scenarios.

mod clock;
mod device;
mod ethtool;
mod facts;
mod gateway;
mod guard;
mod intercept;
mod isolate;
mod line;
mod message;
mod netlink;
mod nft;
mod offload;
mod shaped;
mod signals;
mod sock_diag;
mod tc;
mod tun;
mod veth;

pub use clock::{go_as_others, go_first, thread_cpu_ns};
pub use device::{MAX_GRO_SEGMENTS, MAX_PACKET_BYTES, PacketDevice};
pub use ethtool::switch_offloads_off;
pub use facts::{DeviceCounters, DeviceFacts, DeviceState, device_facts};
pub use gateway::{Gateway, gateways};
pub use guard::{BEAT, GuardNews};
pub use intercept::{HandOver, Intercept, QueuedId, QueuedPacket, Writes};
pub use isolate::{Namespace, isolate};
pub use line::line_from;
pub use netlink::{LinkSettings, Netlink, PacketRule, come_again, find_device, gone, index_of};
pub use offload::{Flowtable, filters_in_hardware, flowtables};
pub use shaped::{
    CLASSES, KernelClasses, KernelCounts, KernelQueue, KernelRule, KernelShaper, OwnPort,
    kernel_has,
};
pub use signals::{END_REQUESTS, HAND_ON_INTERRUPT, is_ignored};
pub use sock_diag::{TcpEnd, tcp_ends};
pub use tc::{
    Counts, Line, Queue, QueueCounts, Reasons, check_spec, check_values, kernel_lacks, wire_bytes,
};
pub use tun::{TUN_NODE, Tun};
pub use veth::Veth;

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
    pub fn plain(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }

    /// Says that `what` failed because of `error`.
    pub fn io(what: &str, error: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {}", weir_core::error_in_words(&error)))
    }
}
