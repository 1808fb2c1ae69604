//! The two ends of a lab: a client and a server, each in a network namespace of its own, the server with one
//! device and the client with one for each of its paths, behind which this process is the network.

use std::fs;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use serde::Deserialize;
use weir_core::{End, error_in_words};
use weir_scenario::{ClientPaths, Scenario};

use weir_linux::{
    LinkSettings, LinuxError, Namespace, Netlink, PacketDevice, TUN_NODE, Tun, Veth, index_of,
    switch_offloads_off,
};

use crate::interface::{DEVICE, DEVICES, Interface, set, take_from_anybody, whole};
use crate::kernel_path::{KernelHop, KernelPath, check_kernel_queues};
use crate::multihoming::add_paths;

/// How packets leave and enter the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// A TUN device: needs a device node that this user may open.
    Tun,
    /// A veth pair and a packet socket: needs nothing.
    Veth,
}

/// The two ends of a lab's path, in namespaces of their own.
pub struct Hosts {
    /// The client's namespace.
    pub client: Arc<Namespace>,
    /// The servers' namespace: all servers live in one.
    pub server: Arc<Namespace>,
    /// Device between the ends and the data path.
    pub device: Device,
    /// The client's paths.
    pub(crate) paths: ClientPaths,
    devices: Option<Vec<Box<dyn PacketDevice>>>,
    /// Where the kernel's own queues and the data path meet, if there are any.
    junction: Option<Arc<Namespace>>,
    routers: Vec<Namespace>,
    hops: Vec<KernelHop>,
}

/// The two ends while they are made.
struct EndHosts {
    client: Arc<Namespace>,
    server: Arc<Namespace>,
    device: Device,
}

impl EndHosts {
    fn new(device: Option<Device>) -> Result<Self, LinuxError> {
        let without_tun = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(TUN_NODE)
            .err()
            .map(|error| format!("{TUN_NODE} cannot be opened: {}", error_in_words(&error)));
        let device = match (device, &without_tun) {
            (Some(Device::Tun), Some(why)) => return Err(LinuxError::new(why.as_str())),
            (Some(device), _) => device,
            (None, None) => Device::Tun,
            (None, Some(_)) => Device::Veth,
        };
        let (client, server) = (Arc::new(Namespace::new()?), Arc::new(Namespace::new()?));
        Ok(Self { client, server, device })
    }

    /// The device of `interface` in `place`, behind which the data path is.
    fn device(
        &self,
        scenario: &Scenario,
        place: &Namespace,
        interface: Interface,
        offloads: bool,
    ) -> Result<Box<dyn PacketDevice>, LinuxError> {
        let name = interface.device_name();
        match self.device {
            Device::Tun => place.within(|| tun_device(scenario, &name, offloads)),
            Device::Veth => veth_device(place, interface, scenario.mtu_bytes),
        }
    }

    /// Adds the server to the client's end, whose `devices` are those of its `paths`.
    fn finish(
        self,
        scenario: &Scenario,
        paths: ClientPaths,
        mut devices: Vec<Box<dyn PacketDevice>>,
        offloads: bool,
        kernel: Option<(KernelPath, Arc<Namespace>)>,
    ) -> Result<Hosts, LinuxError> {
        devices.push(self.device(scenario, &self.server, Interface::SERVER, offloads)?);
        let mut clients = scenario.addresses(End::Client);
        for path in 1..paths.count() {
            let of = |ip| ClientPaths::client_address(ip, path);
            clients.extend(scenario.ip_versions().into_iter().map(of));
        }
        self.server.within(|| configure(&scenario.addresses(End::Server), &clients))?;
        let (path, junction) = kernel.unzip();
        let KernelPath { routers, hops } = path.unwrap_or_default();
        Ok(Hosts {
            client: self.client,
            server: self.server,
            device: self.device,
            paths,
            devices: Some(devices),
            junction,
            routers,
            hops,
        })
    }
}

