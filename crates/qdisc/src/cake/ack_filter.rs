//! `ack-filter`: acknowledgements that a later one makes superfluous leave the queue.
//!
//! TCP acknowledges cumulatively, so that of several acknowledgements in one queue the last says it all
//! (RFC 3449, section 5.2.1), unless one of them carries something of its own. The rules are those of
//! `cake_ack_filter` in Linux' `sch_cake.c`: the packet to go must be a pure ACK of the same 5-tuple,
//! with no option that would be missed, that neither its acknowledgement number, its SACK ranges, its
//! timestamps nor a change of ECN echo tells anything that the newcomer does not.

use weir_core::{Packet, TcpFlags, TcpHeader, comes_before};

use crate::contract::DropSink;
use crate::pool::{Cursor, List, Pool};

/// How much `cake` filters acknowledgements, in the order of the kernel's numbers (include/uapi/linux/pkt_sched.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckFilter {
    /// Nothing.
    Off,
    /// Two superfluous acknowledgements must be there for one to go, so that a sender which counts them
    /// goes on.
    On,
    /// One is enough if it is right in front of the newcomer.
    Aggressive,
}

impl AckFilter {
    /// Takes the packet out of `list` that the last packet of it, `newest`, makes superfluous.
    pub(super) fn apply(
        self,
        pool: &mut Pool,
        list: &mut List,
        newest: &Packet,
        sink: &dyn DropSink,
    ) -> Option<Packet> {
        if self == Self::Off || list.is_single() {
            return None;
        }
        let place = self.find(pool, list, newest, sink)?;
        Some(pool.remove(list, place))
    }

