//! Packets of a device, held back by the kernel until this process says what becomes of each.
//!
//! ```text
//! out: local or forwarded ─> postrouting, device D ─> queue of this process ─> D's own queue ─> line
//! in:  line ─> D ─> prerouting, device D ─> queue of this process ─> local or forwarded
//! ```
//!
//! A table of nf_tables of our own hands the packets to NFQUEUE. Nothing that was there is changed, so that
//! restoring is removing. A [guard](crate::guard) makes the table, removes it while this process stands still
//! or once it has ended, however it did, and makes it again; where both are killed the kernel removes it,
//! since it belongs to the guard's socket (`NFT_TABLE_F_OWNER`, Linux 5.12). On older kernels it then stays,
//! and lets everything pass where nobody listens (`NFQ_FLAG_BYPASS`), until [`Intercept::heal`] removes it.
//!
//! Each way has several queues, which come by the same socket and so in one order. A packet that may be written into
//! is copied to this process whole, and GSO packets are cut first, since the kernel would not take one back
//! with other bytes as it was (its checksum, its fragments). Of a packet that is only passed or dropped the headers
//! come, by the queue for packets of its length, whose GSO packets come [whole](Intercept::keep_gso) or cut.

mod nfqueue;
mod nft;

use std::io;
use std::os::fd::BorrowedFd;

use crate::LinuxError;
use crate::guard::GuardNews;
use crate::netlink::index_of;
use crate::nft::{
    IPV4, IPV6, NF_INET_POST_ROUTING, NF_INET_PRE_ROUTING, NFT_CMP_LTE, NFT_CMP_NEQ,
    NFT_META_IIFNAME, NFT_META_OIFNAME, Of, Test,
};
use nfqueue::{Copied, QueueVerdict, Queues};
use nft::Rule;

pub use nft::HandOver;

/// The packets of a device on their way out, in, or both.
#[derive(Debug)]
pub struct Intercept {
    queues: Queues,
    /// The number of the first queue: those of the way out, then as many of the way in.
    first: u16,
    /// The length, of [`LENGTHS`], up to which GSO packets of each way come whole.
    whole_up_to: [u16; 2],
    table: nft::Table,
}

/// What may be written into the packets of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Marks of congestion, into packets that allow them (ECN); nothing into others.
    Marks,
    /// Anything, into any packet.
    Anything,
}

/// Number of a packet among those that wait in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedId {
    queue: u16,
    id: u32,
}

/// A packet that waits in the kernel's queue (NFQUEUE) for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedPacket<'a> {
    /// Direction: 0 out, 1 in.
    pub way: usize,
    /// Number of the packet.
    pub id: QueuedId,
    /// When the kernel took it in, in nanoseconds on `CLOCK_REALTIME`: on the way in, if it notes such times,
    /// which it does as long as any socket asks for them.
    pub real_ns: Option<u64>,
    /// Whether it is a GSO packet, which leaves as several.
    pub gso: bool,
    /// Bytes of the whole packet, from the IP header on.
    pub len: usize,
    /// The first of them.
    pub bytes: &'a [u8],
    /// Whether the others [come too](Intercept::come_whole) if that is asked for.
    pub comes_whole: bool,
}

impl Intercept {
    /// Takes the packets of `device` in the calling thread's network namespace that go the ways asked for,
    /// `[out, in]`, in the way that [`check`](Self::check) has found. GSO packets are cut at first.
    ///
    /// # Errors
    /// If there is no such device, this user may not, or this kernel cannot: which, in one sentence.
    pub fn new(device: &str, ways: [Option<Writes>; 2], how: HandOver) -> Result<Self, LinuxError> {
        index_of(device)?;
        let (queues, first) = Queues::open(QUEUES.as_flattened(), MAX_HELD_PACKETS)?;
        let table = nft::Table::create(&table_name(device), device, &rules(ways, first), how)?;
        Ok(Self { queues, first, whole_up_to: [0; 2], table })
    }

