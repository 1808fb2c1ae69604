//! A table of nf_tables that hands packets to NFQUEUE.

use std::io;
use std::os::fd::RawFd;

use crate::LinuxError;
use crate::guard::{Duty, Guard, GuardNews, Post};
use crate::message::Message;
use crate::nft::{Expressions, Family, Hook, Nft, Of, Requests, Test, batch, transact};

/// The table. The [guard](crate::guard) makes it, has it belong to its own connection to the kernel, and
/// removes it: it is the guard's alone, so that the two are never at it together.
#[derive(Debug)]
pub(super) struct Table {
    name: String,
    kind: HandOver,
    owned: bool,
    device: String,
    rules: Vec<Rule>,
    guard: Option<Guard>,
}

/// The duty of the table's guard.
struct Keep {
    nft: Nft,
    make: Vec<u8>,
    remove: Vec<u8>,
}

impl Duty for Keep {
    fn socket(&self) -> RawFd {
        self.nft.fd()
    }

    fn hold(&self) -> Result<(), i32> {
        transact(self.nft.fd(), &self.make)
    }

    fn open(&self) -> Result<(), i32> {
        match transact(self.nft.fd(), &self.remove) {
            Err(libc::ENOENT) => Ok(()),
            done => done,
        }
    }

    fn end(&self) {
        // One with an owner goes with it in any case.
        let _ = self.open();
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
    /// Makes the table at once with everything in it, or nothing, and has it guarded from then on.
    pub fn create(name: &str, device: &str, rules: &[Rule]) -> Result<Self, LinuxError> {
        let (kind, owned) = judge(name, device, rules)?;
        let (name, device) = (name.to_owned(), device.to_owned());
        let mut table = Self { name, kind, owned, device, rules: rules.to_vec(), guard: None };
        table.guard()?;
        Ok(table)
    }

    /// How packets are handed over, for people.
    pub const fn kind(&self) -> &'static str {
        self.kind.name()
    }

    /// Tells the guard that this process is at work: what the guard has done. Where it was ended from outside
    /// another takes its place.
    pub fn beat(&mut self) -> Result<Option<GuardNews>, LinuxError> {
        let news = self.guard.as_ref().and_then(Guard::beat);
        match news {
            Some(GuardNews::Gone) => self.guard()?,
            Some(GuardNews::Refused(code)) => return Err(unmade(code)),
            _ => {}
        }
        Ok(news)
    }

    /// Starts a guard, which makes the table, in the place of the one that there is.
    fn guard(&mut self) -> Result<(), LinuxError> {
        self.dismiss();
        let post = Post::take(&self.device)?;
        let make = requests(&self.name, &self.device, &self.rules, self.kind, self.owned);
        let (make, remove) = (batch(&make, true), batch(&removal(&self.name), true));
        let guard = Guard::start(Keep { nft: Nft::open()?, make, remove }, post)?;
        let begun = guard.begin();
        self.guard = Some(guard);
        begun.map_err(|news| match news {
            GuardNews::Refused(code) => unmade(code),
            _ => LinuxError::new("the guard of the shaper does not answer"),
        })
    }

    /// Ends the guard, and with it the table.
    fn dismiss(&mut self) {
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
            if !self.owned {
                let _ = remove(&self.name);
            }
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// Whether the kernel would make the table, which it does not do: how packets would be handed over.
pub(super) fn check(name: &str, device: &str, rules: &[Rule]) -> Result<&'static str, LinuxError> {
    judge(name, device, rules).map(|(kind, _)| kind.name())
}

fn judge(name: &str, device: &str, rules: &[Rule]) -> Result<(HandOver, bool), LinuxError> {
    let nft = Nft::open()?;
    first_of(|kind, owned| nft.transact(&requests(name, device, rules, kind, owned), false))
}

fn unmade(code: i32) -> LinuxError {
    let error = io::Error::from_raw_os_error(code);
    LinuxError::io("the kernel does not hand packets over as it said it would", error)
}

/// The best way of handing packets over that `attempt` succeeds with: the kernel's own expression, or,
/// where it is not built in, the target of iptables; in a table that goes with us, or one that stays.
fn first_of(
    attempt: impl Fn(HandOver, bool) -> io::Result<()>,
) -> Result<(HandOver, bool), LinuxError> {
    let mut refused = None;
    for kind in [HandOver::Queue, HandOver::Target] {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandOver {
    Queue,
    Target,
}

impl HandOver {
    const fn name(self) -> &'static str {
        match self {
            Self::Queue => "nf_tables queue",
            Self::Target => "nf_tables with the target NFQUEUE",
        }
    }
}

fn requests(name: &str, device: &str, rules: &[Rule], kind: HandOver, owned: bool) -> Vec<Message> {
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
fn hand_over(list: &mut Expressions<'_>, kind: HandOver, queue: u16) {
    match kind {
        HandOver::Queue => list.add("queue", |it| {
            it.put(NFTA_QUEUE_NUM, &queue.to_be_bytes());
            it.put(NFTA_QUEUE_TOTAL, &1u16.to_be_bytes());
            it.put(NFTA_QUEUE_FLAGS, &NFQ_FLAG_BYPASS.to_be_bytes());
        }),
        HandOver::Target => list.add("target", |it| {
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
