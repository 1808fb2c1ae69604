//! Rules that give packets classes, in two tables of nf_tables of our own.
//!
//! ```text
//! out:  local     ─> output,  device D ─┐
//!       forwarded ─> forward, device D ─┴> rules ─> priority of the class ─> root of D
//! in:   D ─> ingress (inet) ─> rules ─> priority of the class ─> ingress (netdev) ─> ifb ─> its root
//! ```
//!
//! The class is the packet's priority within this kernel (`skb->priority`), by which `cake diffserv4` knows
//! its tins and `htb` its classes; into the packet itself nothing is written unless that is asked for. On the
//! way in packets are sent to the `ifb` by the second table, since filters of `tc` come before all tables,
//! and that table's family knows `fwd`, which the other's does not.
//!
//! A rule's conditions are chains: each rule of a chain is one way to meet it, and goes on to the next chain.
//! Whose packet it is the process says, by ports in a set for each such rule. Both tables belong to our
//! connection (`NFT_TABLE_F_OWNER`, Linux 5.12), and go with it.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use weir_core::{Dscp, Rate};

use super::root::OURS;
use crate::LinuxError;
use crate::message::Message;
use crate::nft::{
    Expressions, Family, Hook, IPV4, IPV6, NF_INET_FORWARD, NF_INET_INGRESS, NF_INET_LOCAL_OUT,
    NF_NETDEV_INGRESS, NFT_CMP_LTE, NFT_CMP_NEQ, NFT_META_L4PROTO, NFT_META_OIFNAME,
    NFT_META_PRIORITY, Nft, Of, Requests, RuleVerdict, Test,
};

/// Rules for the classes of packets, and the greatest rates of classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelClasses {
    /// The first rule that holds counts; a packet for which none does has the class of its code point.
    pub rules: Vec<KernelRule>,
    /// The code points that are written into packets of the classes, if they are.
    pub mark: Option<[Dscp; 4]>,
    /// The greatest rates, out and in, from bulk to voice.
    pub ceilings: [[Option<Rate>; 4]; 2],
}

/// Conditions of a rule: a packet must meet all of them, and of each list any one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelRule {
    /// Class of the rule's packets, from 0, bulk, to 3, voice.
    pub class: usize,
    /// Numbers of IP protocols.
    pub protocols: Vec<u8>,
    /// Ports of either end, first and last.
    pub ports: Vec<(u16, u16)>,
    /// Networks in which either end is: address and length of the prefix.
    pub hosts: Vec<(IpAddr, u8)>,
    /// Code points that the packet carries.
    pub dscps: Vec<u8>,
    /// Whether a packet must be nothing but an acknowledgement of TCP.
    pub acks: bool,
    /// Whether it is only for packets of the ports of `Table::set_ports`.
    pub by_owner: bool,
}

/// Protocol and port of a socket of this machine.
pub type OwnPort = (u8, u16);

/// The tables of nf_tables with a shaper's rules.
#[derive(Debug)]
pub(super) struct Table {
    name: String,
    nft: Nft,
    /// The ports of each rule that asks for them.
    ports: Vec<BTreeSet<OwnPort>>,
}

/// Scope of the tables: the device, and the packets that they leave alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    pub device: &'a str,
    /// The priority of packets on their way out that are not to be touched, if that way is shaped.
    pub past_out: Option<u32>,
    /// The device that packets are to be sent to on their way in, if that is shaped.
    pub ifb: Option<u32>,
    /// Servers whose packets by UDP are not to be touched.
    pub servers: &'a [IpAddr],
}

impl Table {
    /// Makes both with everything in them, or nothing.
    pub fn create(scope: &Scope<'_>, classes: &KernelClasses) -> Result<Self, LinuxError> {
        let name = table_name(scope.device);
        let nft = Nft::open()?;
        nft.transact(&requests(&name, scope, classes), true).map_err(refused)?;
        Ok(Self { name, nft, ports: vec![BTreeSet::new(); classes.rules.len()] })
    }