    /// Whether [`new`](Self::new) would do its work now, which the kernel judges without doing anything: how
    /// packets would be handed over. That takes the kernel up to some tens of milliseconds.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn check(device: &str, ways: [Option<Writes>; 2]) -> Result<HandOver, LinuxError> {
        index_of(device)?;
        let (_, first) = Queues::open(QUEUES.as_flattened(), MAX_HELD_PACKETS)?;
        nft::check(&table_name(device), device, &rules(ways, first))
    }

    /// Removes what an earlier process left at `device`, if it left anything: whether it did.
    ///
    /// # Errors
    /// If this user may not, or another process is at work there.
    pub fn heal(device: &str) -> Result<bool, LinuxError> {
        nft::remove(&table_name(device))
    }

    /// Tells the guard that this process is at work, which is to be done every [`BEAT`](crate::BEAT): what the
    /// guard has done. Where it was ended from outside another takes its place.
    ///
    /// # Errors
    /// If the kernel does not hand packets over any more, or another guard cannot be had.
    pub fn beat(&mut self) -> Result<Option<GuardNews>, LinuxError> {
        self.table.beat()
    }

    /// File descriptor that is readable when packets wait.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.queues.fd()
    }

    /// Name of the rules that hand the packets over, for people.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.table.kind()
    }

    /// The next packet, without waiting.
    ///
    /// # Errors
    /// If the kernel does not give it.
    pub fn receive(&mut self) -> io::Result<Option<QueuedPacket<'_>>> {
        let first = self.first;
        let packet = self.queues.receive()?;
        Ok(packet.map(|packet| {
            let place = usize::from(packet.queue - first);
            QueuedPacket {
                way: place / WAY.len(),
                id: QueuedId { queue: packet.queue, id: packet.id },
                real_ns: packet.real_ns,
                gso: packet.gso,
                len: packet.len,
                bytes: packet.bytes,
                comes_whole: WAY[place % WAY.len()] == Copied::Head,
            }
        }))
    }

    /// From now on GSO packets of a way, `0` out or `1` in, come whole where nothing may be written into them and
    /// they have no more bytes than the greatest step of lengths within `bytes`; the kernel cuts the others.
    ///
    /// # Errors
    /// If the kernel does not listen.
    pub fn keep_gso(&mut self, way: usize, bytes: u32) -> io::Result<()> {
        let wanted = LENGTHS.into_iter().rfind(|&it| u32::from(it) <= bytes).unwrap_or(0);
        let was = std::mem::replace(&mut self.whole_up_to[way], wanted);
        let changed = |it: u16| (it <= wanted) != (it <= was);
        (0..).zip(LENGTHS).filter(|&(_, it)| changed(it)).try_for_each(|(place, it)| {
            self.queues.keep_gso(queue_of(self.first, way as u16, 1 + place), it <= wanted)
        })
    }

    /// Lets a packet go on, with other bytes if some are given, which takes a packet that came whole; to be
    /// [flushed](Self::flush).
    pub fn pass(&mut self, id: QueuedId, bytes: Option<&[u8]>) {
        self.queues.judge((id.queue, id.id), QueueVerdict::Accept, bytes);
    }

    /// A packet goes no further; to be [flushed](Self::flush).
    pub fn discard(&mut self, id: QueuedId) {
        self.queues.judge((id.queue, id.id), QueueVerdict::Drop, None);
    }

    /// A packet of which the first bytes came comes once more and whole, a GSO packet in segments, behind those
    /// that have come meanwhile; to be [flushed](Self::flush).
    pub fn come_whole(&mut self, way: usize, id: QueuedId) {
        let whole = queue_of(self.first, way as u16, WHOLE);
        self.queues.judge((id.queue, id.id), QueueVerdict::Queue(whole), None);
    }

    /// Tells the kernel what was decided.
    ///
    /// # Errors
    /// If the kernel does not listen.
    pub fn flush(&mut self) -> io::Result<()> {
        self.queues.flush()
    }

    /// Packets so far that went past this process because it did not read them in time.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.queues.missed()
    }
}

fn rules(ways: [Option<Writes>; 2], first: u16) -> Vec<Rule> {
    let wanted = (0..).zip(ways).filter_map(|(way, writes)| Some((way, writes?)));
    wanted.map(|(way, writes)| rule(way, queues(way, writes, first))).collect()
}

/// Before addresses are translated on the way out and after on the way in, so that hosts behind this
/// machine are told apart: beside NF_IP_PRI_NAT_SRC (100) and NF_IP_PRI_NAT_DST (-100).
const fn rule(way: u16, queues: Vec<(Vec<Test>, u16)>) -> Rule {
    match way {
        0 => Rule {
            chain: "out",
            hook: NF_INET_POST_ROUTING,
            priority: 90,
            on: NFT_META_OIFNAME,
            queues,
        },
        _ => Rule {
            chain: "in",
            hook: NF_INET_PRE_ROUTING,
            priority: -90,
            on: NFT_META_IIFNAME,
            queues,
        },
    }
}

/// The queues of a way, each with what a packet must be that goes there unless it went to one before.
fn queues(way: u16, writes: Writes, first: u16) -> Vec<(Vec<Test>, u16)> {
    let whole = queue_of(first, way, WHOLE);
    match writes {
        Writes::Anything => vec![(Vec::new(), whole)],
        Writes::Marks => {
            let written = come_whole().into_iter().map(|tests| (tests.to_vec(), whole));
            let lengths = (0..).zip(LENGTHS).flat_map(|(place, most)| {
                let queue = queue_of(first, way, 1 + place);
                match most {
                    u16::MAX => vec![(Vec::new(), queue)],
                    _ => up_to(most).into_iter().map(|tests| (tests.to_vec(), queue)).collect(),
                }
            });
            written.chain(lengths).collect()
        }
    }
}

