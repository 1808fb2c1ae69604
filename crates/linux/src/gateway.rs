//! Where a device sends what is not for its own network: rtnetlink(7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::LinuxError;
use crate::message::{Message, NLM_F_DUMP, attributes};
use crate::netlink::{Netlink, RT_TABLE_MAIN, RTA_OIF, RTN_UNICAST, index_of};

/// What the default route through a device leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Address of the next hop; `None` where the device has but one peer, as one of PPP.
    pub address: Option<IpAddr>,
    /// The next hop's hardware address, if the kernel knows it now.
    pub hardware: Option<Vec<u8>>,
}

/// The gateways of `device` by IPv4 and by IPv6, in the calling thread's network namespace; `None` where it has no default
/// route of that protocol in the main table. Of several routes the one with the least metric counts.
///
/// # Errors
/// If there is no such device, or the kernel does not say.
pub fn gateways(device: &str) -> Result<[Option<Gateway>; 2], LinuxError> {
    let netlink = Netlink::new()?;
    let index = index_of(device)?;
    let of = |family| {
        let unknown = |error| LinuxError::io("cannot read where routes lead", error);
        let next = next_hop(&netlink, family, index).map_err(unknown)?;
        let Some(address) = next else { return Ok(None) };
        let hardware = match address {
            Some(address) => neighbour(&netlink, index, address).map_err(unknown)?,
            None => None,
        };
        Ok(Some(Gateway { address, hardware }))
    };
    Ok([of(libc::AF_INET as u8)?, of(libc::AF_INET6 as u8)?])
}

/// The next hop of the default route of a family, if there is a route, and if it has one.
fn next_hop(netlink: &Netlink, family: u8, index: u32) -> std::io::Result<Option<Option<IpAddr>>> {
    // `struct rtmsg`: all routes of the family.
    let request = Message::with_header(
        RTM_GETROUTE,
        NLM_F_DUMP,
        &[[family, 0, 0, 0], [0; 4], [0; 4]].concat(),
    );
    let mut found: Option<DefaultRoute> = None;
    netlink.list(&request.finish(), &mut |route| {
        let Some(route) = default_route(route, index) else { return };
        if found.as_ref().is_none_or(|other| route.metric < other.metric) {
            found = Some(route);
        }
    })?;
    Ok(found.map(|route| route.next))
}

/// A default route through a device.
#[derive(Debug, PartialEq, Eq)]
struct DefaultRoute {
    metric: u32,
    next: Option<IpAddr>,
}

/// A route as the kernel writes it (`struct rtmsg`), if it is a default route of the main table through the device of that index.
fn default_route(message: &[u8], index: u32) -> Option<DefaultRoute> {
    // A route of IPv6 may be for packets from the provider's own addresses alone.
    let [_, destination_bits, _, _, table, _, _, kind] = *message.first_chunk()?;
    if destination_bits != 0 || table != RT_TABLE_MAIN || kind != RTN_UNICAST {
        return None;
    }
    let (mut metric, mut device, mut next) = (0, None, None);
    for (attribute, value) in attributes(message.get(RTMSG..)?) {
        match attribute {
            RTA_PRIORITY => metric = number(value)?,
            RTA_OIF => device = number(value),
            RTA_MULTIPATH => {
                let hop = hops(value).find(|hop| hop.index == index)?;
                device = Some(hop.index);
                next = hop.next;
            }
            _ => next = next.or_else(|| hop_address(attribute, value)),
        }
    }
    (device == Some(index)).then_some(DefaultRoute { metric, next })
}

/// One of several ways of a route (`struct rtnexthop`).
struct Hop {
    index: u32,
    next: Option<IpAddr>,
}

fn hops(mut bytes: &[u8]) -> impl Iterator<Item = Hop> {
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let index = number(bytes.get(4..8)?)?;
        let own = bytes.get(8..len)?;
        let next = attributes(own).find_map(|(attribute, value)| hop_address(attribute, value));
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(Hop { index, next })
    })
}

/// The next hop that an attribute of a route names, if it is one that names a next hop.
fn hop_address(attribute: u16, value: &[u8]) -> Option<IpAddr> {
    match attribute {
        RTA_GATEWAY => address(value),
        // A route of IPv4 may lead over IPv6: the family comes first.
        RTA_VIA => address(value.get(2..)?),
        _ => None,
    }
}

