//! Devices, addresses and routes of the calling thread's network namespace: rtnetlink(7); the way to its
//! sockets: sock_diag(7).

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};

use netlink_sys::{
    Socket, SocketAddr,
    protocols::{NETLINK_ROUTE, NETLINK_SOCK_DIAG},
};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::LinuxError;
use crate::message::{CREATE, IFINFOMSG, Message, NLM_F_ACK};

/// Settings of a device; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkSettings {
    /// The longest packet, in bytes.
    pub mtu: Option<u32>,
    /// Packets that wait in a device without a queue discipline of its own (`txqueuelen`).
    pub tx_queue_len: Option<u32>,
    /// No address resolution: the peer is the only one there.
    pub no_arp: bool,
    /// The hardware address.
    pub address: Option<[u8; 6]>,
}

/// Packets whose way is looked up in a routing table of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketRule<'a> {
    /// Those from that address.
    From(IpAddr),
    /// Those of sockets that are bound to a device (`SO_BINDTODEVICE`).
    BoundTo {
        /// Name of the device.
        device: &'a str,
        /// An address of the Internet protocol of which the packets are.
        like: IpAddr,
    },
}

/// A connection to the kernel.
pub struct Netlink {
    socket: Socket,
}

impl std::fmt::Debug for Netlink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Netlink")
    }
}

impl Netlink {
    /// A connection to what knows devices, addresses, routes and queues.
    ///
    /// # Errors
    /// If the kernel gives none.
    pub fn new() -> Result<Self, LinuxError> {
        Self::with(NETLINK_ROUTE, "rtnetlink")
    }

    /// A connection to what knows sockets.
    ///
    /// # Errors
    /// If the kernel gives none.
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
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set_up(&self, index: u32, settings: LinkSettings) -> Result<(), LinuxError> {
        let flags = if settings.no_arp { IFF_UP | IFF_NOARP } else { IFF_UP };
        let mut message = Message::about_link(RTM_SETLINK, NLM_F_ACK, index, flags);
        if let Some(address) = settings.address {
            message.put(IFLA_ADDRESS, &address);
        }
        if let Some(mtu) = settings.mtu {
            message.put_u32(IFLA_MTU, mtu);
        }
        if let Some(len) = settings.tx_queue_len {
            message.put_u32(IFLA_TXQLEN, len);
        }
        self.ask(message, "cannot set a device up")
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
        let mut message = Message::about_link(RTM_NEWLINK, CREATE, 0, 0);
        message.put_text(IFLA_IFNAME, name);
        message.nest(IFLA_LINKINFO, |info| {
            info.put_text(IFLA_INFO_KIND, "veth");
            info.nest(IFLA_INFO_DATA, |data| {
                data.nest(VETH_INFO_PEER, |other| {
                    other.append(&[0; IFINFOMSG]);
                    other.put_text(IFLA_IFNAME, peer);
                    other.put(IFLA_ADDRESS, &peer_address);
                    other.put_u32(IFLA_NET_NS_FD, peer_namespace.cast_unsigned());
                });
            });
        });
        self.ask(message, "cannot make a veth pair")
    }

