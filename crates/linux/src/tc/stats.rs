//! The kernel's counters of a discipline: include/uapi/linux/gen_stats.h and the `xstats` of each.

use weir_core::Framing;

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
    /// Counts of CoDel, where there is one.
    pub codel: CodelCounts,
}

/// Counts that only CoDel has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodelCounts {
    /// Whether there is one: then drops for other reasons are its own.
    pub drops_itself: bool,
    /// Dropped because a limit in packets was reached.
    pub over_limit: u32,
    /// Packets dropped because of the limit of memory, which [`over_limit`](Self::over_limit) includes.
    pub over_memory: u32,
    /// Packets marked.
    pub marks: u32,
    /// Packets marked because of `ce_threshold`.
    pub threshold_marks: u32,
}

/// Subject and counts of an answer to `RTM_GETQDISC` or `RTM_GETTCLASS`.
pub(crate) fn counts_of(body: &[u8]) -> Option<(About, Counts)> {
    let (about, rest) = read(body)?;
    let mut counts = Counts::default();
    let mut kind: &[u8] = b"";
    for (attribute, value) in attributes(rest) {
        match attribute {
            TCA_KIND => kind = value.strip_suffix(b"\0").unwrap_or(value),
            TCA_STATS2 => counts.read(kind, value),
            _ => {}
        }
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
                TCA_STATS_APP => self.codel = CodelCounts::read(kind, value),
                _ => {}
            }
        }
    }
}

impl CodelCounts {
    /// Sum of these counts and of `other`.
    pub const fn and(self, other: Self) -> Self {
        Self {
            drops_itself: self.drops_itself || other.drops_itself,
            over_limit: self.over_limit.wrapping_add(other.over_limit),
            over_memory: self.over_memory.wrapping_add(other.over_memory),
            marks: self.marks.wrapping_add(other.marks),
            threshold_marks: self.threshold_marks.wrapping_add(other.threshold_marks),
        }
    }

    fn read(kind: &[u8], xstats: &[u8]) -> Self {
        match kind {
            // struct tc_codel_xstats
            b"codel" => Self {
                drops_itself: true,
                over_limit: u32_at(xstats, 20),
                over_memory: 0,
                marks: u32_at(xstats, 24),
                threshold_marks: u32_at(xstats, 32),
            },
            // struct tc_fq_codel_xstats, of which the first number says that it is of the discipline
            b"fq_codel" if u32_at(xstats, 0) == 0 => Self {
                drops_itself: true,
                over_limit: u32_at(xstats, 8),
                over_memory: u32_at(xstats, 36),
                marks: u32_at(xstats, 12),
                threshold_marks: u32_at(xstats, 28),
            },
            b"cake" => {
                let tins = attributes(xstats).filter(|(what, _)| *what == TCA_CAKE_STATS_TIN_STATS);
                let tins = tins.flat_map(|(_, tins)| attributes(tins));
                let counts = tins.flat_map(|(_, tin)| attributes(tin));
                let marks =
                    counts.filter(|(what, _)| *what == TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS);
                Self { marks: marks.map(|(_, count)| u32_at(count, 0)).sum(), ..Self::default() }
            }
            _ => Self::default(),
        }
    }
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

const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;
const TCA_CAKE_STATS_TIN_STATS: u16 = 10;
const TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS: u16 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_the_line() {
        assert_eq!(wire_bytes(Framing::NONE, 14, 2, 2 * 1514), 2 * 1500);
        assert_eq!(wire_bytes(Framing::NONE, 0, 2, 2 * 1500), 2 * 1500);
        assert_eq!(wire_bytes(Framing::DOCSIS, 14, 2, 2 * 1514), 2 * 1518);
        assert_eq!(wire_bytes(Framing::ATM, 14, 3, 3 * 66), 3 * 2 * 53);
        assert_eq!(wire_bytes(Framing::ATM, 14, 0, 0), 0);
    }
}