    /// Whether the kernel would make them, which it does not do.
    pub fn check(scope: &Scope<'_>, classes: &KernelClasses) -> Result<(), LinuxError> {
        let name = table_name(scope.device);
        Nft::open()?.transact(&requests(&name, scope, classes), false).map_err(refused)
    }

    /// Makes the rule of that number hold for the packets of `ports` from now on.
    pub fn set_ports(&mut self, rule: usize, ports: BTreeSet<OwnPort>) -> Result<(), LinuxError> {
        let before = &self.ports[rule];
        let bytes = |some: Vec<&OwnPort>| some.into_iter().map(element).collect::<Vec<_>>();
        let gone = bytes(before.difference(&ports).collect());
        let new = bytes(ports.difference(before).collect());
        let mut requests = Requests::within(Family::Inet, &self.name);
        for (is_in, values) in [(false, gone), (true, new)] {
            if !values.is_empty() {
                requests.elements(&ports_of(rule), is_in, values.iter().map(|it| &it[..]));
            }
        }
        self.ports[rule] = ports;
        let requests = requests.finish();
        if requests.is_empty() {
            return Ok(());
        }
        let set = self.nft.transact(&requests, true);
        set.map_err(|error| LinuxError::io("the kernel does not take a program's ports", error))
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // They go with the connection in any case; this is sooner. The one that sends packets on goes first.
        for family in [Family::Netdev, Family::Inet] {
            let _ = self.nft.transact(&Requests::removal(family, &self.name).finish(), true);
        }
    }
}

fn table_name(device: &str) -> String {
    format!("weir-shape-{device}")
}

fn refused(error: io::Error) -> LinuxError {
    LinuxError::io(
        "this kernel does not take rules: it needs nf_tables with owners of tables (Linux 5.12) and, for \
         ingress, `fwd`",
        error,
    )
}

fn requests(name: &str, scope: &Scope<'_>, classes: &KernelClasses) -> Vec<Message> {
    let mut all = Requests::new(Family::Inet, name, true);
    for (class, chain) in CLASSES.iter().enumerate() {
        all.chain(chain, None);
        end_in(&mut all, class, chain, classes.mark);
    }
    let entries: Vec<_> = classes
        .rules
        .iter()
        .enumerate()
        .map(|(number, rule)| add_rule(&mut all, number, rule))
        .collect();
    if let Some(past) = scope.past_out {
        for (chain, number) in [("output", NF_INET_LOCAL_OUT), ("forward", NF_INET_FORWARD)] {
            all.chain(chain, Some(Hook { number, priority: OUT_PRIORITY, device: None }));
            let mut device = [0; libc::IFNAMSIZ];
            device[..scope.device.len()].copy_from_slice(scope.device.as_bytes());
            let is_other =
                Test { is: NFT_CMP_NEQ, ..Test::is(Of::Meta(NFT_META_OIFNAME), &device) };
            let is_past = Test::is(Of::Meta(NFT_META_PRIORITY), &past.to_ne_bytes());
            for passes in [is_other, is_past] {
                all.rule(chain, |list| {
                    list.test(&passes);
                    list.verdict(RuleVerdict::Accept);
                });
            }
        }
    }
    if scope.ifb.is_some() {
        let hook =
            Hook { number: NF_INET_INGRESS, priority: IN_PRIORITY, device: Some(scope.device) };
        all.chain("input", Some(hook));
    }
    for entry in entries {
        let places = [
            ("output", scope.past_out.is_some(), Some(entry.out)),
            ("forward", scope.past_out.is_some(), entry.forwarded),
            ("input", scope.ifb.is_some(), Some(entry.input)),
        ];
        for (chain, _, to) in places.into_iter().filter(|place| place.1) {
            if let Some(to) = to {
                all.rule(chain, |list| list.verdict(RuleVerdict::Jump(&to)));
            }
        }
    }
    let mut messages = all.finish();
    if let Some(ifb) = scope.ifb {
        messages.extend(sent_on(name, scope, ifb));
    }
    messages
}

