//! Requests to the kernel for an `htb` that holds packets back: one class, or four tiers below one.
//!
//! The tiers are those of `cake diffserv4`, and share a rate that all want as its tins do: bulk, video and
//! voice have 1/16, 1/2 and 1/4 of it first, and best effort has what is left before they have more.

use weir_core::Cells;
use weir_core::{Dscp, Framing, Rate};
use weir_qdisc::{Device, HtbClassParams, Lengths, SetUp, diffserv4_shares, diffserv4_tin};

use super::filter::{Key, classify};
use super::queue::new_qdisc;
use super::{CREATE, OURS};
use crate::LinuxError;
use crate::message::{About, Message};
use crate::tc::{RTM_NEWQDISC, RTM_NEWTCLASS, options, put_kind, put_size_table};

/// Where an `htb` stands, and how it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The device.
    pub index: u32,
    /// Bytes that the kernel counts a packet more than IP does.
    pub header: u32,
    /// Framing by which bytes are counted.
    pub framing: Framing,
    /// The greatest rates of its tiers.
    pub ceilings: [Option<Rate>; 4],
}

/// A request, and the name of what it makes.
pub(super) type Named = (Vec<u8>, &'static str);

impl Place {
    /// Requests that make the `htb` at the root, with `leaf` beneath its class or each of its tiers.
    ///
    /// It has no rate yet. Packets count as `uncounted` bytes shorter than they are.
    ///
    /// # Errors
    /// If `leaf` cannot be told to a kernel.
    pub fn make(self, leaf: &SetUp, tiers: bool, uncounted: u32) -> Result<Vec<Named>, LinuxError> {
        let mut root = new_qdisc(self.index, "htb");
        if uncounted > 0 {
            put_size_table(&mut root, uncounted);
        }
        options::put_htb_default(&mut root, if tiers { REST } else { ONLY });
        let mut all = vec![(root.finish(), "htb")];
        all.extend(self.rates(tiers, None, CREATE).into_iter().map(|class| (class, "htb")));
        for class in if tiers { TIERS.to_vec() } else { vec![ONLY] } {
            let name = leaf.discipline.name;
            let about = About { index: self.index, handle: 0, parent: OURS | class };
            let mut message = Message::new(RTM_NEWQDISC, CREATE, about);
            put_kind(&mut message, name);
            options::put(&mut message, leaf, &Device::default(), 0).map_err(LinuxError::plain)?;
            all.push((message.finish(), name));
        }
        if tiers {
            all.extend(self.filters().into_iter().map(|filter| (filter, "u32")));
        }
        Ok(all)
    }

    /// Requests that make its classes, or change their rates for a rate of the whole of `rate`.
    pub fn rates(self, tiers: bool, rate: Option<Rate>, flags: u16) -> Vec<Vec<u8>> {
        let rate = rate.unwrap_or(UNLIMITED);
        if !tiers {
            return vec![self.class([ONLY, 0], [rate; 2], 0, flags)];
        }
        let mut all = vec![self.class([WHOLE, 0], [rate; 2], 0, flags)];
        let each = TIERS.into_iter().zip(guaranteed(rate)).zip(self.ceilings);
        for ((tier, guaranteed), ceiling) in each {
            let ceil = ceiling.map_or(rate, |ceiling| ceiling.min(rate));
            // Who goes first within what is guaranteed, and in borrowing what is left.
            let prio = match tier {
                REST => 0,
                tier => TIERS.len() as u32 + 1 - tier,
            };
            all.push(self.class([tier, WHOLE], [guaranteed.min(ceil), ceil], prio as u8, flags));
        }
        all
    }

    fn class(self, [minor, above]: [u32; 2], rates: [Rate; 2], prio: u8, flags: u16) -> Vec<u8> {
        let [rate, ceil] = rates;
        let packets_ns = BURST_BYTES * 1_000_000_000 / ceil.as_bytes_per_sec().max(1);
        let cbuffer_ns = BURST_NS.max(packets_ns as i64);
        let params = HtbClassParams {
            rate,
            ceil,
            // A tier that is out of what it is guaranteed borrows: a burst of each would be one of all.
            buffer_ns: if above == 0 { cbuffer_ns } else { BURST_NS },
            cbuffer_ns,
            quantum: QUANTUM,
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
    fn filters(self) -> Vec<Vec<u8>> {
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
/// The rate of a class that lets everything through: above any device's.
const UNLIMITED: Rate = Rate::from_mbit(400_000);
/// The bucket of a class: what the kernel is late by must be made up for, or the rate is not reached.
const BURST_NS: i64 = 1_000_000;
/// Least size of the bucket of a class, in bytes: two full packets.
const BURST_BYTES: u64 = 2 * 1_538;
/// Bytes of a turn: no two classes of a level are of the same priority.
const QUANTUM: u64 = 60_000;
/// Preferences and protocols.
const IPV4: (u16, u16) = (1, libc::ETH_P_IP as u16);
const IPV6: (u16, u16) = (2, libc::ETH_P_IPV6 as u16);
/// Where the code point ends in the first four bytes of a packet (RFC 791, RFC 8200).
const IPV4_DSCP: u32 = 18;
const IPV6_DSCP: u32 = 22;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{attributes, read};
    use crate::tc::options::TCA_OPTIONS;

    const PLACE: Place =
        Place { index: 7, header: 14, framing: Framing::ETHERNET, ceilings: [None; 4] };

    fn options(request: &[u8]) -> (About, Vec<u8>) {
        let (about, rest) = read(&request[16..]).unwrap();
        (about, attributes(rest).find(|(kind, _)| *kind == TCA_OPTIONS).unwrap().1.to_vec())
    }

    fn u32_at(bytes: &[u8], at: usize) -> u32 {
        u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn tiers_share_a_rate_as_cakes_tins_do() {
        let told: Vec<_> = PLACE
            .rates(true, Some(Rate::from_mbit(8)), 0)
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
        assert_eq!(PLACE.rates(false, None, 0).len(), 1);
        let capped = Place { ceilings: [Some(Rate::from_kbit(80)), None, None, None], ..PLACE };
        let (_, bulk) = options(&capped.rates(true, None, 0)[1]);
        let (_, parms) = attributes(&bulk).last().unwrap();
        assert_eq!([8, 20].map(|at| u32_at(parms, at)), [10_000, 10_000], "of no rate as well");
    }

    // `u32 match ip dsfield 0xb8 0xfc` and `match ip6 priority 0xb8 0xfc`, flowid 7765:4.
    #[test]
    fn code_points_of_both_protocols_go_to_their_tiers() {
        let filters = PLACE.filters();
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
}
