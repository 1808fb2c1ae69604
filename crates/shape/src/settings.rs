//! Settings of a shaper.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weir_core::Framing;
use weir_qdisc::{Device, Port, QueueSpec};
use weir_rate_control::{Control, Side};
use weir_speedtest::protocol::weir::Secret;

use crate::ShapeError;
use crate::log::check_place;
use crate::rules::Rules;

/// Settings of a shaper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The device.
    pub device: String,
    /// The controller that sets the rates.
    pub control: Control,
    /// The queue specs of egress and ingress, in tc syntax; `None` leaves a side alone.
    pub queues: [Option<String>; 2],
    /// How bytes are counted.
    pub framing: Framing,
    /// Backend; the best available one if `None`.
    pub backend: Option<Backend>,
    /// Reflectors to probe: the well-known and those that the traffic goes to, if empty.
    pub reflectors: Vec<Target>,
    /// File with the secret that servers among them ask for.
    #[serde(default)]
    pub auth: Option<PathBuf>,
    /// Rules for the classes of packets, if there are any.
    #[serde(default)]
    pub rules: Option<Rules>,
    /// Time after which the shaper ends by itself, in ns.
    pub time_ns: Option<u64>,
    /// Where to log what went in and what was decided.
    pub log: Option<PathBuf>,
    /// File in which what is learned of the line is kept from one run to the next; nowhere if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// Lets everything through at first, until it is told to shape.
    #[serde(default)]
    pub open: bool,
}

/// The part that holds packets back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The kernel's own disciplines.
    Kernel,
    /// Weir's own, on packets that the kernel hands over.
    Userspace,
}

/// A reflector to probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A host that is probed by ICMP echo.
    Icmp(IpAddr),
    /// By UDP echo of the `weir serve` whose TCP port is there, which tells its times.
    Udp(SocketAddr),
    /// By how long a TCP connection to there takes to open.
    Tcp(SocketAddr),
}

impl Settings {
    /// Checks everything that can be checked beforehand.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ShapeError> {
        self.control.check().map_err(ShapeError::input)?;
        self.log.as_deref().map_or(Ok(()), check_place)?;
        self.secret()?;
        if self.queues.iter().all(Option::is_none) {
            return Err(ShapeError::input("neither up nor down is to be shaped: leave one"));
        }
        if self.device.is_empty() || self.device.len() >= MAX_DEVICE_NAME_BYTES {
            return Err(ShapeError::input(format!(
                "`{}` is no name of a device: write 1 to {} characters",
                self.device,
                MAX_DEVICE_NAME_BYTES - 1
            )));
        }
        // The kernel may have what ours have not.
        if self.backend == Some(Backend::Kernel) { Ok(()) } else { self.check_queues() }
    }

    /// What is in the file of the secret, if there is to be one.
    pub(crate) fn secret(&self) -> Result<Option<Secret>, ShapeError> {
        let read = self.auth.as_deref().map(weir_sockets::read_secret).transpose();
        read.map_err(|error| ShapeError::input(error.to_string()))
    }

    /// Whether the specs are such as our own disciplines can be.
    pub(crate) fn check_queues(&self) -> Result<(), ShapeError> {
        Side::ALL.into_iter().try_for_each(|side| self.port(side, 0).map(|_| ()))
    }

    /// The port of a side, if it is shaped.
    pub(crate) fn port(&self, side: Side, seed: u64) -> Result<Option<Port>, ShapeError> {
        let Some(text) = &self.queues[side as usize] else { return Ok(None) };
        let device = Device { seed: weir_core::Seed::new(seed), ..Device::default() };
        let qdisc = QueueSpec::parse(text)?.build(&device)?;
        Ok(Some(Port::shaped(qdisc, self.framing)))
    }
}

/// IFNAMSIZ, with the zero at the end.
const MAX_DEVICE_NAME_BYTES: usize = 16;
