//! Tables of nf_tables, as the kernel is told of them: include/uapi/linux/netfilter/nf_tables.h.

mod expressions;
mod values;

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};
use nix::sys::socket::{MsgFlags, recv, send};

pub(crate) use self::expressions::{
    Expressions, IPV4, IPV6, NFT_CMP_LTE, NFT_CMP_NEQ, NFT_META_IIFNAME, NFT_META_L4PROTO,
    NFT_META_OIFNAME, NFT_META_PRIORITY, Of, RuleVerdict, Test,
};
use self::values::{NFTA_DATA_VALUE, NFTA_LIST_ELEM, number, text};
use crate::LinuxError;
use crate::message::{
    Message, NESTED, NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_DUMP, attributes,
};

/// A connection to nf_tables. Tables that were made by it with an owner go with it.
pub(crate) struct Nft {
    socket: Socket,
}

impl std::fmt::Debug for Nft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Nft")
    }
}

/// Family of a table: the packets that it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Packets of IPv4 and IPv6.
    Inet = 1,
    /// All of a device.
    Netdev = 5,
}

/// Where a chain begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hook<'a> {
    /// Number of the hook, `NF_INET_*` or `NF_NETDEV_*`.
    pub number: u32,
    /// Lower ones go first.
    pub priority: i32,
    /// The device, where the hook is one's own.
    pub device: Option<&'a str>,
}

/// Requests that make a table and its contents.
#[derive(Clone, Debug)]
pub(crate) struct Requests<'a> {
    family: Family,
    table: &'a str,
    messages: Vec<Message>,
}

impl Nft {
    pub fn open() -> Result<Self, LinuxError> {
        Self::connect()
            .map_err(|error| LinuxError::io("cannot talk to the kernel (nfnetlink)", error))
    }

    /// Connects to nf_tables; the error says why it cannot.
    pub fn connect() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.set_non_blocking(true)?;
        Ok(Self { socket })
    }

    /// Shows what stands behind the header of each answer to a request for a list, of whatever family.
    pub fn list(&self, kind: u16, show: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let kind = SUBSYS_NFTABLES << 8 | kind;
        let request = Message::with_header(kind, NLM_F_DUMP, &[0, NFNETLINK_V0, 0, 0]);
        crate::netlink::list(&self.socket, &request.finish(), show)
    }

    /// Whether there is a table of this name in the calling thread's network namespace.
    pub fn has_table(&self, family: Family, name: &str) -> io::Result<bool> {
        let mut found = false;
        self.list(NFT_MSG_GETTABLE, &mut |body| found |= names_table(body, family, name))?;
        Ok(found)
    }

    /// Has the kernel do all that `messages` say, or nothing; without `commit` it only judges them.
    pub fn transact(&self, messages: &[Message], commit: bool) -> io::Result<()> {
        transact(self.fd(), &batch(messages, commit)).map_err(io::Error::from_raw_os_error)
    }

    /// The socket, for what only knows how to send bytes.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// The bytes by which the kernel does all that `messages` say, or nothing; without `commit` it only judges
/// them.
pub(crate) fn batch(messages: &[Message], commit: bool) -> Vec<u8> {
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
    bytes
}

/// Sends a batch by the socket `fd`: the first error's number, if there is one. Async-signal-safe: nothing is
/// allocated, nothing locked.
pub(crate) fn transact(fd: RawFd, batch: &[u8]) -> Result<(), i32> {
    send(fd, batch, MsgFlags::empty()).map_err(|error| error as i32)?;
    // The kernel has done it, or not, when `send` returns: what it said waits.
    let mut worst = Ok(());
    let mut answer = [0; MAX_ANSWER_BYTES];
    loop {
        let len = match recv(fd, &mut answer, MsgFlags::MSG_DONTWAIT) {
            Ok(len) => len,
            Err(nix::Error::EAGAIN) => return worst,
            Err(nix::Error::EINTR) => continue,
            Err(error) => return Err(error as i32),
        };
        // Each answer comes by itself: a header, the error's number, and the request, which may be cut off.
        match answer[..len].get(ANSWER_HEADER..).and_then(crate::netlink::error_of) {
            Some(code) if code != 0 && worst.is_ok() => worst = Err(-code),
            _ => {}
        }
    }
}