/// Adds the rules that end the way of a class' packets.
fn end_in(all: &mut Requests<'_>, class: usize, chain: &str, mark: Option<[Dscp; 4]>) {
    if let Some(points) = mark {
        let point = points[class].get();
        all.rule(chain, |list| {
            list.test(&Test::is_ip(IPV4));
            // Version and length stay, and so do the two bits of ECN.
            list.set_network([0xff, 0x03], [0, point << 2], Some(IPV4_CHECKSUM));
        });
        let bits = (u16::from(point) << 6).to_be_bytes();
        all.rule(chain, |list| {
            list.test(&Test::is_ip(IPV6));
            list.set_network([0xf0, 0x3f], bits, None);
        });
    }
    all.rule(chain, |list| {
        list.set_meta(NFT_META_PRIORITY, OURS | (class as u32 + 1));
        list.verdict(RuleVerdict::Accept);
    });
}

/// Where the packets of a way go to be judged by a rule.
struct Entry {
    out: String,
    forwarded: Option<String>,
    input: String,
}

/// A rule's conditions, a chain each.
fn add_rule(all: &mut Requests<'_>, number: usize, rule: &KernelRule) -> Entry {
    let conditions = conditions(rule);
    let name = |at: usize| match at < conditions.len() {
        true => format!("rule-{number}-{at}"),
        false => CLASSES[rule.class].to_owned(),
    };
    for at in 0..conditions.len() {
        all.chain(&name(at), None);
    }
    for (at, ways) in conditions.iter().enumerate() {
        for tests in ways {
            all.rule(&name(at), |list| {
                tests.iter().for_each(|test| list.test(test));
                list.verdict(RuleVerdict::Goto(&name(at + 1)));
            });
        }
    }
    if !rule.by_owner {
        return Entry { out: name(0), forwarded: Some(name(0)), input: name(0) };
    }
    let set = ports_of(number);
    all.set(&set, number as u32 + 1, ELEMENT as u32);
    // The near end's port is the source on the way out, and the destination on the way in.
    let [out, input] = [("out", 0), ("in", 2)].map(|(way, offset)| {
        let chain = format!("rule-{number}-{way}");
        all.chain(&chain, None);
        all.rule(&chain, |list| {
            list.is_in(&[Of::Meta(NFT_META_L4PROTO), Of::Transport(offset, 2)], &set);
            list.verdict(RuleVerdict::Goto(&name(0)));
        });
        chain
    });
    Entry { out, forwarded: None, input }
}