impl Hosts {
    /// The two ends of `scenario` with the client's `paths`, joined to `device`, or without a wish to what this user
    /// may have. With `offloads` the kernel hands over GSO packets of many segments where it can.
    ///
    /// # Errors
    /// If the kernel refuses a namespace, a device, an address or a route. Nothing stays behind.
    pub fn new(
        scenario: &Scenario,
        paths: ClientPaths,
        device: Option<Device>,
        offloads: bool,
    ) -> Result<Self, LinuxError> {
        let ends = EndHosts::new(device)?;
        let devices = (0..paths.count()).map(|path| {
            let interface = Interface { end: End::Client, path };
            ends.device(scenario, &ends.client, interface, offloads)
        });
        let devices = devices.collect::<Result<_, _>>()?;
        ends.client.within(|| {
            let own = scenario.addresses(End::Client);
            if paths.are_named() {
                configure(&own, &[])?;
                add_paths(scenario, &paths)
            } else {
                configure(&own, &scenario.addresses(End::Server))
            }
        })?;
        ends.finish(scenario, paths, devices, offloads, None)
    }

    /// The two ends of `scenario` with one of the kernel's own routers for each hop between the client and
    /// the data path.
    ///
    /// The data path is then to carry out [`behind_kernel_queues`](crate::behind_kernel_queues).
    ///
    /// # Errors
    /// If the kernel lacks a queue discipline, or refuses a namespace, a device or an address. Nothing
    /// stays behind.
    pub fn with_kernel_queues(
        scenario: &Scenario,
        device: Option<Device>,
        offloads: bool,
    ) -> Result<Self, LinuxError> {
        check_kernel_queues(scenario)?;
        let ends = EndHosts::new(device)?;
        let junction = Arc::new(Namespace::new()?);
        // A GSO packet that came in here would meet the queues as one.
        let interface = Interface { end: End::Client, path: 0 };
        let client = ends.device(scenario, &junction, interface, false)?;
        junction.within(|| configure(&[], &[]))?;
        let path = KernelPath::new(scenario, &ends.client, &junction)?;
        let [own, servers] = [End::Client, End::Server].map(|end| scenario.addresses(end));
        ends.client.within(|| configure(&own, &servers))?;
        let one = ClientPaths::default();
        ends.finish(scenario, one, vec![client], offloads, Some((path, junction)))
    }

    /// Packets that the kernels sent and that were lost because nobody read them in time.
    ///
    /// # Errors
    /// If a namespace cannot be looked into.
    pub fn overrun(&self) -> Result<u64, LinuxError> {
        let mut lost = 0;
        for end in [&self.client, &self.server].into_iter().chain(&self.junction) {
            lost += end.within(sent_and_dropped)?;
        }
        for router in &self.routers {
            lost += router.within(sent_and_dropped)?;
        }
        Ok(lost)
    }

    /// The kernel's own hops, once.
    pub(crate) fn take_hops(&mut self) -> Vec<KernelHop> {
        std::mem::take(&mut self.hops)
    }

    /// The devices of [all interfaces](Interface::all), once.
    pub(crate) fn take_devices(&mut self) -> Vec<Box<dyn PacketDevice>> {
        self.devices.take().expect("a pair of hosts has one data path")
    }
}

fn tun_device(
    scenario: &Scenario,
    name: &str,
    offloads: bool,
) -> Result<Box<dyn PacketDevice>, LinuxError> {
    let tun = Tun::new(name, offloads)
        .map_err(|error| LinuxError::io("cannot make a TUN device", error))?;
    let settings = LinkSettings {
        mtu: Some(scenario.mtu_bytes),
        tx_queue_len: Some(TUN_QUEUE),
        ..LinkSettings::default()
    };
    Netlink::new()?.set_up(index_of(name)?, settings)?;
    Ok(Box::new(tun))
}

