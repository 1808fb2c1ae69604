//! A table of nf_tables that hands packets to NFQUEUE.

use std::io;

use crate::LinuxError;
use crate::message::Message;
use crate::nft::{Expressions, Family, Hook, Nft, Of, Requests, Test};

/// The table, and the connection that it belongs to.
pub(super) struct Table {
    name: String,
    nft: Nft,
    kind: &'static str,
    owned: bool,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("name", &self.name).field("kind", &self.kind).finish()
    }
}

/// Packets at a hook whose device is the one meant go to a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub chain: &'static str,
    pub hook: u32,
    pub priority: i32,
    /// Meta key of the device by which packets are selected.
    pub on: u32,
    pub queue: u16,
}

impl Table {
    /// Makes the table at once with everything in it, or nothing.
    pub fn create(name: &str, device: &str, rules: &[Rule]) -> Result<Self, LinuxError> {
        let nft = Nft::open()?;
        let (kind, owned) = first_of(|kind, owned| {
            nft.transact(&requests(name, device, rules, kind, owned), true)
        })?;
        Ok(Self { name: name.to_owned(), nft, kind: kind.name(), owned })
    }

    /// How packets are handed over, for people.
    pub const fn kind(&self) -> &'static str {
        self.kind
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // An owned table goes with its connection in any case; this is sooner.
        let gone = self.nft.transact(&removal(&self.name), true);
        debug_assert!(gone.is_ok() || self.owned, "{gone:?}");
    }
}

/// Whether the kernel would make the table, which it does not do: how packets would be handed over.
pub(super) fn check(name: &str, device: &str, rules: &[Rule]) -> Result<&'static str, LinuxError> {
    let nft = Nft::open()?;
    let (kind, _) =
        first_of(|kind, owned| nft.transact(&requests(name, device, rules, kind, owned), false))?;
    Ok(kind.name())
}

/// The best way of handing packets over that `attempt` succeeds with: the kernel's own expression, or,
/// where it is not built in, the target of iptables; in a table that goes with us, or one that stays.
fn first_of(attempt: impl Fn(Kind, bool) -> io::Result<()>) -> Result<(Kind, bool), LinuxError> {
    let mut refused = None;
    for kind in [Kind::Queue, Kind::Target] {
        for owned in [true, false] {
            match attempt(kind, owned) {
                Ok(()) => return Ok((kind, owned)),
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Err(forbidden()),
                Err(error) => refused = Some(error),
            }
        }
    }
    let error = refused.expect("something was tried");
    Err(LinuxError::new(format!(
        "this kernel cannot hand packets to a program: it needs nf_tables with `queue`, or with the target \
         NFQUEUE ({error})"
    )))
}

/// Removes a table that a process left behind.
pub(super) fn remove(name: &str) -> Result<bool, LinuxError> {
    match Nft::open()?.transact(&removal(name), true) {
        Ok(()) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT) => Ok(false),
            Some(libc::EPERM) => Err(forbidden()),
            _ => Err(LinuxError::io(&format!("cannot remove the table `{name}`"), error)),
        },
    }
}

fn forbidden() -> LinuxError {
    LinuxError::new(
        "this user may not hold packets back: run as root, or with the capability CAP_NET_ADMIN",
    )
}

/// Expression that hands packets over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Queue,
    Target,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Queue => "nf_tables queue",
            Self::Target => "nf_tables with the target NFQUEUE",
        }
    }
}

fn requests(name: &str, device: &str, rules: &[Rule], kind: Kind, owned: bool) -> Vec<Message> {
    let mut all = Requests::new(Family::Inet, name, owned);
    let mut padded = [0; libc::IFNAMSIZ];
    padded[..device.len()].copy_from_slice(device.as_bytes());
    for rule in rules {
        let hook = Hook { number: rule.hook, priority: rule.priority, device: None };
        all.chain(rule.chain, Some(hook));
        all.rule(rule.chain, |list| {
            list.test(&Test::is(Of::Meta(rule.on), &padded));
            hand_over(list, kind, rule.queue);
        });
    }
    all.finish()
}

/// To the queue, or past it where nobody listens.
fn hand_over(list: &mut Expressions<'_>, kind: Kind, queue: u16) {
    match kind {
        Kind::Queue => list.add("queue", |it| {
            it.put(NFTA_QUEUE_NUM, &queue.to_be_bytes());
            it.put(NFTA_QUEUE_TOTAL, &1u16.to_be_bytes());
            it.put(NFTA_QUEUE_FLAGS, &NFQ_FLAG_BYPASS.to_be_bytes());
        }),
        Kind::Target => list.add("target", |it| {
            it.put(NFTA_TARGET_NAME, b"NFQUEUE\0");
            it.put(NFTA_TARGET_REV, &XT_NFQ_REVISION.to_be_bytes());
            // struct xt_NFQ_info_v3, padded to 8 bytes as x_tables keeps it.
            let words = [queue, 1, NFQ_FLAG_BYPASS, 0];
            let info: Vec<u8> = words.into_iter().flat_map(u16::to_ne_bytes).collect();
            it.put(NFTA_TARGET_INFO, &info);
        }),
    }
}

fn removal(name: &str) -> Vec<Message> {
    Requests::removal(Family::Inet, name).finish()
}

// include/uapi/linux/netfilter/nf_tables.h, nf_tables_compat.h
const NFTA_QUEUE_NUM: u16 = 1;
const NFTA_QUEUE_TOTAL: u16 = 2;
const NFTA_QUEUE_FLAGS: u16 = 3;
const NFTA_TARGET_NAME: u16 = 1;
const NFTA_TARGET_REV: u16 = 2;
const NFTA_TARGET_INFO: u16 = 3;
// include/uapi/linux/netfilter/xt_NFQUEUE.h
const XT_NFQ_REVISION: u32 = 3;
const NFQ_FLAG_BYPASS: u16 = 1;
