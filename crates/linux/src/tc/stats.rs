//! The kernel's counters of a discipline: include/uapi/linux/gen_stats.h and the `xstats` of each.

use weir_core::Framing;
use weir_qdisc::{DropReason, MarkReason};

use super::rtnetlink::{TCA_KIND, TCA_OPTIONS};
use crate::message::{About, attributes, read};

/// Counts of a discipline or class so far. The kernel's counts are of 32 bits in part, and wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes that left.
    pub bytes: u64,
    /// Packets that left.
    pub packets: u64,
    /// Packets that wait.
    pub waiting_packets: u32,
    /// Bytes that wait.
    pub waiting_bytes: u32,
    /// Packets dropped, whatever for.
    pub drops: u32,
    /// Drops and marks by reason, as far as the discipline tells them apart.
    pub reasons: Reasons,
}

/// Drops and marks by reason so far, in counts of 32 bits, which wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    /// Packets dropped, by [`DropReason`] in its order.
    pub dropped: [u32; DropReason::ALL.len()],
    /// Packets marked, by [`MarkReason`] in its order.
    pub marked: [u32; MarkReason::ALL.len()],
}

/// Subject and counts of an answer to `RTM_GETQDISC` or `RTM_GETTCLASS`.
pub(crate) fn counts_of(body: &[u8]) -> Option<(About, Counts)> {
    let (about, rest) = read(body)?;
    let mut counts = Counts::default();
    let mut kind: &[u8] = b"";
    for (attribute, value) in attributes(rest) {
        match attribute {
            TCA_KIND => kind = value.strip_suffix(b"\0").unwrap_or(value),
            // Options stand in front of statistics.
            TCA_OPTIONS => counts.reasons = Reasons::read_options(kind, value),
            TCA_STATS2 => counts.read(kind, value),
            _ => {}
        }
    }
    if let Some(reason) = reason_of_the_rest(kind) {
        let more = counts.drops_without_reason();
        let of_reason = &mut counts.reasons.dropped[reason as usize];
        *of_reason = of_reason.wrapping_add(more);
    }
    Some((about, counts))
}

impl Counts {
    fn read(&mut self, kind: &[u8], stats: &[u8]) {
        for (attribute, value) in attributes(stats) {
            match attribute {
                TCA_STATS_BASIC => {
                    self.bytes = u64_at(value, 0);
                    self.packets = self.packets.max(u64::from(u32_at(value, 8)));
                }
                TCA_STATS_PKT64 => self.packets = u64_at(value, 0),
                TCA_STATS_QUEUE => {
                    self.waiting_packets = u32_at(value, 0);
                    self.waiting_bytes = u32_at(value, 4);
                    self.drops = u32_at(value, 8);
                }
                TCA_STATS_APP => self.reasons = self.reasons.and(Reasons::read(kind, value)),
                _ => {}
            }
        }
    }

    /// Drops of which no reason is told: none if the reasons were counted before the drops themselves.
    fn drops_without_reason(&self) -> u32 {
        let told = self.reasons.dropped.iter().fold(0, |sum: u32, count| sum.wrapping_add(*count));
        self.drops.wrapping_sub(told).cast_signed().max(0).cast_unsigned()
    }
}