/// A veth pair: one end stays in this process' own namespace, its peer goes to `place` as `interface`.
fn veth_device(
    place: &Namespace,
    interface: Interface,
    mtu: u32,
) -> Result<Box<dyn PacketDevice>, LinuxError> {
    let netlink = Netlink::new()?;
    let (near, far) = (interface.near_name(), interface.device_name());
    netlink.add_veth(&near, &far, FAR_ADDRESS, place.as_fd().as_raw_fd())?;
    let settings = LinkSettings { mtu: Some(mtu), no_arp: true, ..LinkSettings::default() };
    place.within(|| {
        switch_offloads_off(&far).map_err(|error| LinuxError::io("cannot set a veth up", error))?;
        Netlink::new()?.set_up(index_of(&far)?, settings)
    })?;
    // The near end is for the packet socket alone: no address, no resolution, no router solicitations.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{near}/disable_ipv6"), "1");
    let index = index_of(&near)?;
    netlink.set_up(index, settings)?;
    let veth = Veth::new(index, FAR_ADDRESS, mtu)
        .map_err(|error| LinuxError::io("cannot open a packet socket", error))?;
    Ok(Box::new(veth))
}

/// Gives the calling thread's namespace its `own` addresses, routes to those of `others`, and its settings. What
/// belongs to nobody has no route: who asks for it, such as a resolver of the machine for a name, learns that at once.
fn configure(own: &[IpAddr], others: &[IpAddr]) -> Result<(), LinuxError> {
    let netlink = Netlink::new()?;
    netlink.set_up(LOOPBACK, LinkSettings::default())?;
    let index = index_of(DEVICE)?;
    let lacks_v6 = !fs::exists("/proc/sys/net/ipv6").unwrap_or(false);
    if lacks_v6 && own.iter().any(IpAddr::is_ipv6) {
        return Err(LinuxError::new("the scenario wants IPv6, which this kernel does not have"));
    }
    for &address in own {
        netlink.add_address(index, address, whole(address))?;
    }
    for &address in others {
        netlink.add_route(index, address, whole(address))?;
    }
    take_from_anybody(DEVICE)?;
    for (setting, value) in SETTINGS {
        set(setting, value)?;
    }
    Ok(())
}

/// The devices' count of packets that were to be sent and were dropped (proc_net_dev(5)).
fn sent_and_dropped() -> Result<u64, LinuxError> {
    let table = fs::read_to_string("/proc/thread-self/net/dev")
        .map_err(|error| LinuxError::io("cannot read the devices' counters", error))?;
    let dropped = |line: &str| {
        let (_, numbers) = line.trim().strip_prefix(DEVICES)?.split_once(':')?;
        numbers.split_whitespace().nth(SENT_AND_DROPPED)?.parse::<u64>().ok()
    };
    Ok(table.lines().filter_map(dropped).sum())
}

/// The device index of `lo` in every network namespace.
const LOOPBACK: u32 = 1;
/// Packets that may wait in a TUN device while this process does not run.
const TUN_QUEUE: u32 = 10_000;
/// A hardware address of local administration.
const FAR_ADDRESS: [u8; 6] = [0x02, 0x77, 0x65, 0x69, 0x72, 0x01];
/// Settings of both ends.
const SETTINGS: &[(&str, &str)] = &[
    // Echoes for everybody in the namespace.
    ("ipv4/ping_group_range", "0 0"),
    // What one run learns of a destination must not reach the next connection.
    ("ipv4/tcp_no_metrics_save", "1"),
    // One process opens more connections, and to fewer addresses, than the usual limits foresee.
    ("ipv4/tcp_max_syn_backlog", "65536"),
    ("core/somaxconn", "65536"),
    ("ipv4/icmp_ratelimit", "0"),
    ("ipv4/icmp_msgs_per_sec", "1000000"),
    // Packets between two addresses of ours are no spoofs.
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv6/conf/all/accept_ra", "0"),
];
/// The column of `/proc/net/dev`, counted from 0 behind the name.
const SENT_AND_DROPPED: usize = 11;