/// Packets on their way in go to the `ifb`, but for answers to probes: of pings, and of servers by UDP.
fn sent_on(name: &str, scope: &Scope<'_>, ifb: u32) -> Vec<Message> {
    let mut all = Requests::new(Family::Netdev, name, true);
    let hook =
        Hook { number: NF_NETDEV_INGRESS, priority: ON_PRIORITY, device: Some(scope.device) };
    all.chain("on", Some(hook));
    let mut passes = |tests: &[Test]| {
        all.rule("on", |list| {
            tests.iter().for_each(|test| list.test(test));
            list.verdict(RuleVerdict::Accept);
        });
    };
    for (ip, protocol, kind) in [(IPV4, 1, 0), (IPV6, 58, 129)] {
        passes(&[Test::is_ip(ip), has_protocol(protocol), Test::is(Of::Transport(0, 1), &[kind])]);
    }
    for server in scope.servers {
        let whole = if server.is_ipv4() { 32 } else { 128 };
        let [from, _] = in_network(*server, whole);
        passes(&[vec![has_protocol(UDP)], from].concat());
    }
    all.rule("on", |list: &mut Expressions<'_>| list.forward_to(ifb));
    all.finish()
}

/// All conditions, the ways to meet each, and the tests of each way; whose packet it is apart.
fn conditions(rule: &KernelRule) -> Vec<Vec<Vec<Test>>> {
    let mut all = Vec::new();
    let with_ports = [TCP, UDP].into_iter();
    let protocols: Vec<u8> = match (&rule.protocols[..], rule.ports.is_empty()) {
        (said, true) => said.to_vec(),
        (said, false) => with_ports.filter(|it| said.is_empty() || said.contains(it)).collect(),
    };
    if !rule.protocols.is_empty() || !rule.ports.is_empty() {
        all.push(protocols.into_iter().map(|it| vec![has_protocol(it)]).collect());
    }
    if !rule.dscps.is_empty() {
        all.push(rule.dscps.iter().flat_map(|&point| has_code_point(point)).collect());
    }
    if !rule.ports.is_empty() {
        let either = |&(low, high): &(u16, u16)| {
            [0, 2].map(|at| {
                let [low, high] = [low, high].map(u16::to_be_bytes);
                Test::between(Of::Transport(at, 2), &low, &high)
            })
        };
        all.push(rule.ports.iter().flat_map(either).collect());
    }
    if !rule.hosts.is_empty() {
        all.push(rule.hosts.iter().flat_map(|&(net, bits)| in_network(net, bits)).collect());
    }
    if rule.acks {
        all.extend(is_ack_alone());
    }
    all
}

fn has_protocol(protocol: u8) -> Test {
    Test::is(Of::Meta(NFT_META_L4PROTO), &[protocol])
}

fn has_code_point(point: u8) -> [Vec<Test>; 2] {
    let v6 = (u16::from(point) << 6).to_be_bytes();
    [
        vec![Test::is_ip(IPV4), Test::bits(Of::Network(1, 1), &[0xfc], &[point << 2])],
        vec![Test::is_ip(IPV6), Test::bits(Of::Network(0, 2), &[0x0f, 0xc0], &v6)],
    ]
}

/// Tests that the source is in a network, and that the destination is: one list for each.
fn in_network(address: IpAddr, prefix: u8) -> [Vec<Test>; 2] {
    let (ip, at, bytes) = match address {
        IpAddr::V4(it) => (IPV4, [12, 16], it.octets().to_vec()),
        IpAddr::V6(it) => (IPV6, [8, 24], it.octets().to_vec()),
    };
    let mask: Vec<u8> = (0..bytes.len() as u32)
        .map(|byte| !(0xff_u32 >> (u32::from(prefix).saturating_sub(byte * 8)).min(8)) as u8)
        .collect();
    let network: Vec<u8> = bytes.iter().zip(&mask).map(|(byte, mask)| byte & mask).collect();
    at.map(|at| {
        let end = Of::Network(at, bytes.len() as u32);
        vec![Test::is_ip(ip), Test::bits(end, &mask, &network)]
    })
}

/// Nothing but an acknowledgement: no data, and nothing that begins or ends a connection. Tables cannot
/// subtract, so each length of TCP's header is a way of its own; packets with options of IP are not known.
fn is_ack_alone() -> Vec<Vec<Vec<Test>>> {
    let at_most = |of, most: u16| Test { is: NFT_CMP_LTE, ..Test::is(of, &most.to_be_bytes()) };
    let mut lengths = Vec::new();
    for words in 5..=15_u16 {
        let header = Test::bits(Of::Transport(12, 1), &[0xf0], &[(words << 4) as u8]);
        let whole = Test::is(IPV4_LENGTH, &(IPV4_HEADER + words * 4).to_be_bytes());
        let no_options = Test::is(Of::Network(0, 1), &[0x45]);
        lengths.push(vec![Test::is_ip(IPV4), whole, no_options, header.clone()]);
        let behind = Test::is(IPV6_LENGTH, &(words * 4).to_be_bytes());
        lengths.push(vec![Test::is_ip(IPV6), behind, Test::is(Of::Network(6, 1), &[TCP]), header]);
    }
    vec![
        vec![vec![has_protocol(TCP)]],
        // Most packets are longer than any, and are not asked further.
        vec![
            vec![Test::is_ip(IPV4), at_most(IPV4_LENGTH, IPV4_HEADER + MAX_TCP_HEADER_BYTES)],
            vec![Test::is_ip(IPV6), at_most(IPV6_LENGTH, MAX_TCP_HEADER_BYTES)],
        ],
        // All flags but PSH, ECE and CWR, which an acknowledgement may have.
        vec![vec![Test::bits(Of::Transport(13, 1), &[0x37], &[0x10])]],
        lengths,
    ]
}

fn ports_of(rule: usize) -> String {
    format!("ports-{rule}")
}

/// Each value of a set is filled up to four bytes.
fn element(&(protocol, port): &OwnPort) -> [u8; ELEMENT] {
    let [high, low] = port.to_be_bytes();
    [protocol, 0, 0, 0, high, low, 0, 0]
}

/// The names of the classes, from the least urgent to the most: those of the chains in which their packets end.
pub const CLASSES: [&str; 4] = ["bulk", "best-effort", "video", "voice"];
const ELEMENT: usize = 8;
/// Before addresses are translated on the way out, so that hosts behind this machine are told apart: at
/// postrouting, that is later.
const OUT_PRIORITY: i32 = 90;
/// The class is known before a packet is sent on.
const IN_PRIORITY: i32 = -1;
const ON_PRIORITY: i32 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;
// RFC 791, RFC 8200, RFC 9293
const IPV4_LENGTH: Of = Of::Network(2, 2);
const IPV4_HEADER: u16 = 20;
const IPV4_CHECKSUM: u32 = 10;
const IPV6_LENGTH: Of = Of::Network(4, 2);
const MAX_TCP_HEADER_BYTES: u16 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_masked_as_far_as_they_are_known() {
        let of = |text: &str, prefix| {
            let [source, _] = in_network(text.parse().unwrap(), prefix);
            (source[1].mask.clone(), source[1].value.clone())
        };
        assert_eq!(of("192.0.2.77", 28), (vec![255, 255, 255, 240], vec![192, 0, 2, 64]));
        assert_eq!(of("192.0.2.77", 32), (vec![255; 4], vec![192, 0, 2, 77]));
        assert_eq!(of("192.0.2.77", 0), (vec![0; 4], vec![0; 4]));
        let (mask, network) = of("fd00:ff::1", 9);
        assert_eq!(
            (mask[..3].to_vec(), network[..3].to_vec()),
            (vec![255, 128, 0], vec![0xfd, 0, 0])
        );
    }

    #[test]
    fn of_all_that_is_said_each_is_a_condition_and_of_each_list_every_value_a_way() {
        let rule = KernelRule {
            protocols: vec![1, 17],
            ports: vec![(53, 53), (6881, 6889)],
            dscps: vec![46],
            ..KernelRule::default()
        };
        let conditions = conditions(&rule);
        assert_eq!(conditions.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 4]);
        // ICMP has no ports.
        assert_eq!(conditions[0], [[has_protocol(17)]]);
        assert_eq!(conditions[2][0], [Test::is(Of::Transport(0, 2), &[0, 53])]);
        assert_eq!(conditions[2][3].len(), 2);
        let acks = KernelRule { acks: true, ..KernelRule::default() };
        assert_eq!(
            super::conditions(&acks).iter().map(Vec::len).collect::<Vec<_>>(),
            [1, 2, 1, 22]
        );
    }

    #[test]
    fn a_set_has_protocol_and_port_in_the_packets_order() {
        assert_eq!(element(&(6, 0x1f90)), [6, 0, 0, 0, 0x1f, 0x90, 0, 0]);
    }
}
