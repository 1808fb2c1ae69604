//! `ack-filter`: acknowledgements that a later one makes superfluous leave the queue.
//!
//! TCP acknowledges cumulatively, so that of several acknowledgements in one queue the last says it all
//! (RFC 3449, section 5.2.1), unless one of them carries something of its own. The rules are those of
//! `cake_ack_filter` in Linux' `sch_cake.c`: the packet to go must be a pure ACK of the same 5-tuple,
//! with no option that would be missed, that neither its acknowledgement number, its SACK ranges, its
//! timestamps nor a change of ECN echo tells anything that the newcomer does not.

use weir_core::{Packet, TcpFlags, TcpHeader, comes_before};

use crate::contract::Fates;
use crate::pool::{Cursor, List, Pool};

/// How much is filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckFilter {
    Off,
    /// Two superfluous acknowledgements must be there for one to go, so that a sender which counts them
    /// goes on.
    On,
    /// One is enough if it is right in front of the newcomer.
    Aggressive,
}

impl AckFilter {
    /// Takes the packet out of `list` that the last packet of it, `newest`, makes superfluous.
    pub fn apply(
        self,
        pool: &mut Pool,
        list: &mut List,
        newest: &Packet,
        fates: &dyn Fates,
    ) -> Option<Packet> {
        if self == Self::Off || list.is_single() {
            return None;
        }
        let place = self.find(pool, list, newest, fates)?;
        Some(pool.remove(list, place))
    }

    fn find(self, pool: &Pool, list: &List, newest: &Packet, fates: &dyn Fates) -> Option<Cursor> {
        let new = fates.tcp_header(newest)?;
        if new.flags.only(TcpFlags::ACK.with(TcpFlags::SYN)) != TcpFlags::ACK {
            return None;
        }
        // The first packet that may go, its ECN flags, and whether it is right in front of the newest.
        let mut found: Option<(Cursor, TcpFlags)> = None;
        let mut adjacent = false;
        for (place, packet) in pool.iter(list).take_while(|(place, _)| !list.ends_at(place)) {
            adjacent = false;
            // What is too long to be a pure ACK can only tell of a change of flags.
            let matters = packet.len <= LONGEST_ACK || found.is_some();
            if packet.label != newest.label || !matters {
                continue;
            }
            let Some(old) = fates.tcp_header(packet) else { continue };
            let echo = old.flags.only(ECHO);
            // The change of the flags from one packet to the next is what ECN tells.
            found = found.filter(|&(_, flags)| flags == echo);
            if !is_superfluous(&old, &new) {
                continue;
            }
            match found {
                Some((first, _)) => return Some(first),
                None => {
                    found = Some((place, echo));
                    adjacent = true;
                }
            }
        }
        let (place, flags) = found?;
        let same_echo = flags == new.flags.only(ECHO);
        (self == Self::Aggressive && adjacent && same_echo).then_some(place)
    }
}

/// Whether `old` is a pure ACK that says nothing beyond `new`.
fn is_superfluous(old: &TcpHeader, new: &TcpHeader) -> bool {
    if old.flags.without(ECHO) != TcpFlags::ACK || old.payload > 0 || old.other_options {
        return false;
    }
    // Where the newcomer has no timestamps Linux compares with 0.
    let (value, echo) = new.timestamps.unwrap_or_default();
    let newer =
        |(old_value, old_echo)| comes_before(value, old_value) || comes_before(echo, old_echo);
    if old.timestamps.is_some_and(newer) || comes_before(new.ack, old.ack) {
        return false;
    }
    match compare_sack(old, new) {
        Sack::Lost => false,
        Sack::Same => old.ack != new.ack,
        Sack::More => true,
    }
}

/// What a newer header's SACK ranges are to an older one's.
#[derive(PartialEq, Eq)]
enum Sack {
    /// Something would be lost.
    Lost,
    Same,
    /// It covers all of the older one's and more.
    More,
}

fn compare_sack(old: &TcpHeader, new: &TcpHeader) -> Sack {
    let (old_ranges, new_ranges) = (old.sack.as_slice(), new.sack.as_slice());
    if old_ranges.is_empty() {
        return if new_ranges.is_empty() { Sack::Same } else { Sack::More };
    }
    for &(start, end) in old_ranges {
        // A range below the acknowledgement reports a duplicate (RFC 2883); nobody will repeat it.
        let is_duplicate = comes_before(start, old.ack);
        let covers =
            |&(from, to): &(u32, u32)| !comes_before(start, from) && !comes_before(to, end);
        if is_duplicate || !new_ranges.iter().any(covers) {
            return Sack::Lost;
        }
    }
    let bytes = |ranges: &[(u32, u32)]| -> u32 {
        ranges.iter().fold(0, |sum, (start, end)| sum.wrapping_add(end.wrapping_sub(*start)))
    };
    if bytes(new_ranges) > bytes(old_ranges) { Sack::More } else { Sack::Same }
}

/// The flags that ECN uses (RFC 3168).
const ECHO: TcpFlags = TcpFlags::ECE.with(TcpFlags::CWR);

/// Bytes of the longest packet without data: Ethernet, and the longest headers of IPv4 and TCP.
const LONGEST_ACK: u32 = weir_core::ETHERNET_HEADER + 60 + 60;
