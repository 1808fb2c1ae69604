//! Facts about a network device: rtnetlink(7) and ethtool(8), and sysfs and proc(5) where both are silent.

use std::fs;
use std::path::Path;

use nix::net::if_::if_indextoname;

use crate::LinuxError;
use crate::ethtool::speed_mbps;
use crate::message::{IFINFOMSG, Message, attributes};
use crate::netlink::{IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MTU, Netlink, index_of};

/// Properties of a network device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The longest IP packet that it sends, in bytes.
    pub mtu: u32,
    /// Hardware type of the device (`ARPHRD_*`, include/uapi/linux/if_arp.h).
    pub hardware: u16,
    /// Kind of a device that is made by software: `vlan`, `wireguard`, ...; `None` for any other.
    pub kind: Option<String>,
    /// The bridge, bond or the like whose port it is: that takes its packets before IP sees them.
    pub port_of: Option<String>,
    /// Whether it is a radio.
    pub wireless: bool,
    /// Speed of the device in bit/s; `None` if it has none.
    pub speed_bps: Option<u64>,
    /// Whether this machine has ATM devices, such as an ADSL modem in it.
    pub atm: bool,
    /// Whether PPP goes over Ethernet here.
    pub pppoe: bool,
}

/// What a device has counted so far, and whether it is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceState {
    /// Bytes that were sent and received.
    pub bytes: [u64; 2],
    /// Whether it is up and has a link to its other end (`IFF_RUNNING`).
    pub is_running: bool,
}

/// Asks for the counters of a device again and again.
#[derive(Debug)]
pub struct DeviceCounters {
    netlink: Netlink,
    index: u32,
    request: Vec<u8>,
}

impl DeviceCounters {
    /// Counters of `device` in the calling thread's network namespace.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn new(device: &str) -> Result<Self, LinuxError> {
        let index = index_of(device)?;
        Ok(Self { netlink: Netlink::new()?, index, request: request(index) })
    }

    /// The device's index, which it keeps as long as it is there.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The device's state now; `None` if it has gone.
    #[must_use]
    pub fn state(&self) -> Option<DeviceState> {
        let link = self.netlink.get(&self.request).ok()?;
        let flags = u32::from_ne_bytes(link.get(IFI_FLAGS)?.try_into().expect("four"));
        let mut all = attributes(link.get(IFINFOMSG..)?);
        let (_, stats) = all.find(|(attribute, _)| *attribute == IFLA_STATS64)?;
        let number = |at: usize| {
            let bytes = stats.get(at * 8..at * 8 + 8)?;
            Some(u64::from_ne_bytes(bytes.try_into().expect("eight")))
        };
        // struct rtnl_link_stats64: packets in and out come before.
        let bytes = [number(3)?, number(2)?];
        Some(DeviceState { bytes, is_running: flags & IFF_RUNNING != 0 })
    }
}

/// Reads the properties of `device`.
///
/// # Errors
/// If there is no such device.
pub fn device_facts(device: &str) -> Result<DeviceFacts, LinuxError> {
    let netlink = Netlink::new()?;
    let link = netlink.get(&request(index_of(device)?));
    let link = link.map_err(|error| LinuxError::io("cannot read what the device is", error))?;
    let folder = Path::new("/sys/class/net").join(device);
    let filled = |path: &str| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    let sessions = fs::read_to_string("/proc/thread-self/net/pppoe").unwrap_or_default();
    Ok(DeviceFacts {
        mtu: mtu(&link).ok_or_else(|| LinuxError::new(format!("`{device}` tells no MTU")))?,
        hardware: hardware(&link),
        kind: kind(&link),
        port_of: port_of(&link),
        wireless: folder.join("phy80211").exists() || folder.join("wireless").exists(),
        speed_bps: speed_mbps(device).map(|mbps| u64::from(mbps) * 1_000_000),
        atm: filled("/sys/class/atm"),
        pppoe: sessions.lines().count() > 1,
    })
}

/// The type in the header of an answer.
pub(crate) fn hardware(link: &[u8]) -> u16 {
    link.get(2..4).map_or(0, |two| u16::from_ne_bytes([two[0], two[1]]))
}

fn mtu(link: &[u8]) -> Option<u32> {
    let mut all = attributes(link.get(IFINFOMSG..)?);
    let (_, mtu) = all.find(|(attribute, _)| *attribute == IFLA_MTU)?;
    Some(u32::from_ne_bytes(mtu.try_into().ok()?))
}

fn kind(link: &[u8]) -> Option<String> {
    info(link, IFLA_INFO_KIND)
}

fn port_of(link: &[u8]) -> Option<String> {
    // IP still sees the packets of a device that belongs to a VRF.
    info(link, IFLA_INFO_SLAVE_KIND).filter(|kind| kind != "vrf")?;
    let mut all = attributes(link.get(IFINFOMSG..)?);
    let (_, master) = all.find(|(attribute, _)| *attribute == IFLA_MASTER)?;
    let name = if_indextoname(u32::from_ne_bytes(master.try_into().ok()?)).ok()?;
    Some(name.to_string_lossy().into_owned())
}

/// A text of what the device is made of.
fn info(link: &[u8], which: u16) -> Option<String> {
    let mut all = attributes(link.get(IFINFOMSG..)?);
    let (_, info) = all.find(|(attribute, _)| *attribute == IFLA_LINKINFO)?;
    let (_, text) = attributes(info).find(|(attribute, _)| *attribute == which)?;
    Some(String::from_utf8_lossy(text.strip_suffix(b"\0").unwrap_or(text)).into_owned())
}

/// The request for what the device of that index is and has counted.
pub(crate) fn request(index: u32) -> Vec<u8> {
    Message::about_link(RTM_GETLINK, 0, index, 0).finish()
}

// include/uapi/linux/rtnetlink.h, if_link.h
const RTM_GETLINK: u16 = 18;
/// Where `ifi_flags` stands in `struct ifinfomsg`.
const IFI_FLAGS: std::ops::Range<usize> = 8..12;
const IFLA_MASTER: u16 = 10;
const IFLA_STATS64: u16 = 23;
const IFLA_INFO_SLAVE_KIND: u16 = 4;
// include/uapi/linux/if.h
const IFF_RUNNING: u32 = 0x40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_at_work_where_sysfs_says_so() {
        for device in fs::read_dir("/sys/class/net").unwrap() {
            let device = device.unwrap();
            // Only of a device that is up it says whether there is a link.
            let carrier = fs::read_to_string(device.path().join("carrier")).unwrap_or_default();
            let Ok(counters) = DeviceCounters::new(&device.file_name().to_string_lossy()) else {
                continue; // sysfs may be of another network namespace
            };
            let state = counters.state().unwrap();
            assert_eq!(state.is_running, carrier.trim() == "1", "{device:?}");
        }
    }
}
