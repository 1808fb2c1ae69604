//! The kernel's own queues in place of ours: each hop is a router, a network namespace, whose way out has
//! the hop's queue and line as queue disciplines.
//!
//! ```text
//! client ─> router per hop up ─> junction ─> our data path: delay, jitter, loss <─> server
//!        <─ router per hop down <─ junction <─
//! ```
//!
//! The queues are not on the hosts' own devices, where TCP small queues would hold packets back in front
//! of them. Everything that takes time without a queue stays with the userspace data path, which has the
//! hops of [`behind_kernel_queues`]: behind the queues on the way up, in front of them on the way down.

use std::fs;
use std::os::fd::{AsFd, AsRawFd};

use weir_core::{Cells, End, Framing, Rate, Seed};
use weir_linux::{
    Line, LinkSettings, LinuxError, Namespace, Netlink, Queue, check_spec, check_values, index_of,
    switch_offloads_off,
};
use weir_qdisc::{QueueSpec, SpecError};
use weir_scenario::{Direction, Hop, LineRate, ProbeKind, Scenario};

use crate::interface::{DEVICE, network, whole};

/// The scenario that the userspace data path carries out where the kernel has the queues and lines: hops
/// that delay and lose packets, and nothing else.
#[must_use]
pub fn behind_kernel_queues(scenario: &Scenario) -> Scenario {
    let mut rest = scenario.clone();
    for hop in rest.path.up.iter_mut().chain(&mut rest.path.down) {
        hop.queue = format!("pfifo limit {}", u32::MAX);
        hop.marker = None;
        hop.rate = LineRate::Unlimited;
        hop.framing = Framing::NONE;
    }
    // The queues that count are sampled elsewhere.
    rest.sampling.queue_ns = 0;
    rest
}

/// Checks that a kernel's queues can stand for those of `scenario`.
///
/// # Errors
/// If they cannot, whatever kernel it is: the first thing.
pub fn check_kernel_queues(scenario: &Scenario) -> Result<(), LinuxError> {
    let counting = scenario.probes.iter().find(|probe| probe.kind == ProbeKind::UdpTtl);
    if let Some(probe) = counting {
        return Err(LinuxError::new(format!(
            "probe `{}` counts routers, of which the kernel's queues need more than the scenario has: \
             use the userspace data path",
            probe.name
        )));
    }
    if let Some(route) = scenario.first_route() {
        return Err(LinuxError::new(format!(
            "route `{route}`: the kernel's queues stand in one chain, which all packets pass: use the userspace data path"
        )));
    }
    let hops = scenario.path.up.iter().chain(&scenario.path.down);
    if let Some((hop, marker)) = hops.filter_map(|hop| Some((hop, hop.marker.as_ref()?))).next() {
        return Err(LinuxError::new(format!(
            "hop `{}`: the kernel has no marker `{marker}`: use the userspace data path",
            hop.name
        )));
    }
    check_hops(scenario)
}

/// Checks that any kernel's disciplines can stand for the path of `scenario`.
///
/// # Errors
/// The first thing.
fn check_hops(scenario: &Scenario) -> Result<(), LinuxError> {
    for hop in scenario.path.up.iter().chain(&scenario.path.down) {
        let refuse = |why: String| {
            Err(LinuxError::new(format!("hop `{}`: {why}: use the userspace data path", hop.name)))
        };
        if let LineRate::Trace(name) = &hop.rate {
            return refuse(format!("the kernel cannot follow the recording `{name}` as a line"));
        }
        if let LineRate::PacketsPerSecond(rate) = hop.rate {
            return refuse(format!("the kernel cannot forward just {rate} packets per second"));
        }
        if hop.access.is_some() || hop.reconfiguration.is_some() {
            return refuse(
                "the kernel has no line with `grants`, `airtime` or `reconfiguration`".to_owned(),
            );
        }
        if hop.framing.cells == Cells::Ptm && matches!(hop.rate, LineRate::Bps(_)) {
            return refuse("the kernel does not know the framing PTM".to_owned());
        }
        let of_hop = |error: SpecError| of_hop(hop, error);
        let (spec, device) = queue_spec(hop, scenario.mtu_bytes).map_err(of_hop)?;
        if let Err(why) = check_spec(&spec) {
            return refuse(why);
        }
        check_values(&spec, &device).map_err(of_hop)?;
        if spec.size_table.is_some() && matches!(hop.rate, LineRate::Bps(_)) {
            return refuse(
                "`stab` beneath the line, which the kernel would then count by it, too".to_owned(),
            );
        }
    }
    Ok(())
}

