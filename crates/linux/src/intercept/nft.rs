//! A table of nf_tables that hands packets to NFQUEUE.

use std::io;
use std::os::fd::RawFd;
use weir_core::error_in_words;

use crate::LinuxError;
use crate::guard::{Duty, Guard, GuardNews, Post};
use crate::message::Message;
use crate::nft::{
    Expressions, Family, Hook, NFT_CMP_NEQ, Nft, Of, Requests, RuleVerdict, Test, batch, transact,
};

/// The table. The [guard](crate::guard) makes it, has it belong to its own connection to the kernel, and
/// removes it: it is the guard's alone, so that the two are never at it together.
#[derive(Debug)]
pub(super) struct Table {
    name: String,
    how: HandOver,
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

/// Packets at a hook whose device is the one meant go to queues.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub chain: &'static str,
    pub hook: u32,
    pub priority: i32,
    /// Meta key of the device by which packets are selected.
    pub on: u32,
    /// What a packet must be to go to which queue: the first counts that it meets.
    pub queues: Vec<(Vec<Test>, u16)>,
}

impl Table {
    /// Makes the table at once with everything in it, or nothing, and has it guarded from then on.
    pub fn create(
        name: &str,
        device: &str,
        rules: &[Rule],
        how: HandOver,
    ) -> Result<Self, LinuxError> {
        let (name, device) = (name.to_owned(), device.to_owned());
        let mut table = Self { name, how, device, rules: rules.to_vec(), guard: None };
        table.guard()?;
        Ok(table)
    }

    /// How packets are handed over, for people.
    pub const fn kind(&self) -> &'static str {
        self.how.kind()
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
        let make = requests(&self.name, &self.device, &self.rules, self.how);
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
            if !self.how.owned {
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
pub(super) fn check(name: &str, device: &str, rules: &[Rule]) -> Result<HandOver, LinuxError> {
    let nft = Nft::open()?;
    first_of(|how| nft.transact(&requests(name, device, rules, how), false))
}

fn unmade(code: i32) -> LinuxError {
    let error = io::Error::from_raw_os_error(code);
    LinuxError::io("the kernel does not hand packets over as it said it would", error)
}

/// The best way of handing packets over that `attempt` succeeds with: the kernel's own expression, or,
/// where it is not built in, the target of iptables; in a table that goes with us, or one that stays.
fn first_of(attempt: impl Fn(HandOver) -> io::Result<()>) -> Result<HandOver, LinuxError> {
    let mut refused = None;
    for by in [Expression::Queue, Expression::Target] {
        for owned in [true, false] {
            let how = HandOver { by, owned };
            match attempt(how).map_err(|error| (error.raw_os_error(), error)) {
                Ok(()) => return Ok(how),
                Err((Some(libc::EPERM), _)) => return Err(forbidden()),
                Err((code, error)) => {
                    refused = Some(error);
                    // It has no such expression, whoever owns the table.
                    if code == Some(libc::ENOENT) {
                        break;
                    }
                }
            }
        }
    }
    let error = refused.expect("something was tried");
    Err(LinuxError::new(format!(
        "this kernel cannot hand packets to a program: it needs nf_tables with `queue`, or with the target \
         NFQUEUE ({})",
        error_in_words(&error)
    )))
}

/// Removes a table that a process left behind.
pub(super) fn remove(name: &str) -> Result<bool, LinuxError> {
    let nft = Nft::open()?;
    // The kernel waits for every processor before it answers a removal, also of what is not there.
    let removed = match nft.has_table(Family::Inet, name) {
        Ok(false) => return Ok(false),
        Ok(true) => nft.transact(&removal(name), true),
        Err(error) => Err(error),
    };
    match removed {
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

/// How this kernel hands packets over, as it was found to be able to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    by: Expression,
    /// Whether the table goes with the connection that made it.
    owned: bool,
}

/// Expression that hands packets over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expression {
    Queue,
    Target,
}

impl HandOver {
    /// What hands them over, for people.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self.by {
            Expression::Queue => "nf_tables queue",
            Expression::Target => "nf_tables with the target NFQUEUE",
        }
    }
}

fn requests(name: &str, device: &str, rules: &[Rule], how: HandOver) -> Vec<Message> {
    let mut all = Requests::new(Family::Inet, name, how.owned);
    let mut padded = [0; libc::IFNAMSIZ];
    padded[..device.len()].copy_from_slice(device.as_bytes());
    for rule in rules {
        let hook = Hook { number: rule.hook, priority: rule.priority, device: None };
        all.chain(rule.chain, Some(hook));
        // Packets of other devices are looked at no further.
        all.rule(rule.chain, |list| {
            list.test(&Test { is: NFT_CMP_NEQ, ..Test::is(Of::Meta(rule.on), &padded) });
            list.verdict(RuleVerdict::Accept);
        });
        for (tests, queue) in &rule.queues {
            all.rule(rule.chain, |list| {
                tests.iter().for_each(|test| list.test(test));
                hand_over(list, how.by, *queue);
            });
        }
    }
    all.finish()
}

/// To the queue, or past it where nobody listens.
fn hand_over(list: &mut Expressions<'_>, by: Expression, queue: u16) {
    match by {
        Expression::Queue => list.add("queue", |it| {
            it.put(NFTA_QUEUE_NUM, &queue.to_be_bytes());
            it.put(NFTA_QUEUE_TOTAL, &1u16.to_be_bytes());
            it.put(NFTA_QUEUE_FLAGS, &NFQ_FLAG_BYPASS.to_be_bytes());
        }),
        Expression::Target => list.add("target", |it| {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is tried of a kernel that answers so, and what is found.
    fn tried(
        answer: impl Fn(HandOver) -> Option<i32>,
    ) -> (Vec<(Expression, bool)>, Option<HandOver>) {
        let tried = std::cell::RefCell::new(Vec::new());
        let found = first_of(|how| {
            tried.borrow_mut().push((how.by, how.owned));
            answer(how).map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)))
        });
        (tried.into_inner(), found.ok())
    }

    #[test]
    fn a_kernel_is_asked_no_more_than_it_takes_to_know() {
        use Expression::{Queue, Target};
        assert_eq!(tried(|_| None).0, [(Queue, true)]);
        // Tables with owners are from Linux 5.12.
        let old = |how: HandOver| how.owned.then_some(libc::EINVAL);
        let stays = HandOver { by: Queue, owned: false };
        assert_eq!(tried(old), (vec![(Queue, true), (Queue, false)], Some(stays)));
        // The expression is missing in any table.
        let without = |how: HandOver| (how.by == Queue).then_some(libc::ENOENT);
        let target = HandOver { by: Target, owned: true };
        assert_eq!(tried(without), (vec![(Queue, true), (Target, true)], Some(target)));
        assert_eq!(tried(|_| Some(libc::ENOENT)), (vec![(Queue, true), (Target, true)], None));
        assert_eq!(tried(|_| Some(libc::EPERM)), (vec![(Queue, true)], None));
        assert_eq!(tried(|_| Some(libc::EINVAL)).0.len(), 4);
    }
}
