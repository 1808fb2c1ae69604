//! Packets that come, through a device made for it: `ifb`, and the filters that send them there.

use std::net::IpAddr;

use crate::message::{About, CREATE, Message, NESTED, NLM_F_ACK};
use crate::tc::filter::{Key, TCA_U32_SEL, classify, filter, new_filter, selector};
use crate::tc::rtnetlink::{RTM_DELQDISC, TC_H_INGRESS, TCA_OPTIONS, new_qdisc};

/// The hook for filters of packets that come to the device of that index.
pub(super) fn hook(index: u32) -> Vec<u8> {
    let about = About { index, handle: INGRESS_HANDLE, parent: TC_H_INGRESS };
    new_qdisc(CREATE, about, "ingress").finish()
}

/// Request that removes the hook with everything on it.
pub(super) fn no_hook(index: u32) -> Vec<u8> {
    let about = About { index, handle: INGRESS_HANDLE, parent: TC_H_INGRESS };
    Message::new(RTM_DELQDISC, NLM_F_ACK, about).finish()
}

/// Requests that remove our filters from a hook that somebody else made: each kind of packet has a preference of
/// its own.
pub(super) fn no_filters(index: u32) -> Vec<Vec<u8>> {
    let of = |kind| filter(RTM_DELTFILTER, NLM_F_ACK, way_in(index), kind);
    // The one that sends packets to our device goes first: without the device they would be lost.
    [REDIRECTED, ECHOES, ECHOES_V6].map(of).map(Message::finish).to_vec()
}

/// Requests for filters that let answers to probes pass the queues: ICMP echo replies, and packets from `servers` by
/// UDP.
pub(super) fn passing(index: u32, servers: &[IpAddr]) -> Vec<Vec<u8>> {
    // Offsets from the IP header on: protocol and type; next header and type (RFC 791, 8200, 792, 4443).
    let echo = [Key { at: 8, mask: 0xff_0000, value: 1 << 16 }, Key::byte(20, 0)];
    let echo_v6 = [Key { at: 4, mask: 0xff00, value: 58 << 8 }, Key::byte(40, 129)];
    let mut all = vec![pass(index, ECHOES, &echo), pass(index, ECHOES_V6, &echo_v6)];
    for server in servers {
        match server {
            IpAddr::V4(server) => {
                let udp = Key { at: 8, mask: 0xff_0000, value: 17 << 16 };
                all.push(pass(index, ECHOES, &[udp, Key::word(12, server.to_bits())]));
            }
            IpAddr::V6(server) => {
                let mut keys = vec![Key { at: 4, mask: 0xff00, value: 17 << 8 }];
                for (word, at) in server.octets().chunks(4).zip([8, 12, 16, 20]) {
                    let word = u32::from_be_bytes(word.try_into().expect("four"));
                    keys.push(Key::word(at, word));
                }
                all.push(pass(index, ECHOES_V6, &keys));
            }
        }
    }
    all
}

/// Requests that redirect every packet to the device of index `to`: by `matchall`, or by a `u32` without conditions.
pub(super) fn redirect(index: u32, to: u32) -> [Vec<u8>; 2] {
    [true, false].map(|all| {
        let mut message =
            new_filter(way_in(index), REDIRECTED, if all { "matchall" } else { "u32" });
        message.nest(TCA_OPTIONS, |options| {
            options.nest(if all { TCA_MATCHALL_ACT } else { TCA_U32_ACT }, |actions| {
                actions.nest(1, |action| put_mirred(action, to));
            });
            if !all {
                options.put(TCA_U32_SEL, &selector(&[Key::word(0, 0).any()]));
            }
        });
        message.finish()
    })
}

fn put_mirred(action: &mut Message, to: u32) {
    action.put(TCA_ACT_KIND, b"mirred\0");
    action.nest(TCA_ACT_OPTIONS | NESTED, |options| {
        // struct tc_mirred: index, capabilities, verdict, two counts, what to do, where to.
        let parms = [0, 0, TC_ACT_STOLEN, 0, 0, TCA_EGRESS_REDIR, to];
        options.put(TCA_MIRRED_PARMS, &parms.map(u32::to_ne_bytes).concat());
    });
}