    /// Gives the device of that index an address, whose network of `prefix` bits is behind it.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_address(&self, index: u32, address: IpAddr, prefix: u8) -> Result<(), LinuxError> {
        let (family, bytes) = family_and_bytes(address);
        // `struct ifaddrmsg`. Nobody else is there who could have the address.
        let header =
            [[family, prefix, IFA_F_NODAD, RT_SCOPE_UNIVERSE], index.to_ne_bytes()].concat();
        let mut message = Message::with_header(RTM_NEWADDR, CREATE, &header);
        message.put(IFA_ADDRESS, &bytes);
        if address.is_ipv4() {
            message.put(IFA_LOCAL, &bytes);
        }
        self.ask(message, &format!("cannot give a device the address {address}"))
    }

    /// Sends packets to the network of `prefix` bits in which `address` lies to the device of that index.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_route(&self, index: u32, address: IpAddr, prefix: u8) -> Result<(), LinuxError> {
        self.add_route_in(RT_TABLE_MAIN, index, address, prefix)
    }

    /// As [`add_route`](Self::add_route), in routing table number `table`: for packets that a [rule](Self::add_rule)
    /// sends there.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_route_in(
        &self,
        table: u8,
        index: u32,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), LinuxError> {
        let (family, bytes) = family_and_bytes(address);
        // `struct rtmsg`: from anywhere, of any class, and no flags.
        let kind = [table, RTPROT_STATIC, RT_SCOPE_LINK, RTN_UNICAST];
        let header = [[family, prefix, 0, 0], kind, [0; 4]].concat();
        let mut message = Message::with_header(RTM_NEWROUTE, CREATE, &header);
        message.put(RTA_DST, &bytes);
        message.put_u32(RTA_OIF, index);
        self.ask(message, &format!("cannot make a route to {address}"))
    }

    /// Looks the way of packets that `rule` means up in routing table number `table`, before the main table.
    ///
    /// # Errors
    /// If the kernel refuses, as one without policy routing does.
    pub fn add_rule(&self, rule: PacketRule<'_>, table: u8) -> Result<(), LinuxError> {
        // `struct fib_rule_hdr`: of packets to anywhere and of any class, and no flags.
        let header = |family, source_bits| {
            [[family, 0, source_bits, 0], [table, 0, 0, FR_ACT_TO_TBL], [0; 4]].concat()
        };
        let message = match rule {
            PacketRule::From(address) => {
                let (family, bytes) = family_and_bytes(address);
                let header = header(family, 8 * bytes.len() as u8);
                let mut message = Message::with_header(RTM_NEWRULE, CREATE, &header);
                message.put(FRA_SRC, &bytes);
                message.put_u32(FRA_PRIORITY, FROM_PRIORITY);
                message
            }
            PacketRule::BoundTo { device, like } => {
                let (family, _) = family_and_bytes(like);
                let mut message = Message::with_header(RTM_NEWRULE, CREATE, &header(family, 0));
                message.put_text(FRA_OIFNAME, device);
                message.put_u32(FRA_PRIORITY, BOUND_PRIORITY);
                message
            }
        };
        self.ask(message, "cannot make a rule for routes (ip-rule(8))")
    }

    fn ask(&self, message: Message, what: &str) -> Result<(), LinuxError> {
        self.transact(&message.finish()).map_err(|error| LinuxError::io(what, error))
    }

    /// Sends a finished request and waits until the kernel has done what it says.
    pub(crate) fn transact(&self, request: &[u8]) -> io::Result<()> {
        self.socket.send(request, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        answers(&answer).try_for_each(|(kind, body)| match (kind, error_of(body)) {
            (NLMSG_ERROR, Some(code)) if code != 0 => Err(io::Error::from_raw_os_error(-code)),
            _ => Ok(()),
        })
    }

    /// Sends a finished request for one thing, and returns what stands behind the header of the answer.
    pub(crate) fn get(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.socket.send(request, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let (kind, body) = answers(&answer).next().ok_or(io::ErrorKind::UnexpectedEof)?;
        match error_of(body) {
            Some(code) if kind == NLMSG_ERROR => Err(io::Error::from_raw_os_error(-code)),
            _ => Ok(body.to_vec()),
        }
    }

    /// The socket, for what only knows how to send bytes.
    pub(crate) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends a finished request for a list, and shows what stands behind the header of each answer.
    pub(crate) fn list(&self, request: &[u8], show: &mut dyn FnMut(&[u8])) -> io::Result<()> {
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

/// The family of an address, and its bytes in the order of the network.
fn family_and_bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

/// The index of the device called `name` in the calling thread's network namespace.
///
/// # Errors
/// If there is none, or the kernel does not say.
pub fn index_of(name: &str) -> Result<u32, LinuxError> {
    find_device(name)?.ok_or_else(|| LinuxError::new(format!("there is no device `{name}`")))
}

/// The index of the device called `name` in the calling thread's network namespace, if there is one.
///
/// # Errors
/// If `name` is another name of a device, which rules of packets and `/sys` do not know, or the kernel does not say, as where
/// this process may open no more files.
pub fn find_device(name: &str) -> Result<Option<u32>, LinuxError> {
    match nix::net::if_::if_nametoindex(name) {
        Ok(index) => match nix::net::if_::if_indextoname(index) {
            Ok(own) if own.to_bytes() != name.as_bytes() => Err(LinuxError::new(format!(
                "`{name}` is another name of the device `{0}`: write `{0}`",
                own.to_string_lossy()
            ))),
            _ => Ok(Some(index)),
        },
        Err(nix::Error::ENODEV | nix::Error::ENXIO | nix::Error::EINVAL) => Ok(None),
        Err(error) => {
            // The C library asks by a socket, and forgets why it could have none.
            let no_socket =
                socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).err();
            let error = no_socket.unwrap_or(error);
            Err(LinuxError::io(&format!("cannot look for the device `{name}`"), error))
        }
    }
}

/// What became of the device of that index, which nothing here is called `name` any more.
#[must_use]
pub fn gone(name: &str, index: u32) -> LinuxError {
    LinuxError::new(match nix::net::if_::if_indextoname(index) {
        // The name is empty where there is no device of that index, too.
        Ok(now) if !now.is_empty() => format!(
            "the device `{name}` is called `{0}` now: begin again with `{0}`",
            now.to_string_lossy()
        ),
        _ => format!("the device `{name}` has gone"),
    })
}

/// What is told where the device that is called `name` now is another one than at first.
#[must_use]
pub fn come_again(name: &str) -> LinuxError {
    LinuxError::new(format!("the device `{name}` has gone and come again as another"))
}

/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
// include/uapi/linux/rtnetlink.h
pub(crate) const RTM_NEWLINK: u16 = 16;
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWRULE: u16 = 32;
pub(crate) const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_LINK: u8 = 253;
pub(crate) const RTN_UNICAST: u8 = 1;
const RTA_DST: u16 = 1;
pub(crate) const RTA_OIF: u16 = 4;
// include/uapi/linux/fib_rules.h
const FRA_SRC: u16 = 2;
const FRA_PRIORITY: u16 = 6;
const FRA_OIFNAME: u16 = 17;
const FR_ACT_TO_TBL: u8 = 1;
/// Place of rules among all: behind that of the table `local`, 0, and in front of that of the table `main`, 32766. An
/// address that a socket is bound to comes before its device.
const FROM_PRIORITY: u32 = 100;
const BOUND_PRIORITY: u32 = 200;
// include/uapi/linux/if_addr.h
const IFA_F_NODAD: u8 = 0x02;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
// include/uapi/linux/if.h, if_link.h, veth.h
pub(crate) const IFF_UP: u32 = 0x1;
const IFF_NOARP: u32 = 0x80;
const IFLA_ADDRESS: u16 = 1;
pub(crate) const IFLA_IFNAME: u16 = 3;
pub(crate) const IFLA_MTU: u16 = 4;
pub(crate) const IFLA_TXQLEN: u16 = 13;
pub(crate) const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
pub(crate) const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
