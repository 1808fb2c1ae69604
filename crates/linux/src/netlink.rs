//! Devices, addresses and routes of the calling thread's network namespace: rtnetlink(7); the way to its
//! sockets: sock_diag(7).

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_sys::{
    Socket, SocketAddr,
    protocols::{NETLINK_ROUTE, NETLINK_SOCK_DIAG},
};

use crate::LinuxError;

/// Settings of a device; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkSettings {
    pub mtu: Option<u32>,
    pub tx_queue_len: Option<u32>,
    /// No address resolution: the peer is the only one there.
    pub no_arp: bool,
    /// The hardware address.
    pub address: Option<[u8; 6]>,
}

/// A connection to the kernel.
pub(crate) struct Netlink {
    socket: Socket,
}

impl std::fmt::Debug for Netlink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Netlink")
    }
}

impl Netlink {
    /// To what knows devices, addresses, routes and queues.
    pub fn new() -> Result<Self, LinuxError> {
        Self::with(NETLINK_ROUTE, "rtnetlink")
    }

    /// To what knows sockets.
    pub fn of_sockets() -> Result<Self, LinuxError> {
        Self::with(NETLINK_SOCK_DIAG, "sock_diag")
    }

    fn with(protocol: isize, name: &str) -> Result<Self, LinuxError> {
        let fail = |error| LinuxError::io(&format!("cannot talk to the kernel ({name})"), error);
        let mut socket = Socket::new(protocol).map_err(fail)?;
        socket.bind_auto().map_err(fail)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(fail)?;
        Ok(Self { socket })
    }

    /// Configures the device of that index and sets it up.
    pub fn set_up(&self, index: u32, settings: LinkSettings) -> Result<(), LinuxError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        if settings.no_arp {
            message.header.flags |= LinkFlags::Noarp;
            message.header.change_mask |= LinkFlags::Noarp;
        }
        let address = settings.address.map(|address| LinkAttribute::Address(address.to_vec()));
        message.attributes.extend(address);
        message.attributes.extend(settings.mtu.map(LinkAttribute::Mtu));
        message.attributes.extend(settings.tx_queue_len.map(LinkAttribute::TxQueueLen));
        self.ask(RouteNetlinkMessage::SetLink(message), 0, "cannot set a device up")
    }

    /// Makes a pair of devices: `name` here and `peer`, of hardware address `peer_address`, in the network
    /// namespace behind `peer_namespace`.
    pub fn add_veth(
        &self,
        name: &str,
        peer: &str,
        peer_address: [u8; 6],
        peer_namespace: i32,
    ) -> Result<(), LinuxError> {
        let mut other = LinkMessage::default();
        other.attributes = vec![
            LinkAttribute::IfName(peer.to_owned()),
            LinkAttribute::Address(peer_address.to_vec()),
            LinkAttribute::NetNsFd(peer_namespace),
        ];
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
            ]),
        ];
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.ask(RouteNetlinkMessage::NewLink(message), flags, "cannot make a veth pair")
    }

    /// Gives the device of that index an address, whose network of `prefix` bits is behind it.
    pub fn add_address(&self, index: u32, address: IpAddr, prefix: u8) -> Result<(), LinuxError> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = prefix;
        message.header.family =
            if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        // Nobody else is there who could have it.
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![AddressAttribute::Address(address)];
        if address.is_ipv4() {
            message.attributes.push(AddressAttribute::Local(address));
        }
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let what = format!("cannot give a device the address {address}");
        self.ask(RouteNetlinkMessage::NewAddress(message), flags, &what)
    }

    /// Sends packets to the network of `prefix` bits in which `address` lies to the device of that index.
    pub fn add_route(&self, index: u32, address: IpAddr, prefix: u8) -> Result<(), LinuxError> {
        let (family, destination) = match address {
            IpAddr::V4(address) => (AddressFamily::Inet, RouteAddress::Inet(address)),
            IpAddr::V6(address) => (AddressFamily::Inet6, RouteAddress::Inet6(address)),
        };
        let mut message = RouteMessage::default();
        message.header.address_family = family;
        message.header.destination_prefix_length = prefix;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        message.attributes =
            vec![RouteAttribute::Destination(destination), RouteAttribute::Oif(index)];
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let what = format!("cannot make a route to {address}");
        self.ask(RouteNetlinkMessage::NewRoute(message), flags, &what)
    }

    fn ask(&self, message: RouteNetlinkMessage, flags: u16, what: &str) -> Result<(), LinuxError> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        request.header.sequence_number = 1;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.transact(&bytes).map_err(|error| LinuxError::io(what, error))
    }

    /// Sends a finished request and waits until the kernel has done what it says.
    pub fn transact(&self, request: &[u8]) -> io::Result<()> {
        self.socket.send(request, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        answers(&answer).try_for_each(|(kind, body)| match (kind, error_of(body)) {
            (NLMSG_ERROR, Some(code)) if code != 0 => Err(io::Error::from_raw_os_error(-code)),
            _ => Ok(()),
        })
    }

    /// Sends a finished request for one thing, and returns what stands behind the header of the answer.
    pub fn get(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.socket.send(request, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let (kind, body) = answers(&answer).next().ok_or(io::ErrorKind::UnexpectedEof)?;
        match error_of(body) {
            Some(code) if kind == NLMSG_ERROR => Err(io::Error::from_raw_os_error(-code)),
            _ => Ok(body.to_vec()),
        }
    }

    /// The socket, for what only knows how to send bytes.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends a finished request for a list, and shows what stands behind the header of each answer.
    pub fn list(&self, request: &[u8], show: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        list(&self.socket, request, show)
    }
}

/// Sends a request for a list over any connection to the kernel, and shows each answer.
pub(crate) fn list(socket: &Socket, request: &[u8], show: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    socket.send(request, 0)?;
    loop {
        let (part, _) = socket.recv_from_full()?;
        for (kind, body) in answers(&part) {
            match (kind, error_of(body)) {
                (NLMSG_DONE, _) => return Ok(()),
                (NLMSG_ERROR, Some(code)) => return Err(io::Error::from_raw_os_error(-code)),
                _ => show(body),
            }
        }
    }
}

/// The messages in what the kernel has sent at once: their types, and what stands behind their headers.
pub(crate) fn answers(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
        let body = bytes.get(HEADER..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// The code at the front of a message of type NLMSG_ERROR.
pub(crate) fn error_of(body: &[u8]) -> Option<i32> {
    Some(i32::from_ne_bytes(body.get(..4)?.try_into().ok()?))
}

/// The index of the device called `name` in the calling thread's network namespace.
pub(crate) fn index_of(name: &str) -> Result<u32, LinuxError> {
    nix::net::if_::if_nametoindex(name)
        .map_err(|error| LinuxError::io(&format!("there is no device `{name}`"), error))
}

/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