/// Any class: a filter that finds one and does nothing lets the packet go on.
fn pass(index: u32, kind: (u16, u16), keys: &[Key]) -> Vec<u8> {
    classify(way_in(index), kind, keys, 1)
}

/// The way in of the device of that index.
const fn way_in(index: u32) -> About {
    About { index, handle: 0, parent: TC_H_CLSACT_INGRESS }
}

/// Preferences behind those that people write, and protocols.
const ECHOES: (u16, u16) = (0x7765, libc::ETH_P_IP as u16);
const ECHOES_V6: (u16, u16) = (0x7766, libc::ETH_P_IPV6 as u16);
const REDIRECTED: (u16, u16) = (0x7767, libc::ETH_P_ALL as u16);
const INGRESS_HANDLE: u32 = 0xffff_0000;
/// The way in of both kinds of hooks, `ingress` and `clsact`.
const TC_H_CLSACT_INGRESS: u32 = 0xffff_fff2;
// include/uapi/linux/rtnetlink.h, pkt_cls.h, tc_act/tc_mirred.h
const RTM_DELTFILTER: u16 = 45;
const TCA_U32_ACT: u16 = 7;
const TCA_MATCHALL_ACT: u16 = 2;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TC_ACT_STOLEN: u32 = 4;
const TCA_EGRESS_REDIR: u32 = 1;
const TCA_MIRRED_PARMS: u16 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{attributes, read};

    fn options(request: &[u8]) -> Vec<u8> {
        let (_, rest) = read(&request[16..]).unwrap();
        attributes(rest).find(|(kind, _)| *kind == TCA_OPTIONS).unwrap().1.to_vec()
    }

    const MIRRED: [u8; 48] = [
        0x0b, 0, 1, 0, b'm', b'i', b'r', b'r', b'e', b'd', 0, 0, 0x24, 0, 2, 0x80, 0x20, 0, 2, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0,
    ];

    // What iproute2 6.1 sends, as strace shows it: byte by byte.
    #[test]
    fn what_tc_tells_of_filters() {
        let [all, u32] = redirect(7, 2);
        let actions = |kind| [&[0x38, 0, kind, 0, 0x34, 0, 1, 0][..], &MIRRED].concat();
        assert_eq!(options(&all), actions(2));
        let mut expected = actions(7);
        expected.extend([0x24, 0, 5, 0, 1, 0, 1, 0]);
        expected.extend([0; 28]);
        assert_eq!(options(&u32), expected);
        // Preference and protocol: info 0x7767_0300.
        assert_eq!(u32[32..36], 0x7767_0300_u32.to_ne_bytes());
        // u32 match ip protocol 1 0xff match u8 0 0xff at 20 flowid 0:1
        let mut echo = vec![8, 0, 1, 0, 1, 0, 0, 0, 0x34, 0, 5, 0, 1, 0, 2, 0];
        echo.extend([0; 12]);
        echo.extend([0, 0xff, 0, 0, 0, 1, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
        echo.extend([0xff, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(options(&passing(7, &[])[0]), echo);
    }

    #[test]
    fn servers_are_found_by_their_addresses() {
        let servers = ["10.1.2.3", "fd00::1"].map(|one| one.parse().unwrap());
        let passing = passing(7, &servers);
        let keys = |at: usize| options(&passing[at])[28..].to_vec();
        assert_eq!(keys(2)[16..24], [0xff, 0xff, 0xff, 0xff, 10, 1, 2, 3]);
        assert_eq!(keys(2).len(), 2 * 16);
        assert_eq!(keys(3)[16..28], [0xff, 0xff, 0xff, 0xff, 0xfd, 0, 0, 0, 8, 0, 0, 0]);
        assert_eq!(keys(3).len(), 5 * 16);
    }
}
