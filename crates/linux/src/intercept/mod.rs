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

mod nfqueue;
mod nft;

use std::io;
use std::os::fd::BorrowedFd;

use crate::LinuxError;
use crate::guard::GuardNews;
use crate::netlink::index_of;
use crate::nft::{NF_INET_POST_ROUTING, NF_INET_PRE_ROUTING, NFT_META_IIFNAME, NFT_META_OIFNAME};
use nfqueue::{QueueVerdict, Queues};
use nft::Rule;

pub use nft::HandOver;

/// The packets of a device on their way out, in, or both.
#[derive(Debug)]
pub struct Intercept {
    queues: Queues,
    /// The number of the first queue: one for the way out, the next for the way in.
    first: u16,
    table: nft::Table,
}

/// A packet that waits in the kernel's queue (NFQUEUE) for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedPacket<'a> {
    /// Direction: 0 out, 1 in.
    pub way: usize,
    /// Number of the packet on its way.
    pub id: u32,
    /// When the kernel took it in, in nanoseconds on `CLOCK_REALTIME`: on the way in, if it notes such times,
    /// which it does as long as any socket asks for them.
    pub real_ns: Option<u64>,
    /// Bytes of the packet, from the IP header on.
    pub bytes: &'a [u8],
}

impl Intercept {
    /// Takes the packets of `device` in the calling thread's network namespace that go the ways asked for,
    /// `[out, in]`, in the way that [`check`](Self::check) has found.
    ///
    /// # Errors
    /// If there is no such device, this user may not, or this kernel cannot: which, in one sentence.
    pub fn new(device: &str, ways: [bool; 2], how: HandOver) -> Result<Self, LinuxError> {
        index_of(device)?;
        let (queues, first) = Queues::open(WAYS, MAX_HELD_PACKETS)?;
        let table = nft::Table::create(&table_name(device), device, &rules(ways, first), how)?;
        Ok(Self { queues, first, table })
    }

    /// Whether [`new`](Self::new) would do its work now, which the kernel judges without doing anything: how
    /// packets would be handed over. That takes the kernel up to some tens of milliseconds.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn check(device: &str, ways: [bool; 2]) -> Result<HandOver, LinuxError> {
        index_of(device)?;
        let (_, first) = Queues::open(WAYS, MAX_HELD_PACKETS)?;
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
        Ok(packet.map(|packet| QueuedPacket {
            way: usize::from(packet.queue - first),
            id: packet.id,
            real_ns: packet.real_ns,
            bytes: packet.bytes,
        }))
    }

    /// Lets a packet go on, with other bytes if some are given; to be [flushed](Self::flush).
    pub fn pass(&mut self, way: usize, id: u32, bytes: Option<&[u8]>) {
        self.queues.judge(self.first + way as u16, id, QueueVerdict::Accept, bytes);
    }

    /// A packet goes no further; to be [flushed](Self::flush).
    pub fn discard(&mut self, way: usize, id: u32) {
        self.queues.judge(self.first + way as u16, id, QueueVerdict::Drop, None);
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

fn rules(ways: [bool; 2], first: u16) -> Vec<Rule> {
    let wanted = (0..WAYS).filter(|&way| ways[usize::from(way)]);
    wanted.map(|way| rule(way, first + way)).collect()
}

/// Before addresses are translated on the way out and after on the way in, so that hosts behind this
/// machine are told apart: beside NF_IP_PRI_NAT_SRC (100) and NF_IP_PRI_NAT_DST (-100).
const fn rule(way: u16, queue: u16) -> Rule {
    match way {
        0 => Rule {
            chain: "out",
            hook: NF_INET_POST_ROUTING,
            priority: 90,
            on: NFT_META_OIFNAME,
            queue,
        },
        _ => Rule {
            chain: "in",
            hook: NF_INET_PRE_ROUTING,
            priority: -90,
            on: NFT_META_IIFNAME,
            queue,
        },
    }
}

fn table_name(device: &str) -> String {
    format!("weir-shape-{device}")
}

const WAYS: u16 = 2;
/// Packets of a way that the kernel holds at most; those beyond pass. Disciplines hold 10240 by default
/// (sch_fq_codel.c, sch_cake.c), and none is to be without an answer.
const MAX_HELD_PACKETS: u32 = 20_480;