/// The queue of `hop` as it was written, with what stands for short forms, and the device that it is for.
fn queue_spec(hop: &Hop, mtu: u32) -> Result<(QueueSpec, weir_qdisc::Device), SpecError> {
    let device = weir_path::device(hop, Seed::new(0), mtu);
    let spec = QueueSpec::parse(&hop.queue)?.expanded(&device)?;
    Ok((spec, device))
}

/// The routers of a path.
#[derive(Default)]
pub(crate) struct KernelPath {
    /// The hops' namespaces.
    pub routers: Vec<Namespace>,
    /// The hops, up before down.
    pub hops: Vec<KernelHop>,
}

/// A hop whose queue is the kernel's.
pub(crate) struct KernelHop {
    /// Name of the hop with its direction, such as `up/modem`.
    pub name: String,
    pub framing: Framing,
    pub queue: Queue,
    /// A connection to the kernel in the hop's namespace.
    pub netlink: Netlink,
}

/// The end of a pair of devices: the namespace and the device's name there.
#[derive(Clone, Copy)]
struct Socket<'a> {
    namespace: &'a Namespace,
    device: &'a str,
}

impl KernelPath {
    /// Makes the routers between `client` and `junction`, where the userspace data path has a device
    /// already. The client has its devices afterwards, but no addresses.
    ///
    /// # Errors
    /// If this kernel lacks a queue discipline, or refuses something.
    pub fn new(
        scenario: &Scenario,
        client: &Namespace,
        junction: &Namespace,
    ) -> Result<Self, LinuxError> {
        let mut path = Self { routers: Vec::new(), hops: Vec::new() };
        let socket = |namespace, device| Socket { namespace, device };
        let (from_client, to_client) = (socket(client, DEVICE), socket(client, IN));
        let (from_junction, to_junction) = (socket(junction, OUT), socket(junction, IN));
        path.add_chain(scenario, Direction::Up, from_client, to_junction)?;
        path.add_chain(scenario, Direction::Down, from_junction, to_client)?;
        junction.within(|| {
            forward()?;
            let netlink = Netlink::new()?;
            add_routes(&netlink, index_of(DEVICE)?, scenario)?;
            for address in scenario.addresses(End::Client) {
                netlink.add_route(index_of(OUT)?, address, whole(address))?;
            }
            Ok(())
        })?;
        Ok(path)
    }

    /// A router for each hop of one direction, from `from` to `to`.
    fn add_chain(
        &mut self,
        scenario: &Scenario,
        direction: Direction,
        from: Socket<'_>,
        to: Socket<'_>,
    ) -> Result<(), LinuxError> {
        let hops = scenario.hops(direction);
        let first = self.routers.len();
        for _ in hops {
            self.routers.push(Namespace::new()?);
        }
        let routers = &self.routers[first..];
        let outs = routers.iter().map(|namespace| Socket { namespace, device: OUT });
        let ins = routers.iter().map(|namespace| Socket { namespace, device: IN });
        let starts = std::iter::once(from).chain(outs);
        let ends = ins.chain(std::iter::once(to));
        for (number, (start, end)) in starts.zip(ends).enumerate() {
            let hop = number.checked_sub(1).map(|hop| &hops[hop]);
            let queue_len = hop.map_or(QUEUE_LEN, |hop| hop.tx_queue_len);
            connect(start, end, scenario.mtu_bytes, queue_len)?;
        }
        for (router, hop) in routers.iter().zip(hops) {
            let (queue, netlink) = router.within(|| set_router_up(scenario, hop))?;
            let name = hop.full_name(direction);
            self.hops.push(KernelHop { name, framing: hop.framing, queue, netlink });
        }
        Ok(())
    }
}