/// The hardware address of a neighbour, if the kernel knows it.
fn neighbour(netlink: &Netlink, index: u32, wanted: IpAddr) -> std::io::Result<Option<Vec<u8>>> {
    let family = if wanted.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // `struct ndmsg`: all neighbours of the family.
    let request = Message::with_header(
        RTM_GETNEIGH,
        NLM_F_DUMP,
        &[[family as u8, 0, 0, 0], [0; 4], [0; 4]].concat(),
    );
    let mut found = None;
    netlink.list(&request.finish(), &mut |entry| {
        let is_there = entry.get(4..8).and_then(number) == Some(index);
        let Some(rest) = entry.get(NDMSG..).filter(|_| is_there) else { return };
        let of = |which| attributes(rest).find(|(kind, _)| *kind == which).map(|(_, value)| value);
        if of(NDA_DST).and_then(address) == Some(wanted) {
            found = of(NDA_LLADDR).map(<[u8]>::to_vec);
        }
    })?;
    Ok(found)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|bytes| Ipv4Addr::from(bytes).into());
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| Ipv6Addr::from(bytes).into())).ok()
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// Lengths of `struct rtmsg` and `struct ndmsg`.
const RTMSG: usize = 12;
const NDMSG: usize = 12;
// include/uapi/linux/rtnetlink.h, neighbour.h
const RTM_GETROUTE: u16 = 26;
const RTM_GETNEIGH: u16 = 30;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_MULTIPATH: u16 = 9;
const RTA_VIA: u16 = 18;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: u32 = 7;
    const NEXT: [u8; 4] = [192, 0, 2, 1];

    /// A default route as the kernel writes it, of the table and with the attributes.
    fn route(destination_bits: u8, table: u8, fill: impl FnOnce(&mut Message)) -> Vec<u8> {
        let header =
            [[libc::AF_INET as u8, destination_bits, 0, 0], [table, 3, 0, RTN_UNICAST], [0; 4]];
        let mut message = Message::with_header(RTM_GETROUTE, 0, &header.concat());
        fill(&mut message);
        message.finish()[16..].to_vec()
    }

    #[test]
    fn a_default_route_tells_its_next_hop_and_metric() {
        let usual = route(0, RT_TABLE_MAIN, |message| {
            message.put_u32(RTA_PRIORITY, 100);
            message.put(RTA_GATEWAY, &NEXT);
            message.put_u32(RTA_OIF, DEVICE);
        });
        let next = Some(IpAddr::from(NEXT));
        assert_eq!(default_route(&usual, DEVICE), Some(DefaultRoute { metric: 100, next }));
        assert_eq!(default_route(&usual, DEVICE + 1), None);
        let peer = route(0, RT_TABLE_MAIN, |message| message.put_u32(RTA_OIF, DEVICE));
        assert_eq!(default_route(&peer, DEVICE), Some(DefaultRoute { metric: 0, next: None }));
        let inner = route(24, RT_TABLE_MAIN, |message| message.put_u32(RTA_OIF, DEVICE));
        assert_eq!(default_route(&inner, DEVICE), None);
        let mut own = peer.clone();
        own[2] = 56;
        assert_eq!(default_route(&own, DEVICE), Some(DefaultRoute { metric: 0, next: None }));
        let other = route(0, 100, |message| message.put_u32(RTA_OIF, DEVICE));
        assert_eq!(default_route(&other, DEVICE), None);
        assert_eq!(default_route(&[0; 3], DEVICE), None);
    }

    #[test]
    fn a_route_over_the_other_protocol_or_over_several_devices_is_read() {
        let router = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let via = route(0, RT_TABLE_MAIN, |message| {
            message.put(RTA_VIA, &[&(libc::AF_INET6 as u16).to_ne_bytes()[..], &router].concat());
            message.put_u32(RTA_OIF, DEVICE);
        });
        let over = Some(IpAddr::from(router));
        assert_eq!(default_route(&via, DEVICE), Some(DefaultRoute { metric: 0, next: over }));
        let several = route(0, RT_TABLE_MAIN, |message| {
            message.nest(RTA_MULTIPATH, |hops| {
                for (index, last) in [(3, 9), (DEVICE, 1)] {
                    hops.append(&16u16.to_ne_bytes());
                    hops.append(&[0; 2]);
                    hops.append(&u32::to_ne_bytes(index));
                    hops.put(RTA_GATEWAY, &[192, 0, 2, last]);
                }
            });
        });
        let next = Some(IpAddr::from(NEXT));
        assert_eq!(default_route(&several, DEVICE), Some(DefaultRoute { metric: 0, next }));
        assert_eq!(default_route(&several, 4), None);
    }
}
