//! Requests to the kernel for an `htb` that holds packets back: one class, or below one four tiers or hosts.
//!
//! The tiers are those of `cake diffserv4`, and share a rate that all want as its tins do: bulk, video and
//! voice have 1/16, 1/2 and 1/4 of it first, and best effort has what is left before they have more.
//!
//! Hosts are told apart by the last bits of their addresses: sources of what leaves, destinations of what comes. Each
//! has an equal part of the rate first, which lets a host that wants little go before those that want much; what is
//! left is lent in turns.

use std::ops::Range;

use weir_core::Cells;
use weir_core::{Dscp, Framing, Rate};
use weir_qdisc::{Device, HtbClassParams, Lengths, QueueSpec, diffserv4_shares, diffserv4_tin};

use super::root::{OURS, at_root};
use crate::LinuxError;
use crate::message::{About, CREATE, CREATE_OR_REPLACE, Message};
use crate::tc::filter::{Key, classify};
use crate::tc::rtnetlink::{RTM_NEWTCLASS, new_qdisc, put_kind};
use crate::tc::{options, put_size_table};

/// The `htb` at the root of a device: where it stands, and how it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct HtbRoot {
    /// The device.
    pub index: u32,
    /// Bytes that the kernel counts a packet more than IP does.
    pub header: u32,
    /// Framing by which bytes are counted.
    pub framing: Framing,
    /// The greatest rates of its tiers.
    pub ceilings: [Option<Rate>; 4],
    /// Whether packets come from the line, so that the hosts here are their destinations.
    pub comes: bool,
}

/// Classes of an `htb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HtbClasses {
    /// One.
    Only,
    /// Four tiers by code points, as `cake diffserv4` has them.
    Tiers,
    /// One for the hosts of equal last bits of their addresses.
    Hosts,
}

/// A class, but for how its bytes are counted.
#[derive(Clone, Debug)]
struct Class {
    minor: u32,
    above: u32,
    rate: Rate,
    ceil: Rate,
    prio: u8,
    quantum: u64,
}