/// Makes the calling thread's namespace the router of `hop`, which sends everything on.
fn set_router_up(scenario: &Scenario, hop: &Hop) -> Result<(Queue, Netlink), LinuxError> {
    forward()?;
    let netlink = Netlink::new()?;
    let out = index_of(OUT)?;
    add_routes(&netlink, out, scenario)?;
    let (spec, device) = queue_spec(hop, scenario.mtu_bytes).map_err(|error| of_hop(hop, error))?;
    let line = match hop.rate {
        LineRate::Bps(bps) => Some(Line { rate: Rate::from_bps(bps), framing: hop.framing }),
        _ => None,
    };
    let queue =
        Queue::install(&netlink, out, line, &spec, &device).map_err(|error| of_hop(hop, error))?;
    Ok((queue, netlink))
}

/// What is wrong with a hop, with its name.
fn of_hop(hop: &Hop, error: impl std::fmt::Display) -> LinuxError {
    LinuxError::io(&format!("hop `{}`", hop.name), error)
}

/// Sends packets to all addresses of the scenario out of the device number `index`.
fn add_routes(netlink: &Netlink, index: u32, scenario: &Scenario) -> Result<(), LinuxError> {
    for ip in scenario.ip_versions() {
        let (address, prefix) = network(ip);
        netlink.add_route(index, address, prefix)?;
    }
    Ok(())
}

/// Joins two namespaces by a pair of devices, whose packets are those that a queue is to see: of `mtu`
/// bytes at most, neither joined nor left to be cut, with their checksums done.
fn connect(from: Socket<'_>, to: Socket<'_>, mtu: u32, queue_len: u32) -> Result<(), LinuxError> {
    let settings = LinkSettings {
        mtu: Some(mtu),
        tx_queue_len: Some(queue_len),
        no_arp: true,
        // Without resolution a device sends to its own address: its peer has the same.
        address: Some(ADDRESS),
    };
    let set_up = |name: &str| {
        switch_offloads_off(name).map_err(|error| LinuxError::io("cannot set a veth up", error))?;
        Netlink::new()?.set_up(index_of(name)?, settings)
    };
    to.namespace.within(take_everything)?;
    from.namespace.within(|| {
        take_everything()?;
        let far = to.namespace.as_fd().as_raw_fd();
        Netlink::new()?.add_veth(from.device, to.device, ADDRESS, far)
    })?;
    to.namespace.within(|| set_up(to.device))?;
    from.namespace.within(|| set_up(from.device))
}

/// Devices that come into the calling thread's namespace take packets whose answers leave by another.
fn take_everything() -> Result<(), LinuxError> {
    for whose in ["all", "default"] {
        let setting = format!("net/ipv4/conf/{whose}/rp_filter");
        fs::write(format!("/proc/sys/{setting}"), "0")
            .map_err(|error| LinuxError::io(&format!("cannot set {setting} to 0"), error))?;
    }
    Ok(())
}

/// The calling thread's namespace is a router.
fn forward() -> Result<(), LinuxError> {
    for setting in ["ipv4/conf/all/forwarding", "ipv6/conf/all/forwarding"] {
        let file = format!("/proc/sys/net/{setting}");
        if !fs::exists(&file).unwrap_or(false) {
            continue;
        }
        fs::write(&file, "1")
            .map_err(|error| LinuxError::io(&format!("cannot set net/{setting} to 1"), error))?;
    }
    Ok(())
}

/// The device by which packets come into a router, or back to the client.
const IN: &str = "weir1";
/// The device by which packets leave a router.
const OUT: &str = "weir2";
/// A hardware address of local administration.
const ADDRESS: [u8; 6] = [0x02, 0x77, 0x65, 0x69, 0x72, 0x02];
/// `txqueuelen` of devices without a queue, which do not use it.
const QUEUE_LEN: u32 = 1000;