/// Packets that may be marked, by the two bits of ECN; and those longer than IP's own length can tell (BIG
/// TCP), which nobody could read but cut.
fn come_whole() -> [[Test; 2]; 4] {
    let ecn =
        |bits: [u8; 2]| Test { is: NFT_CMP_NEQ, ..Test::bits(Of::Network(0, 2), &bits, &[0; 2]) };
    [
        [Test::is_ip(IPV4), ecn([0, 0b11])],
        [Test::is_ip(IPV6), ecn([0, 0b11 << 4])],
        [Test::is_ip(IPV4), Test::is(Of::Network(2, 2), &[0; 2])],
        [Test::is_ip(IPV6), Test::is(Of::Network(4, 2), &[0; 2])],
    ]
}

/// Packets of up to so many bytes; IPv6 tells what comes behind its header.
fn up_to(bytes: u16) -> [[Test; 2]; 2] {
    let test = |of, most: u16| Test { is: NFT_CMP_LTE, ..Test::is(of, &most.to_be_bytes()) };
    [
        [Test::is_ip(IPV4), test(Of::Network(2, 2), bytes)],
        [Test::is_ip(IPV6), test(Of::Network(4, 2), bytes - IPV6_HEADER)],
    ]
}

/// The number of a way's queue at that place of [`WAY`].
const fn queue_of(first: u16, way: u16, place: u16) -> u16 {
    first + way * WAY.len() as u16 + place
}

fn table_name(device: &str) -> String {
    format!("weir-shape-{device}")
}

/// Bytes of IP up to which packets have a queue of their own, whose GSO packets come whole or cut: of 2, 3, 4, 5, 6,
/// 8, 11, 14 and 18 segments of 1500 bytes, and of any number.
const LENGTHS: [u16; 10] =
    [3_000, 4_500, 6_000, 7_500, 9_000, 12_000, 16_500, 21_000, 27_000, u16::MAX];
/// What the queues of each way copy: one whole packets, and one for each of [`LENGTHS`] their heads.
const WAY: [Copied; 1 + LENGTHS.len()] = {
    let mut all = [Copied::Head; 1 + LENGTHS.len()];
    all[WHOLE as usize] = Copied::Whole;
    all
};
/// The place of the queue that copies packets whole.
const WHOLE: u16 = 0;
/// The queues of both ways.
const QUEUES: [[Copied; WAY.len()]; 2] = [WAY; 2];
const IPV6_HEADER: u16 = 40;
/// Packets of a way that the kernel holds at most; those beyond pass. Disciplines hold 10240 by default
/// (sch_fq_codel.c, sch_cake.c), and none is to be without an answer.
const MAX_HELD_PACKETS: u32 = 20_480;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_may_be_written_into_come_whole_and_others_by_their_heads() {
        let first = 0x7765;
        let to = |ways| {
            let queues = rules(ways, first).into_iter().map(|rule| {
                rule.queues.iter().map(|(tests, queue)| (tests.len(), queue - first)).collect()
            });
            queues.collect::<Vec<Vec<_>>>()
        };
        let way = WAY.len() as u16;
        let marks = |whole: u16| {
            let (last, lengths) = (way - 1, 1..way - 1);
            let lengths = lengths.flat_map(|place| [(2, whole + place); 2]);
            [[(2, whole); 4].to_vec(), lengths.collect(), vec![(0, whole + last)]].concat()
        };
        assert_eq!(to([Some(Writes::Marks); 2]), [marks(0), marks(way)]);
        assert_eq!(to([None, Some(Writes::Marks)]), [marks(way)]);
        assert_eq!(to([Some(Writes::Anything), None]), [[(0, 0)]]);
    }

    #[test]
    fn lengths_rise_and_end_with_any() {
        assert!(LENGTHS.is_sorted_by(|one, next| one < next));
        assert_eq!(LENGTHS.last(), Some(&u16::MAX));
    }

    #[test]
    fn each_queue_is_of_one_way_and_copies_as_its_place_says() {
        let places =
            [(0, 0), (0, 10), (1, 0), (1, 10)].map(|(way, place)| queue_of(100, way, place));
        assert_eq!(places, [100, 110, 111, 121]);
        let whole =
            (0..).zip(QUEUES.as_flattened()).filter(|(_, copied)| **copied == Copied::Whole);
        assert_eq!(whole.map(|(place, _)| place).collect::<Vec<_>>(), [0, 11]);
    }
}