    fn find(
        self,
        pool: &Pool,
        list: &List,
        newest: &Packet,
        sink: &dyn DropSink,
    ) -> Option<Cursor> {
        let new = sink.tcp_header(newest)?;
        if new.flags.only(TcpFlags::ACK.with(TcpFlags::SYN)) != TcpFlags::ACK {
            return None;
        }
        // The first packet that may go, its ECN flags, and whether it is right in front of the newest.
        let mut found: Option<(Cursor, TcpFlags)> = None;
        let mut adjacent = false;
        for (place, packet) in pool.iter(list).take_while(|(place, _)| !list.ends_at(place)) {
            adjacent = false;
            // What is too long to be a pure ACK can only tell of a change of flags.
            let matters = packet.len <= MAX_ACK_BYTES || found.is_some();
            if packet.label != newest.label || !matters {
                continue;
            }
            let Some(old) = sink.tcp_header(packet) else { continue };
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

/// Relation of a newer header's SACK ranges to those of an older one.
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
const MAX_ACK_BYTES: u32 = weir_core::ETHERNET_HEADER + 60 + 60;

#[cfg(test)]
mod tests {
    use weir_core::{Dscp, Ecn, FlowLabel, Protocol, SackRanges, Time};

    use super::*;
    use crate::contract::{DropReason, MarkReason};

    /// A queue of TCP packets, whose handles are places in a list of headers.
    #[derive(Default)]
    struct Bench {
        headers: Headers,
        pool: Pool,
        list: List,
    }

    #[derive(Default)]
    struct Headers(Vec<Option<TcpHeader>>);

    impl DropSink for Headers {
        fn on_drop(&mut self, _: Packet, _: DropReason) {}
        fn on_mark(&mut self, _: &Packet, _: MarkReason) {}
        fn tcp_header(&self, packet: &Packet) -> Option<TcpHeader> {
            self.0[packet.handle as usize]
        }
    }

    impl Bench {
        fn of(headers: &[TcpHeader]) -> Self {
            let mut bench = Self::default();
            for &header in headers {
                bench.push(Some(header), 1);
            }
            bench
        }

        fn push(&mut self, header: Option<TcpHeader>, port: u16) -> Packet {
            let payload = header.map_or(0, |header| header.payload);
            let packet = Packet {
                handle: self.headers.0.len() as u64,
                enqueued_at: Time::ZERO,
                label: FlowLabel { sport: port, protocol: Protocol::TCP, ..FlowLabel::default() },
                len: 66 + payload,
                flow_id: 0,
                dscp: Dscp::BE,
                ecn: Ecn::NotEct,
            };
            self.headers.0.push(header);
            self.pool.push(&mut self.list, &packet);
            packet
        }

        /// The packet to drop when one with `header` is appended, if there is one.
        fn goes(&mut self, filter: AckFilter, header: TcpHeader) -> Option<u64> {
            let packet = self.push(Some(header), 1);
            let gone = filter.apply(&mut self.pool, &mut self.list, &packet, &self.headers);
            gone.map(|ack| ack.handle)
        }

        fn left(&self) -> Vec<u64> {
            self.pool.iter(&self.list).map(|(_, packet)| packet.handle).collect()
        }
    }

    fn ack(number: u32) -> TcpHeader {
        TcpHeader { ack: number, flags: TcpFlags::ACK, ..TcpHeader::default() }
    }

    fn sack(number: u32, ranges: &[(u32, u32)]) -> TcpHeader {
        let mut sack = SackRanges::default();
        for &(start, end) in ranges {
            sack.push(start, end);
        }
        TcpHeader { sack, ..ack(number) }
    }

    fn echo(number: u32, flags: TcpFlags) -> TcpHeader {
        TcpHeader { flags: TcpFlags::ACK.with(flags), ..ack(number) }
    }

    fn stamped(number: u32, value: u32, echo: u32) -> TcpHeader {
        TcpHeader { timestamps: Some((value, echo)), ..ack(number) }
    }

    /// Whether `old` and a packet like it go when `new` comes: by the mild filter, which needs both.
    fn yields(old: TcpHeader, new: TcpHeader) -> bool {
        Bench::of(&[old, old]).goes(AckFilter::On, new) == Some(0)
    }

    #[test]
    fn the_mild_filter_leaves_one_and_takes_the_oldest() {
        let mut bench = Bench::of(&[ack(10)]);
        assert_eq!(bench.goes(AckFilter::On, ack(20)), None, "two must be superfluous");
        assert_eq!(bench.goes(AckFilter::On, ack(30)), Some(0));
        assert_eq!(bench.goes(AckFilter::On, ack(40)), Some(1));
        assert_eq!(bench.left(), [2, 3]);
        assert_eq!(bench.goes(AckFilter::Off, ack(50)), None);
    }

    #[test]
    fn the_aggressive_filter_takes_the_one_in_front() {
        let mut bench = Bench::of(&[ack(10)]);
        assert_eq!(bench.goes(AckFilter::Aggressive, ack(20)), Some(0));
        assert_eq!(bench.left(), [1]);
        // Not if something stands between.
        bench.push(None, 2);
        assert_eq!(bench.goes(AckFilter::Aggressive, ack(30)), None);
        assert_eq!(bench.goes(AckFilter::Aggressive, ack(40)), Some(1));
        assert_eq!(bench.left(), [2, 3, 4]);
    }

    #[test]
    fn duplicate_acknowledgements_stay() {
        assert!(yields(ack(10), ack(11)));
        assert!(!yields(ack(10), ack(10)), "the sender counts them");
        assert!(!yields(ack(11), ack(10)), "an older one comes late");
        assert!(yields(ack(u32::MAX - 5), ack(5)), "numbers wrap");
    }

    #[test]
    fn only_pure_acknowledgements_go() {
        assert!(!yields(TcpHeader { payload: 1, ..ack(10) }, ack(20)));
        assert!(!yields(echo(10, TcpFlags::PSH), ack(20)));
        assert!(!yields(echo(10, TcpFlags::SYN), ack(20)));
        assert!(!yields(TcpHeader { flags: TcpFlags::default(), ..ack(10) }, ack(20)));
        assert!(!yields(TcpHeader { other_options: true, ..ack(10) }, ack(20)));
        let reserved = TcpHeader { flags: TcpFlags::new(0x110), ..ack(10) };
        assert!(!yields(reserved, ack(20)), "a bit that only the future knows");
    }

    #[test]
    fn data_that_acknowledges_makes_older_acknowledgements_superfluous() {
        assert!(yields(ack(10), TcpHeader { payload: 1448, ..ack(20) }));
        assert!(yields(ack(10), echo(20, TcpFlags::PSH)));
        assert!(!yields(ack(10), echo(20, TcpFlags::SYN)), "a new connection");
        assert!(!yields(ack(10), TcpHeader { flags: TcpFlags::default(), ..ack(20) }));
    }

    #[test]
    fn sack_ranges_must_be_covered() {
        assert!(yields(ack(10), sack(10, &[(20, 30)])), "the same number, but more is known");
        assert!(!yields(sack(10, &[(20, 30)]), ack(15)), "the range would be lost");
        assert!(!yields(sack(10, &[(20, 30)]), ack(40)), "Linux keeps it even then");
        assert!(yields(sack(10, &[(20, 30)]), sack(10, &[(20, 31)])));
        assert!(!yields(sack(10, &[(20, 30)]), sack(10, &[(20, 30)])), "a duplicate");
        assert!(yields(sack(10, &[(20, 30)]), sack(11, &[(20, 30)])));
        assert!(!yields(sack(10, &[(20, 30)]), sack(11, &[(21, 50)])), "20 is lost");
        assert!(!yields(sack(10, &[(20, 30), (40, 50)]), sack(11, &[(20, 30)])));
        assert!(yields(sack(10, &[(40, 50), (20, 30)]), sack(11, &[(20, 30), (40, 50)])));
        assert!(yields(sack(10, &[(40, 50), (20, 30)]), sack(11, &[(20, 50)])));
    }

    #[test]
    fn a_report_of_a_duplicate_stays() {
        let duplicate = sack(10, &[(4, 5)]);
        assert!(!yields(duplicate, ack(20)));
        assert!(!yields(duplicate, sack(20, &[(4, 5)])), "nobody repeats it");
        assert!(yields(ack(10), sack(20, &[(4, 5)])), "but it may follow");
    }

    #[test]
    fn timestamps_must_not_go_back() {
        assert!(yields(stamped(10, 7, 3), stamped(20, 7, 3)));
        assert!(yields(stamped(10, 7, 3), stamped(20, 8, 4)));
        assert!(!yields(stamped(10, 8, 3), stamped(20, 7, 3)));
        assert!(!yields(stamped(10, 7, 4), stamped(20, 7, 3)));
        assert!(!yields(stamped(10, 7, 3), ack(20)), "without any, they count as 0");
        assert!(yields(ack(10), stamped(20, 7, 3)));
    }

    #[test]
    fn a_change_of_the_ecn_echo_is_kept() {
        let ece = TcpFlags::ECE;
        // A run of the same flags is filtered, whatever the newcomer has.
        let mut same = Bench::of(&[echo(10, ece), echo(11, ece)]);
        assert_eq!(same.goes(AckFilter::On, ack(20)), Some(0));
        // The last packet before a change stays; the search goes on behind it.
        let mut changing = Bench::of(&[ack(10), echo(11, ece), ack(12)]);
        assert_eq!(changing.goes(AckFilter::On, ack(20)), None);
        let mut later = Bench::of(&[ack(10), echo(11, ece), echo(12, ece)]);
        assert_eq!(later.goes(AckFilter::On, ack(20)), Some(1));
        // Data of the same connection changes them too.
        let data = TcpHeader { payload: 1448, ..echo(5, TcpFlags::CWR) };
        let mut window = Bench::of(&[ack(10), data, ack(12)]);
        assert_eq!(window.goes(AckFilter::On, ack(20)), None);
        let mut bench = Bench::of(&[ack(10)]);
        assert_eq!(bench.goes(AckFilter::Aggressive, echo(20, ece)), None);
        assert_eq!(Bench::of(&[ack(10)]).goes(AckFilter::Aggressive, ack(20)), Some(0));
    }

    #[test]
    fn other_connections_are_passed_over() {
        let mut bench = Bench::default();
        bench.push(Some(ack(10)), 2);
        bench.push(Some(ack(11)), 1);
        bench.push(None, 1);
        bench.push(Some(ack(12)), 2);
        bench.push(Some(ack(13)), 1);
        assert_eq!(bench.goes(AckFilter::On, ack(20)), Some(1));
        assert_eq!(bench.left(), [0, 2, 3, 4, 5]);
    }

    #[test]
    fn nothing_goes_without_headers() {
        let mut bench = Bench::default();
        for _ in 0..3 {
            bench.push(None, 1);
        }
        let packet = bench.push(None, 1);
        let gone = AckFilter::On.apply(&mut bench.pool, &mut bench.list, &packet, &bench.headers);
        assert_eq!(gone, None);
    }
}
