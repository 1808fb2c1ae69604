//! Devices, addresses and routes of the calling thread's network namespace: rtnetlink(7).

use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::LinuxError;

/// What to set on a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkSettings {
    pub mtu: Option<u32>,
    pub tx_queue_len: Option<u32>,
    /// No address resolution: the peer is the only one there.
    pub no_arp: bool,
}

/// A connection to the kernel.
pub(crate) struct Netlink {
    socket: Socket,
}

impl Netlink {
    pub fn new() -> Result<Self, LinuxError> {
        let fail = |error| LinuxError::io("cannot talk to the kernel (rtnetlink)", error);
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(fail)?;
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

    fn ask(&self, message: RouteNetlinkMessage, flags: u16, what: &str) -> Result<(), LinuxError> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        request.header.sequence_number = 1;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(|error| LinuxError::io(what, error))?;
        let (answer, _) =
            self.socket.recv_from_full().map_err(|error| LinuxError::io(what, error))?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
            .map_err(|error| LinuxError::io(what, error))?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => {
                Err(LinuxError::io(what, error.to_io()))
            }
            _ => Ok(()),
        }
    }
}

/// The index of the device called `name` in the calling thread's network namespace.
pub(crate) fn index_of(name: &str) -> Result<u32, LinuxError> {
    nix::net::if_::if_nametoindex(name)
        .map_err(|error| LinuxError::io(&format!("there is no device `{name}`"), error))
}