impl<'a> Requests<'a> {
    /// Requests that make `table`. An `owned` table goes with the connection that made it.
    pub fn new(family: Family, table: &'a str, owned: bool) -> Self {
        let mut requests = Self { family, table, messages: Vec::new() };
        requests.add(NFT_MSG_NEWTABLE, NLM_F_CREATE, |message| {
            message.put(NFTA_TABLE_NAME, &text(table));
            let flags = if owned { NFT_TABLE_F_OWNER } else { 0 };
            message.put(NFTA_TABLE_FLAGS, &number(flags));
        });
        requests
    }

    /// An empty list of requests for a table that is there.
    pub const fn within(family: Family, table: &'a str) -> Self {
        Self { family, table, messages: Vec::new() }
    }

    /// A list of the one request that removes the table.
    pub fn removal(family: Family, table: &'a str) -> Self {
        let mut requests = Self::within(family, table);
        requests.add(NFT_MSG_DELTABLE, 0, |message| message.put(NFTA_TABLE_NAME, &text(table)));
        requests
    }

    /// A chain: at a hook, or one that others go to. Whatever comes to its end passes.
    pub fn chain(&mut self, name: &str, hook: Option<Hook<'_>>) {
        let table = self.table;
        self.add(NFT_MSG_NEWCHAIN, NLM_F_CREATE, |chain| {
            chain.put(NFTA_CHAIN_TABLE, &text(table));
            chain.put(NFTA_CHAIN_NAME, &text(name));
            let Some(hook) = hook else { return };
            chain.nest(NFTA_CHAIN_HOOK | NESTED, |place| {
                place.put(NFTA_HOOK_HOOKNUM, &number(hook.number));
                place.put(NFTA_HOOK_PRIORITY, &hook.priority.to_be_bytes());
                if let Some(device) = hook.device {
                    place.put(NFTA_HOOK_DEV, &text(device));
                }
            });
            chain.put(NFTA_CHAIN_TYPE, &text("filter"));
        });
    }

    /// A rule behind those that the chain has.
    pub fn rule(&mut self, chain: &str, fill: impl FnOnce(&mut Expressions<'_>)) {
        let table = self.table;
        self.add(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, |rule| {
            rule.put(NFTA_RULE_TABLE, &text(table));
            rule.put(NFTA_RULE_CHAIN, &text(chain));
            rule.nest(NFTA_RULE_EXPRESSIONS | NESTED, |list| fill(&mut Expressions::new(list)));
        });
    }

    /// Adds a set of values of `bytes` each; `id` tells the sets of a table apart.
    pub fn set(&mut self, name: &str, id: u32, bytes: u32) {
        let table = self.table;
        self.add(NFT_MSG_NEWSET, NLM_F_CREATE, |set| {
            set.put(NFTA_SET_TABLE, &text(table));
            set.put(NFTA_SET_NAME, &text(name));
            set.put(NFTA_SET_KEY_LEN, &number(bytes));
            set.put(NFTA_SET_ID, &number(id));
        });
    }

    /// Puts values into a set, or takes them out of it.
    pub fn elements<'v>(&mut self, set: &str, is_in: bool, values: impl Iterator<Item = &'v [u8]>) {
        let table = self.table;
        let (kind, flags) =
            if is_in { (NFT_MSG_NEWSETELEM, NLM_F_CREATE) } else { (NFT_MSG_DELSETELEM, 0) };
        self.add(kind, flags, |message| {
            message.put(NFTA_SET_ELEM_LIST_TABLE, &text(table));
            message.put(NFTA_SET_ELEM_LIST_SET, &text(set));
            message.nest(NFTA_SET_ELEM_LIST_ELEMENTS | NESTED, |list| {
                for value in values {
                    list.nest(NFTA_LIST_ELEM | NESTED, |element| {
                        element.nest(NFTA_SET_ELEM_KEY | NESTED, |key| {
                            key.put(NFTA_DATA_VALUE, value);
                        });
                    });
                }
            });
        });
    }

