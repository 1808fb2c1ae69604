//! The control socket of a shaper: it answers with the shaper's view, and takes the order to end. It has no file.
//!
//! Its name is in Linux' abstract namespace (unix(7)), of which every network namespace has one of its own,
//! as it has devices. It goes with the process, however that ends, and only one process can have it. Anybody may
//! take a name there and ask at one: both sides ask the kernel who the other one is (SO_PEERCRED).

mod answering;
mod asking;

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub(crate) use answering::ControlSocket;
pub use asking::{ask, end};
pub(crate) use asking::{check_free, no_device};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;

/// The process at the other end of a connection, as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Peer {
    /// 0 if it cannot be seen from here.
    pid: i32,
    uid: u32,
}

impl Peer {
    fn of(stream: &UnixStream) -> io::Result<Self> {
        let who = getsockopt(stream, sockopt::PeerCredentials)?;
        Ok(Self { pid: who.pid(), uid: who.uid() })
    }

    /// Whether it is root's or this user's own: nobody else is obeyed.
    fn is_trusted(self) -> bool {
        self.uid == 0 || self.uid == geteuid().as_raw()
    }

    /// Whether what it says of a shaper is believed: it may be one, as far as this user can see.
    fn may_shape(self) -> bool {
        self.is_trusted() || self.has_net_admin()
    }

    /// Whether the process has CAP_NET_ADMIN (capabilities(7)), and not only in a user namespace of its own. Another
    /// user than root may not look at that.
    fn has_net_admin(self) -> bool {
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/user")).ok();
        let pid = self.pid.to_string();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let has = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let has = has.and_then(|has| u64::from_str_radix(has.trim(), 16).ok()).unwrap_or(0);
        has & CAP_NET_ADMIN != 0
            && namespace("self").is_some_and(|own| namespace(&pid).is_some_and(|its| its == own))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of user {}", self.pid, self.uid)
    }
}

/// Name of the control socket of a device, in the abstract namespace.
fn name(device: &str) -> String {
    format!("weir-shape-{device}")
}

/// include/uapi/linux/capability.h
const CAP_NET_ADMIN: u64 = 1 << 12;
/// Nobody is waited for longer than this.
const PATIENCE: Duration = Duration::from_secs(2);