impl Reasons {
    /// Sum of these counts and of `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (count, more) in self.dropped.iter_mut().zip(other.dropped) {
            *count = count.wrapping_add(more);
        }
        for (count, more) in self.marked.iter_mut().zip(other.marked) {
            *count = count.wrapping_add(more);
        }
        self
    }

    /// Packets marked, whatever for.
    #[must_use]
    pub fn marks(&self) -> u32 {
        self.marked.iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// What these drops and marks were for.
    fn of(dropped: &[(DropReason, u32)], marked: &[(MarkReason, u32)]) -> Self {
        let mut counts = Self::default();
        for &(reason, count) in dropped {
            let of = &mut counts.dropped[reason as usize];
            *of = of.wrapping_add(count);
        }
        for &(reason, count) in marked {
            let of = &mut counts.marked[reason as usize];
            *of = of.wrapping_add(count);
        }
        counts
    }

    /// What the statistics of a discipline of that kind say (include/uapi/linux/pkt_sched.h).
    fn read(kind: &[u8], xstats: &[u8]) -> Self {
        let at = |byte| u32_at(xstats, byte);
        let (early, over) = (DropReason::Early, DropReason::Overlimit);
        let (target, threshold) = (MarkReason::TargetExceeded, MarkReason::CeThreshold);
        match kind {
            // struct tc_codel_xstats
            b"codel" => Self::of(&[(over, at(20))], &[(target, at(24)), (threshold, at(32))]),
            // struct tc_fq_codel_xstats, of which the first number says that it is of the discipline
            b"fq_codel" if at(0) == 0 => {
                let memory = (DropReason::Overmemory, at(36));
                let over_limit = at(8).wrapping_sub(memory.1);
                let marks = [(target, at(12)), (threshold, at(28))];
                Self::of(&[(over, over_limit), memory], &marks)
            }
            // struct tc_pie_xstats and tc_fq_pie_xstats, whose drops for a limit are among all
            b"pie" => Self::of(&[(over, at(28))], &[(MarkReason::Early, at(36))]),
            b"fq_pie" => Self::of(&[(over, at(8))], &[(MarkReason::Early, at(16))]),
            // struct tc_red_xstats; drops and marks between the thresholds and above them are one
            b"red" => Self::of(&[(early, at(0))], &[(MarkReason::Early, at(12))]),
            // struct tc_choke_xstats; with each packet drawn its match is dropped
            b"choke" => {
                let matched = (DropReason::SameFlow, at(16).wrapping_mul(2));
                Self::of(&[(early, at(0)), matched], &[(MarkReason::Early, at(12))])
            }
            // struct tc_sfb_xstats
            b"sfb" => {
                let penalty = (DropReason::Penalty, at(4));
                Self::of(&[(early, at(0)), penalty], &[(MarkReason::Early, at(20))])
            }
            // struct tc_fq_qd_stats
            b"fq" => Self::of(&[], &[(threshold, at(80))]),
            b"cake" => {
                let acks = sum_of_tins(xstats, TCA_CAKE_TIN_STATS_ACKS_DROPPED_PACKETS);
                let marks = sum_of_tins(xstats, TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS);
                Self::of(&[(DropReason::AckFiltered, acks)], &[(target, marks)])
            }
            _ => Self::default(),
        }
    }

    /// What the options of a discipline say of its drops: `sfq` counts there (struct tc_sfq_qopt_v1).
    fn read_options(kind: &[u8], options: &[u8]) -> Self {
        let at = |number: usize| u32_at(options, SFQ_RED_STATS + 4 * number);
        if kind != b"sfq" {
            return Self::default();
        }
        let marked = [
            (MarkReason::Early, at(2)),
            (MarkReason::Forced, at(3)),
            (MarkReason::Early, at(4)),
            (MarkReason::Forced, at(5)),
        ];
        Self::of(&[(DropReason::Early, at(0)), (DropReason::Forced, at(1))], &marked)
    }
}

/// Why a discipline of that kind drops the packets of which its statistics do not say it; `None` if a limit was
/// reached. `cake` does not tell what COBALT dropped from what it had no memory for.
fn reason_of_the_rest(kind: &[u8]) -> Option<DropReason> {
    match kind {
        b"codel" | b"fq_codel" | b"cake" => Some(DropReason::TargetExceeded),
        b"pie" | b"fq_pie" => Some(DropReason::Early),
        _ => None,
    }
}

/// A count of all tins of a `cake`.
fn sum_of_tins(xstats: &[u8], count: u16) -> u32 {
    let tins = attributes(xstats).filter(|(what, _)| *what == TCA_CAKE_STATS_TIN_STATS);
    let counts = tins.flat_map(|(_, tins)| attributes(tins)).flat_map(|(_, tin)| attributes(tin));
    let wanted = counts.filter(|(what, _)| *what == count);
    wanted.fold(0, |sum: u32, (_, value)| sum.wrapping_add(u32_at(value, 0)))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |four| u32::from_ne_bytes(four.try_into().expect("four")))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |eight| u64::from_ne_bytes(eight.try_into().expect("eight")))
}

