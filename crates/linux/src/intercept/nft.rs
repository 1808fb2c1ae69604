//! A table of nf_tables that hands packets to NFQUEUE: include/uapi/linux/netfilter/nf_tables.h.

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

use crate::LinuxError;
use crate::tc::message::Message;

/// The table, and the socket that it belongs to.
pub(super) struct Table {
    name: String,
    socket: Socket,
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
    /// Which device of a packet counts.
    pub on: u32,
    pub queue: u16,
}

impl Table {
    /// Makes the table at once with everything in it, or nothing.
    pub fn create(name: &str, device: &str, rules: &[Rule]) -> Result<Self, LinuxError> {
        let socket = open()?;
        let (kind, owned) = first_of(|kind, owned| {
            transact(&socket, &requests(name, device, rules, kind, owned), true)
        })?;
        Ok(Self { name: name.to_owned(), socket, kind: kind.name(), owned })
    }

    /// How packets are handed over, for people.
    pub const fn kind(&self) -> &'static str {
        self.kind
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // An owned table goes with its socket in any case; this is sooner.
        let gone = transact(&self.socket, &[delete(&self.name)], true);
        debug_assert!(gone.is_ok() || self.owned, "{gone:?}");
    }
}

/// Whether the kernel would make the table, which it does not do: how packets would be handed over.
pub(super) fn check(name: &str, device: &str, rules: &[Rule]) -> Result<&'static str, LinuxError> {
    let socket = open()?;
    let (kind, _) = first_of(|kind, owned| {
        transact(&socket, &requests(name, device, rules, kind, owned), false)
    })?;
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
    match transact(&open()?, &[delete(name)], true) {
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

/// Which expression hands packets over.
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

fn open() -> Result<Socket, LinuxError> {
    let fail = |error| LinuxError::io("cannot talk to the kernel (nfnetlink)", error);
    let mut socket = Socket::new(NETLINK_NETFILTER).map_err(fail)?;
    socket.bind_auto().map_err(fail)?;
    socket.connect(&SocketAddr::new(0, 0)).map_err(fail)?;
    socket.set_non_blocking(true).map_err(fail)?;
    Ok(socket)
}

fn requests(name: &str, device: &str, rules: &[Rule], kind: Kind, owned: bool) -> Vec<Message> {
    let mut table = nft(NFT_MSG_NEWTABLE, CREATE);
    table.put(NFTA_TABLE_NAME, &text(name));
    table.put(NFTA_TABLE_FLAGS, &number(if owned { NFT_TABLE_F_OWNER } else { 0 }));
    let mut all = vec![table];
    for rule in rules {
        let mut chain = nft(NFT_MSG_NEWCHAIN, CREATE);
        chain.put(NFTA_CHAIN_TABLE, &text(name));
        chain.put(NFTA_CHAIN_NAME, &text(rule.chain));
        chain.nest(NFTA_CHAIN_HOOK | NESTED, |hook| {
            hook.put(NFTA_HOOK_HOOKNUM, &number(rule.hook));
            hook.put(NFTA_HOOK_PRIORITY, &rule.priority.to_be_bytes());
        });
        chain.put(NFTA_CHAIN_TYPE, &text("filter"));
        let mut what = nft(NFT_MSG_NEWRULE, CREATE | NLM_F_APPEND);
        what.put(NFTA_RULE_TABLE, &text(name));
        what.put(NFTA_RULE_CHAIN, &text(rule.chain));
        what.nest(NFTA_RULE_EXPRESSIONS | NESTED, |list| {
            expression(list, "meta", |meta| {
                meta.put(NFTA_META_KEY, &number(rule.on));
                meta.put(NFTA_META_DREG, &number(NFT_REG32_00));
            });
            expression(list, "cmp", |cmp| {
                let mut padded = [0; libc::IFNAMSIZ];
                padded[..device.len()].copy_from_slice(device.as_bytes());
                cmp.put(NFTA_CMP_SREG, &number(NFT_REG32_00));
                cmp.put(NFTA_CMP_OP, &number(NFT_CMP_EQ));
                cmp.nest(NFTA_CMP_DATA | NESTED, |data| data.put(NFTA_DATA_VALUE, &padded));
            });
            hand_over(list, kind, rule.queue);
        });
        all.extend([chain, what]);
    }
    all
}

/// To the queue, or past it where nobody listens.
fn hand_over(list: &mut Message, kind: Kind, queue: u16) {
    match kind {
        Kind::Queue => expression(list, "queue", |it| {
            it.put(NFTA_QUEUE_NUM, &queue.to_be_bytes());
            it.put(NFTA_QUEUE_TOTAL, &1u16.to_be_bytes());
            it.put(NFTA_QUEUE_FLAGS, &NFQ_FLAG_BYPASS.to_be_bytes());
        }),
        Kind::Target => expression(list, "target", |it| {
            it.put(NFTA_TARGET_NAME, &text("NFQUEUE"));
            it.put(NFTA_TARGET_REV, &number(XT_NFQ_REVISION));
            // struct xt_NFQ_info_v3, padded to 8 bytes as x_tables keeps it.
            let words = [queue, 1, NFQ_FLAG_BYPASS, 0];
            let info: Vec<u8> = words.into_iter().flat_map(u16::to_ne_bytes).collect();
            it.put(NFTA_TARGET_INFO, &info);
        }),
    }
}

fn expression(list: &mut Message, name: &str, fill: impl FnOnce(&mut Message)) {
    list.nest(NFTA_LIST_ELEM | NESTED, |element| {
        element.put(NFTA_EXPR_NAME, &text(name));
        element.nest(NFTA_EXPR_DATA | NESTED, fill);
    });
}

fn delete(name: &str) -> Message {
    let mut message = nft(NFT_MSG_DELTABLE, 0);
    message.put(NFTA_TABLE_NAME, &text(name));
    message
}

fn nft(kind: u16, flags: u16) -> Message {
    let header = [NFPROTO_INET, NFNETLINK_V0, 0, 0];
    Message::with_header(SUBSYS_NFTABLES << 8 | kind, flags | NLM_F_ACK, &header)
}

fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

const fn number(value: u32) -> [u8; 4] {
    value.to_be_bytes()
}

/// Has the kernel do all that `messages` say, or nothing; without `commit` it only judges them.
fn transact(socket: &Socket, messages: &[Message], commit: bool) -> io::Result<()> {
    let mark = |kind| {
        let resource = SUBSYS_NFTABLES.to_be_bytes();
        let header = [0, NFNETLINK_V0, resource[0], resource[1]];
        Message::with_header(kind, 0, &header).finish()
    };
    let mut bytes = mark(NFNL_MSG_BATCH_BEGIN);
    bytes.extend(messages.iter().cloned().flat_map(Message::finish));
    if commit {
        bytes.extend(mark(NFNL_MSG_BATCH_END));
    }
    socket.send(&bytes, 0)?;
    // The kernel has done it, or not, when `send` returns: what it said waits.
    let mut worst = Ok(());
    loop {
        let answer = match socket.recv_from_full() {
            Ok((answer, _)) => answer,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return worst,
            Err(error) => return Err(error),
        };
        for (_, body) in crate::netlink::answers(&answer) {
            match crate::netlink::error_of(body) {
                Some(code) if code != 0 && worst.is_ok() => {
                    worst = Err(io::Error::from_raw_os_error(-code));
                }
                _ => {}
            }
        }
    }
}

// include/uapi/linux/netlink.h, netfilter/nfnetlink.h
const NLM_F_ACK: u16 = 0x4;
const NLM_F_APPEND: u16 = 0x800;
const CREATE: u16 = 0x400;
const NESTED: u16 = 0x8000;
const NFNETLINK_V0: u8 = 0;
const NFNL_MSG_BATCH_BEGIN: u16 = 16;
const NFNL_MSG_BATCH_END: u16 = 17;
const SUBSYS_NFTABLES: u16 = 10;
// include/uapi/linux/netfilter.h
const NFPROTO_INET: u8 = 1;
/// NF_INET_PRE_ROUTING
pub(super) const PREROUTING: u32 = 0;
/// NF_INET_POST_ROUTING
pub(super) const POSTROUTING: u32 = 4;
// include/uapi/linux/netfilter/nf_tables.h
const NFT_MSG_NEWTABLE: u16 = 0;
const NFT_MSG_DELTABLE: u16 = 2;
const NFT_MSG_NEWCHAIN: u16 = 3;
const NFT_MSG_NEWRULE: u16 = 6;
const NFT_TABLE_F_OWNER: u32 = 2;
const NFTA_TABLE_NAME: u16 = 1;
const NFTA_TABLE_FLAGS: u16 = 2;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_LIST_ELEM: u16 = 1;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_META_DREG: u16 = 1;
const NFTA_META_KEY: u16 = 2;
pub(super) const META_IIFNAME: u32 = 6;
pub(super) const META_OIFNAME: u32 = 7;
const NFTA_CMP_SREG: u16 = 1;
const NFTA_CMP_OP: u16 = 2;
const NFTA_CMP_DATA: u16 = 3;
const NFT_CMP_EQ: u32 = 0;
const NFTA_DATA_VALUE: u16 = 1;
const NFT_REG32_00: u32 = 8;
const NFTA_QUEUE_NUM: u16 = 1;
const NFTA_QUEUE_TOTAL: u16 = 2;
const NFTA_QUEUE_FLAGS: u16 = 3;
const NFTA_TARGET_NAME: u16 = 1;
const NFTA_TARGET_REV: u16 = 2;
const NFTA_TARGET_INFO: u16 = 3;
// include/uapi/linux/netfilter/xt_NFQUEUE.h
const XT_NFQ_REVISION: u32 = 3;
const NFQ_FLAG_BYPASS: u16 = 1;
