//! The devices of a lab's ends: their names, addresses and settings.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_core::End;
use weir_linux::LinuxError;
use weir_scenario::{ClientPaths, IpVersion};

/// A device of the client or of the server, behind which the data path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// The end that has it.
    pub end: End,
    /// The number of the path behind it, of the client's; the server's one device is number 0.
    pub path: u32,
}

impl Interface {
    /// The server's.
    pub const SERVER: Self = Self { end: End::Server, path: 0 };

    /// The interfaces of the client's `paths` in their order, then the server's.
    pub fn all(paths: &ClientPaths) -> Vec<Self> {
        let of_client = (0..paths.count()).map(|path| Self { end: End::Client, path });
        of_client.chain([Self::SERVER]).collect()
    }

    /// The name of the device at its end.
    pub fn device_name(self) -> String {
        format!("{DEVICES}{}", self.path)
    }

    /// The name of a veth's other device, which is in this process' own namespace.
    pub fn near_name(self) -> String {
        match self.end {
            End::Client => format!("client{}", self.path),
            End::Server => "server".to_owned(),
        }
    }
}

/// The network in which all addresses of a scenario lie in that Internet protocol.
pub(crate) fn network(ip: IpVersion) -> (IpAddr, u8) {
    match ip {
        IpVersion::V4 => (Ipv4Addr::new(10, 0, 0, 0).into(), 8),
        IpVersion::V6 => (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0).into(), 16),
    }
}

/// The length of a prefix that has that address only.
pub(crate) const fn whole(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Has `device` of the calling thread's namespace take packets whose answers would find no route, as those of routers.
pub(crate) fn take_from_anybody(device: &str) -> Result<(), LinuxError> {
    set(&format!("ipv4/conf/{device}/rp_filter"), "0")
}

/// Sets what this kernel has under that name.
pub(crate) fn set(setting: &str, value: &str) -> Result<(), LinuxError> {
    match fs::write(format!("/proc/sys/net/{setting}"), value) {
        // A kernel without it behaves as if it were set.
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LinuxError::io(&format!("cannot set net/{setting} to {value}"), error))
        }
        _ => Ok(()),
    }
}

/// The name of the server's device, and of the client's on its first path.
pub const DEVICE: &str = "weir0";
/// How the names of all devices begin.
pub(crate) const DEVICES: &str = "weir";