/// Bytes of the line that so many packets occupied, counted with `header` bytes more than IP's each and taken
/// to be of one size: exact where a framing has neither cells nor a least length.
#[must_use]
pub fn wire_bytes(framing: Framing, header: u32, packets: u64, bytes: u64) -> u64 {
    if packets == 0 {
        return 0;
    }
    if framing.minimum_bytes == 0 && framing.cells == weir_core::Cells::None {
        let framed = bytes + packets * u64::from(framing.overhead_bytes);
        return framed.saturating_sub(packets * u64::from(header));
    }
    let mean = (bytes / packets).saturating_sub(u64::from(header));
    packets * framing.wire_bytes(mean as u32)
}

const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;
const TCA_CAKE_STATS_TIN_STATS: u16 = 10;
const TCA_CAKE_TIN_STATS_ACKS_DROPPED_PACKETS: u16 = 6;
const TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS: u16 = 8;
/// Where `struct tc_sfqred_stats` begins in an `sfq`'s options.
const SFQ_RED_STATS: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    #[test]
    fn statistics_say_why() {
        let numbers = |count: u32| (1..=count).flat_map(u32::to_ne_bytes).collect::<Vec<u8>>();
        let of = |kind: &[u8]| Reasons::read(kind, &numbers(30));
        let dropped = |counts: &Reasons, reason: DropReason| counts.dropped[reason as usize];
        let pie = of(b"pie");
        assert_eq!((dropped(&pie, DropReason::Overlimit), pie.marks()), (8, 10));
        let choke = of(b"choke");
        assert_eq!((dropped(&choke, DropReason::Early), choke.marks()), (1, 4));
        assert_eq!(dropped(&choke, DropReason::SameFlow), 10);
        assert_eq!(of(b"fq").marked[MarkReason::CeThreshold as usize], 21);
        let sfq = Reasons::read_options(b"sfq", &numbers(18));
        assert_eq!((dropped(&sfq, DropReason::Early), dropped(&sfq, DropReason::Forced)), (13, 14));
        assert_eq!(sfq.marks(), 15 + 16 + 17 + 18);
        assert_eq!(Reasons::read(b"pfifo", &numbers(30)), Reasons::default());
    }

    /// So that the drops of a `pfifo` beside an `fq_codel` are not taken for those of CoDel.
    #[test]
    fn drops_without_a_reason_are_those_of_their_own_discipline() {
        let drops_of = |kind: &str, drops: u32, xstats: &[u32]| {
            let mut message = Message::new(0, 0, About { index: 1, handle: 0, parent: 0 });
            message.put(TCA_KIND, format!("{kind}\0").as_bytes());
            message.nest(TCA_STATS2, |stats| {
                let bytes: Vec<u8> = xstats.iter().copied().flat_map(u32::to_ne_bytes).collect();
                stats.put(TCA_STATS_APP, &bytes);
                stats.put(TCA_STATS_QUEUE, &[0, 0, drops, 0, 0].map(u32::to_ne_bytes).concat());
            });
            let (_, counts) = counts_of(&message.finish()[16..]).unwrap();
            let Reasons { dropped, .. } = counts.reasons;
            [DropReason::Overlimit, DropReason::TargetExceeded, DropReason::Early]
                .map(|reason| dropped[reason as usize])
        };
        let fq_codel = [0, 1514, 3, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(drops_of("pfifo", 9, &[]), [0, 0, 0], "its limit is the reason of all");
        assert_eq!(drops_of("fq_codel", 9, &fq_codel), [3, 6, 0]);
        assert_eq!(drops_of("fq_codel", 2, &fq_codel), [3, 0, 0], "counted too early");
        assert_eq!(drops_of("pie", 9, &[0, 0, 0, 0, 0, 0, 0, 4]), [4, 0, 5]);
    }

    #[test]
    fn bytes_of_the_line() {
        assert_eq!(wire_bytes(Framing::NONE, 14, 2, 2 * 1514), 2 * 1500);
        assert_eq!(wire_bytes(Framing::NONE, 0, 2, 2 * 1500), 2 * 1500);
        assert_eq!(wire_bytes(Framing::DOCSIS, 14, 2, 2 * 1514), 2 * 1518);
        assert_eq!(wire_bytes(Framing::ATM, 14, 3, 3 * 66), 3 * 2 * 53);
        assert_eq!(wire_bytes(Framing::ATM, 14, 0, 0), 0);
    }
}