    /// The messages for the kernel.
    pub fn finish(self) -> Vec<Message> {
        self.messages
    }

    fn add(&mut self, kind: u16, flags: u16, fill: impl FnOnce(&mut Message)) {
        let header = [self.family as u8, NFNETLINK_V0, 0, 0];
        let kind = SUBSYS_NFTABLES << 8 | kind;
        let mut message = Message::with_header(kind, flags | NLM_F_ACK, &header);
        fill(&mut message);
        self.messages.push(message);
    }
}

/// Whether an answer, a `struct nfgenmsg` and attributes, is about the table of this name.
fn names_table(body: &[u8], family: Family, name: &str) -> bool {
    let Some((header, rest)) = body.split_at_checked(NFGENMSG) else { return false };
    header[0] == family as u8
        && attributes(rest).any(|(what, value)| what == NFTA_TABLE_NAME && value == text(name))
}

/// Length of `struct nfgenmsg`.
pub(crate) const NFGENMSG: usize = 4;
/// Bytes of an answer that are looked at, and of the header at its front (`struct nlmsghdr`).
const MAX_ANSWER_BYTES: usize = 256;
const ANSWER_HEADER: usize = 16;
// include/uapi/linux/netfilter/nfnetlink.h
const NFNETLINK_V0: u8 = 0;
const NFNL_MSG_BATCH_BEGIN: u16 = 16;
const NFNL_MSG_BATCH_END: u16 = 17;
const SUBSYS_NFTABLES: u16 = 10;
// include/uapi/linux/netfilter.h
pub(crate) const NF_INET_PRE_ROUTING: u32 = 0;
pub(crate) const NF_INET_FORWARD: u32 = 2;
pub(crate) const NF_INET_LOCAL_OUT: u32 = 3;
pub(crate) const NF_INET_POST_ROUTING: u32 = 4;
pub(crate) const NF_INET_INGRESS: u32 = 5;
pub(crate) const NF_NETDEV_INGRESS: u32 = 0;
// include/uapi/linux/netfilter/nf_tables.h
const NFT_MSG_NEWTABLE: u16 = 0;
const NFT_MSG_GETTABLE: u16 = 1;
const NFT_MSG_DELTABLE: u16 = 2;
const NFT_MSG_NEWCHAIN: u16 = 3;
const NFT_MSG_NEWRULE: u16 = 6;
const NFT_MSG_NEWSET: u16 = 9;
const NFT_MSG_NEWSETELEM: u16 = 12;
const NFT_MSG_DELSETELEM: u16 = 14;
const NFT_TABLE_F_OWNER: u32 = 2;
const NFTA_TABLE_NAME: u16 = 1;
const NFTA_TABLE_FLAGS: u16 = 2;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;
const NFTA_HOOK_DEV: u16 = 3;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_SET_TABLE: u16 = 1;
const NFTA_SET_NAME: u16 = 2;
const NFTA_SET_KEY_LEN: u16 = 5;
const NFTA_SET_ID: u16 = 10;
const NFTA_SET_ELEM_LIST_TABLE: u16 = 1;
const NFTA_SET_ELEM_LIST_SET: u16 = 2;
const NFTA_SET_ELEM_LIST_ELEMENTS: u16 = 3;
const NFTA_SET_ELEM_KEY: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_known_by_its_family_and_its_whole_name() {
        let about = |family: u8, name: &str| {
            let length = (4 + name.len() as u16 + 1).to_ne_bytes();
            let kind = NFTA_TABLE_NAME.to_ne_bytes();
            [&[family, 0, 0, 0], &length[..], &kind, name.as_bytes(), &[0]].concat()
        };
        let is_it = |body: &[u8]| names_table(body, Family::Inet, "weir-shape-eth0");
        assert!(is_it(&about(1, "weir-shape-eth0")));
        assert!(!is_it(&about(1, "weir-shape-eth01")));
        assert!(!is_it(&about(1, "weir-shape-eth")));
        assert!(!is_it(&about(2, "weir-shape-eth0")), "a table of IPv4 alone");
        assert!(!is_it(&[1, 0]), "cut off");
    }
}