/// A request, and the name of what it makes.
pub(super) type Named = (Vec<u8>, &'static str);

impl HtbRoot {
    /// Requests that make the `htb` at the root, with `leaf` beneath its class or each of its tiers.
    ///
    /// It has no rate yet. Packets count as `uncounted` bytes shorter than they are.
    ///
    /// # Errors
    /// If `leaf` cannot be told to a kernel.
    pub fn make(
        self,
        leaf: &QueueSpec,
        classes: HtbClasses,
        uncounted: u32,
    ) -> Result<Vec<Named>, LinuxError> {
        let mut root = at_root(CREATE_OR_REPLACE, self.index, "htb");
        if uncounted > 0 {
            put_size_table(&mut root, uncounted);
        }
        options::put_htb_default(&mut root, classes.default());
        let mut all = vec![(root.finish(), "htb")];
        all.extend(self.rates(classes, None, CREATE).into_iter().map(|class| (class, "htb")));
        for class in classes.leaves() {
            let name = leaf.discipline.name;
            let about = About { index: self.index, handle: 0, parent: OURS | class };
            let mut message = new_qdisc(CREATE, about, name);
            options::put(&mut message, leaf, &Device::default(), 0).map_err(LinuxError::plain)?;
            all.push((message.finish(), name));
        }
        let filters = match classes {
            HtbClasses::Only => Vec::new(),
            HtbClasses::Tiers => self.filters_of_tiers(),
            HtbClasses::Hosts => self.filters_of_hosts(),
        };
        all.extend(filters.into_iter().map(|filter| (filter, "u32")));
        Ok(all)
    }

    /// Requests that make its `classes`, or change their rates for a rate of the whole of `rate`.
    pub fn rates(self, classes: HtbClasses, rate: Option<Rate>, flags: u16) -> Vec<Vec<u8>> {
        let rate = rate.unwrap_or(UNLIMITED);
        let whole = |minor| Class { minor, above: 0, rate, ceil: rate, prio: 0, quantum: QUANTUM };
        let all = match classes {
            HtbClasses::Only => vec![whole(ONLY)],
            HtbClasses::Tiers => [vec![whole(WHOLE)], self.tiers(rate)].concat(),
            HtbClasses::Hosts => [vec![whole(WHOLE)], hosts(rate)].concat(),
        };
        all.into_iter().map(|class| self.class(&class, flags)).collect()
    }

    fn tiers(self, rate: Rate) -> Vec<Class> {
        let each = TIERS.into_iter().zip(guaranteed(rate)).zip(self.ceilings);
        each.map(|((tier, guaranteed), ceiling)| {
            let ceil = ceiling.map_or(rate, |ceiling| ceiling.min(rate));
            // Who goes first within what is guaranteed, and in borrowing what is left.
            let prio = match tier {
                REST => 0,
                tier => TIERS.len() as u8 + 1 - tier as u8,
            };
            let guaranteed = guaranteed.min(ceil);
            Class { minor: tier, above: WHOLE, rate: guaranteed, ceil, prio, quantum: QUANTUM }
        })
        .collect()
    }

    fn class(self, class: &Class, flags: u16) -> Vec<u8> {
        let &Class { minor, above, rate, ceil, prio, quantum } = class;
        let packets_ns = BURST_BYTES * 1_000_000_000 / ceil.as_bytes_per_sec().max(1);
        let cbuffer_ns = BURST_NS.max(packets_ns as i64);
        let params = HtbClassParams {
            rate,
            ceil,
            // A class that is out of what it is guaranteed borrows: a burst of each would be one of all.
            buffer_ns: if above == 0 { cbuffer_ns } else { BURST_NS },
            cbuffer_ns,
            quantum,
            prio,
            lengths: Lengths {
                overhead: self.framing.overhead_bytes - self.header,
                mpu: self.framing.minimum_bytes,
                cells: self.framing.cells == Cells::Atm,
            },
        };
        let about = About { index: self.index, handle: OURS | minor, parent: OURS | above };
        let mut message = Message::new(RTM_NEWTCLASS, flags, about);
        put_kind(&mut message, "htb");
        options::put_htb_class(&mut message, &params, 0);
        message.finish()
    }

    /// Requests for filters that put packets into tiers by their code points; others go into the default tier.
    fn filters_of_tiers(self) -> Vec<Vec<u8>> {
        let about = About { index: self.index, handle: 0, parent: OURS };
        let mut all = Vec::new();
        for (kind, shift) in [(IPV4, IPV4_DSCP), (IPV6, IPV6_DSCP)] {
            for point in 0..64 {
                let tier = TIERS[diffserv4_tin(Dscp::new(point).expect("below 64"))];
                if tier != REST {
                    let key = Key { at: 0, mask: 63 << shift, value: u32::from(point) << shift };
                    all.push(classify(about, kind, &[key], OURS | tier));
                }
            }
        }
        all
    }

    /// Requests for filters that put packets into the classes of their hosts.
    fn filters_of_hosts(self) -> Vec<Vec<u8>> {
        let about = About { index: self.index, handle: 0, parent: OURS };
        let mask = HOSTS.len() as u32 - 1;
        let mut all = Vec::new();
        for (kind, ends) in [(IPV4, IPV4_ADDRESS_ENDS), (IPV6, IPV6_ADDRESS_ENDS)] {
            let at = ends[usize::from(self.comes)];
            for (value, host) in HOSTS.enumerate() {
                let key = Key { at, mask, value: value as u32 };
                all.push(classify(about, kind, &[key], OURS | host));
            }
        }
        all
    }
}

impl HtbClasses {
    /// The class of what no filter names.
    const fn default(self) -> u32 {
        match self {
            Self::Only => ONLY,
            Self::Tiers => REST,
            Self::Hosts => NO_HOST,
        }
    }

    /// The classes that hold packets.
    fn leaves(self) -> Vec<u32> {
        match self {
            Self::Only => vec![ONLY],
            Self::Tiers => TIERS.to_vec(),
            Self::Hosts => HOSTS.chain([NO_HOST]).collect(),
        }
    }
}

/// Classes of hosts, and of what has no address.
fn hosts(rate: Rate) -> Vec<Class> {
    let all = HtbClasses::Hosts.leaves();
    let share = Rate::from_bps(rate.as_bps() / all.len() as u64);
    let class = |minor| Class {
        minor,
        above: WHOLE,
        rate: share,
        ceil: rate,
        prio: 0,
        quantum: HOST_QUANTUM,
    };
    all.into_iter().map(class).collect()
}

/// The rates that tiers are guaranteed. Best effort needs no more than a little: it borrows first, and goes
/// before voice within what it is guaranteed.
fn guaranteed(rate: Rate) -> [Rate; 4] {
    let [bulk, _, video, voice] = diffserv4_shares(rate.as_bps());
    [bulk, bulk, video, voice].map(Rate::from_bps)
}

/// The class where there is one.
const ONLY: u32 = 1;
/// The tiers from below, bulk to voice: the numbers by which `cake diffserv4` knows its tins too.
const TIERS: [u32; 4] = [1, 2, 3, 4];
/// Class of best effort, which takes what no filter names.
const REST: u32 = 2;
/// The class above the tiers.
const WHOLE: u32 = 0x10;
/// The classes of hosts, by the last bits of their addresses.
const HOSTS: Range<u32> = 0x100..0x140;
/// The class of what has no address of a host, such as ARP.
const NO_HOST: u32 = 0x140;
/// The rate of a class that lets everything through: above any device's.
const UNLIMITED: Rate = Rate::from_mbit(400_000);
/// The bucket of a class: what the kernel is late by must be made up for, or the rate is not reached.
const BURST_NS: i64 = 1_000_000;
/// Least size of the bucket of a class, in bytes: two full packets.
const BURST_BYTES: u64 = 2 * 1_538;
/// Bytes of a turn: no two classes of a level are of the same priority.
const QUANTUM: u64 = 60_000;
/// Bytes of a host's turn: four full packets, since what was joined on the way here is not cut up again.
const HOST_QUANTUM: u64 = 4 * 1_514;
/// Preferences and protocols.
const IPV4: (u16, u16) = (1, libc::ETH_P_IP as u16);
const IPV6: (u16, u16) = (2, libc::ETH_P_IPV6 as u16);
/// Where the code point ends in the first four bytes of a packet (RFC 791, RFC 8200).
const IPV4_DSCP: u32 = 18;
const IPV6_DSCP: u32 = 22;

/// The last four bytes of source and destination address, counted from the IP header (RFC 791, RFC 8200).
const IPV4_ADDRESS_ENDS: [u32; 2] = [12, 16];
const IPV6_ADDRESS_ENDS: [u32; 2] = [20, 36];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{attributes, read};
    use crate::tc::rtnetlink::TCA_OPTIONS;

    const ROOT_HTB: HtbRoot = HtbRoot {
        index: 7,
        header: 14,
        framing: Framing::ETHERNET,
        ceilings: [None; 4],
        comes: false,
    };

    fn options(request: &[u8]) -> (About, Vec<u8>) {
        let (about, rest) = read(&request[16..]).unwrap();
        (about, attributes(rest).find(|(kind, _)| *kind == TCA_OPTIONS).unwrap().1.to_vec())
    }

    fn u32_at(bytes: &[u8], at: usize) -> u32 {
        u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn tiers_share_a_rate_as_cakes_tins_do() {
        let told: Vec<_> = ROOT_HTB
            .rates(HtbClasses::Tiers, Some(Rate::from_mbit(8)), 0)
            .iter()
            .map(|class| {
                let (about, options) = options(class);
                let (_, parms) = attributes(&options).next().unwrap();
                let numbers = [8, 20, 40].map(|at| u32_at(parms, at));
                (about.handle & 0xffff, about.parent & 0xffff, numbers)
            })
            .collect();
        assert_eq!(
            told,
            [
                (0x10, 0, [1_000_000, 1_000_000, 0]),
                (1, 0x10, [62_500, 1_000_000, 4]),
                (2, 0x10, [62_500, 1_000_000, 0]),
                (3, 0x10, [500_000, 1_000_000, 2]),
                (4, 0x10, [250_000, 1_000_000, 1]),
            ]
        );
        assert_eq!(ROOT_HTB.rates(HtbClasses::Only, None, 0).len(), 1);
        let capped =
            HtbRoot { ceilings: [Some(Rate::from_kbit(80)), None, None, None], ..ROOT_HTB };
        let (_, bulk) = options(&capped.rates(HtbClasses::Tiers, None, 0)[1]);
        let (_, parms) = attributes(&bulk).last().unwrap();
        assert_eq!([8, 20].map(|at| u32_at(parms, at)), [10_000, 10_000], "of no rate as well");
    }

    // `u32 match ip dsfield 0xb8 0xfc` and `match ip6 priority 0xb8 0xfc`, flowid 7765:4.
    #[test]
    fn code_points_of_both_protocols_go_to_their_tiers() {
        let filters = ROOT_HTB.filters_of_tiers();
        assert_eq!(filters.len(), 2 * 20);
        let told: Vec<_> = filters
            .iter()
            .map(|filter| {
                let (_, options) = options(filter);
                let found: Vec<_> = attributes(&options).collect();
                (u32_at(found[0].1, 0), u32_at(found[1].1, 16), u32_at(found[1].1, 20))
            })
            .collect();
        let voice = OURS | 4;
        assert!(told.contains(&(voice, 0x00fc_0000_u32.to_be(), 0x00b8_0000_u32.to_be())));
        assert!(told.contains(&(voice, 0x0fc0_0000_u32.to_be(), 0x0b80_0000_u32.to_be())));
        let in_tier = |tier: u32| told.iter().filter(|it| it.0 == OURS | tier).count();
        assert_eq!(TIERS.map(in_tier), [4, 0, 24, 12]);
    }

    // `u32 match ip src 0.0.0.11/0.0.0.63` and `match u32 0xb 0x3f at 36`, flowid 7765:10b.
    #[test]
    fn hosts_have_a_class_by_the_end_of_their_address_and_equal_parts() {
        let found = |comes: bool| {
            let filters = HtbRoot { comes, ..ROOT_HTB }.filters_of_hosts();
            let told = filters.iter().map(|filter| {
                let (_, options) = options(filter);
                let found: Vec<_> = attributes(&options).collect();
                (u32_at(found[0].1, 0), [16, 20, 24].map(|at| u32_at(found[1].1, at)))
            });
            told.collect::<Vec<_>>()
        };
        let key = |at: u32| (OURS | 0x10b, [0x3f_u32.to_be(), 11_u32.to_be(), at]);
        for (comes, ends) in [(false, [12, 20]), (true, [16, 36])] {
            let told = found(comes);
            assert_eq!(told.len(), 2 * 64);
            assert!(ends.map(key).iter().all(|key| told.contains(key)), "{told:?}");
        }
        let rate = Some(Rate::from_mbit(52));
        let classes = ROOT_HTB.rates(HtbClasses::Hosts, rate, 0);
        assert_eq!(classes.len(), 1 + 64 + 1);
        for class in &classes[1..] {
            let (about, options) = options(class);
            let (_, parms) = attributes(&options).next().unwrap();
            assert_eq!(about.parent & 0xffff, WHOLE);
            assert_eq!([8, 20].map(|at| u32_at(parms, at)), [100_000, 6_500_000]);
        }
    }
}
