//! Expressions, of which a rule of nf_tables is made. Values pass from one to the next by registers.

use super::values::{NFTA_DATA_VALUE, NFTA_LIST_ELEM, number, text};
use crate::message::{Message, NESTED};

/// The expressions of a rule.
pub(crate) struct Expressions<'a> {
    list: &'a mut Message,
}

/// A value of a packet that rules look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Metadata of the packet, by its key `NFT_META_*`.
    Meta(u32),
    /// Bytes of the packet from the IP header on: offset and length.
    Network(u32, u32),
    /// Bytes of the transport header (TCP, UDP, ...): offset and length.
    Transport(u32, u32),
}

/// A comparison of a value in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    /// Value that is compared.
    pub of: Of,
    /// The bits of it that count; all, if there are none.
    pub mask: Vec<u8>,
    /// Comparison, one of `NFT_CMP_*`.
    pub is: u32,
    /// Value to compare with, in the packet's order of bytes.
    pub value: Vec<u8>,
}

/// Verdict of a rule of nf_tables on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleVerdict<'a> {
    /// The packet passes this hook's chain.
    Accept,
    /// The packet goes to that chain and comes back if the chain gives no verdict.
    Jump(&'a str),
    /// The packet goes to that chain, and goes on where this one was jumped to from.
    Goto(&'a str),
}

impl Test {
    /// Tests that the value `of` a packet is `value`.
    pub fn is(of: Of, value: &[u8]) -> Self {
        Self { of, mask: Vec::new(), is: NFT_CMP_EQ, value: value.to_vec() }
    }

    /// Tests that a packet is of IP of this version, [`IPV4`] or [`IPV6`].
    pub fn is_ip(version: u16) -> Self {
        Self::is(Of::Meta(NFT_META_PROTOCOL), &version.to_be_bytes())
    }

    /// Tests that the bits `mask` of the value `of` a packet are `value`.
    pub fn bits(of: Of, mask: &[u8], value: &[u8]) -> Self {
        Self { mask: mask.to_vec(), ..Self::is(of, value) }
    }

    /// Tests that the value `of` a packet is from `low` to `high`, both included.
    pub fn between(of: Of, low: &[u8], high: &[u8]) -> Vec<Self> {
        let compare = |is, value| Self { is, ..Self::is(of, value) };
        match low == high {
            true => vec![Self::is(of, low)],
            false => vec![compare(NFT_CMP_GTE, low), compare(NFT_CMP_LTE, high)],
        }
    }
}

impl<'a> Expressions<'a> {
    pub(super) const fn new(list: &'a mut Message) -> Self {
        Self { list }
    }

    /// The rule goes on where the test holds.
    pub fn test(&mut self, test: &Test) {
        self.load(test.of, FIRST);
        if !test.mask.is_empty() {
            self.bitwise(&test.mask, &vec![0; test.mask.len()]);
        }
        self.add("cmp", |cmp| {
            cmp.put(NFTA_CMP_SREG, &number(FIRST));
            cmp.put(NFTA_CMP_OP, &number(test.is));
            put_data(cmp, NFTA_CMP_DATA, &test.value);
        });
    }

    /// The rule goes on where the values together, each filled up to 4 bytes, are in the set of that name.
    pub fn is_in(&mut self, values: &[Of], set: &str) {
        for (register, of) in (FIRST..).zip(values) {
            self.load(*of, register);
        }
        self.add("lookup", |lookup| {
            lookup.put(NFTA_LOOKUP_SET, &text(set));
            lookup.put(NFTA_LOOKUP_SREG, &number(FIRST));
        });
    }

    /// Sets what the kernel knows of the packet.
    pub fn set_meta(&mut self, key: u32, value: u32) {
        self.immediate(value);
        self.add("meta", |meta| {
            meta.put(NFTA_META_KEY, &number(key));
            meta.put(NFTA_META_SREG, &number(FIRST));
        });
    }

    /// Writes bits into the first two bytes of the IP header: all but those of `keep`. A checksum at
    /// `checksum` is kept right.
    pub fn set_network(&mut self, keep: [u8; 2], bits: [u8; 2], checksum: Option<u32>) {
        self.load(Of::Network(0, 2), FIRST);
        self.bitwise(&keep, &bits);
        self.add("payload", |payload| {
            payload.put(NFTA_PAYLOAD_SREG, &number(FIRST));
            payload.put(NFTA_PAYLOAD_BASE, &number(NETWORK_HEADER));
            payload.put(NFTA_PAYLOAD_OFFSET, &number(0));
            payload.put(NFTA_PAYLOAD_LEN, &number(2));
            if let Some(at) = checksum {
                payload.put(NFTA_PAYLOAD_CSUM_TYPE, &number(NFT_PAYLOAD_CSUM_INET));
                payload.put(NFTA_PAYLOAD_CSUM_OFFSET, &number(at));
            }
        });
    }

    /// Says what becomes of the packet.
    pub fn verdict(&mut self, verdict: RuleVerdict<'_>) {
        let (code, chain) = match verdict {
            RuleVerdict::Accept => (NF_ACCEPT, None),
            RuleVerdict::Jump(chain) => (NFT_JUMP, Some(chain)),
            RuleVerdict::Goto(chain) => (NFT_GOTO, Some(chain)),
        };
        self.add("immediate", |immediate| {
            immediate.put(NFTA_IMMEDIATE_DREG, &number(NFT_REG_VERDICT));
            immediate.nest(NFTA_IMMEDIATE_DATA | NESTED, |data| {
                data.nest(NFTA_DATA_VERDICT | NESTED, |said| {
                    said.put(NFTA_VERDICT_CODE, &code.to_be_bytes());
                    if let Some(chain) = chain {
                        said.put(NFTA_VERDICT_CHAIN, &text(chain));
                    }
                });
            });
        });
    }

    /// Sends the packet out by the device of that index.
    pub fn forward_to(&mut self, index: u32) {
        self.immediate(index);
        self.add("fwd", |fwd| fwd.put(NFTA_FWD_SREG_DEV, &number(FIRST)));
    }

    /// An expression by its name.
    pub fn add(&mut self, name: &str, fill: impl FnOnce(&mut Message)) {
        self.list.nest(NFTA_LIST_ELEM | NESTED, |element| {
            element.put(NFTA_EXPR_NAME, &text(name));
            element.nest(NFTA_EXPR_DATA | NESTED, fill);
        });
    }

    fn load(&mut self, of: Of, register: u32) {
        let (base, offset, len) = match of {
            Of::Meta(key) => {
                return self.add("meta", |meta| {
                    meta.put(NFTA_META_DREG, &number(register));
                    meta.put(NFTA_META_KEY, &number(key));
                });
            }
            Of::Network(offset, len) => (NETWORK_HEADER, offset, len),
            Of::Transport(offset, len) => (TRANSPORT_HEADER, offset, len),
        };
        self.add("payload", |payload| {
            payload.put(NFTA_PAYLOAD_DREG, &number(register));
            payload.put(NFTA_PAYLOAD_BASE, &number(base));
            payload.put(NFTA_PAYLOAD_OFFSET, &number(offset));
            payload.put(NFTA_PAYLOAD_LEN, &number(len));
        });
    }

    fn bitwise(&mut self, mask: &[u8], xor: &[u8]) {
        self.add("bitwise", |bitwise| {
            bitwise.put(NFTA_BITWISE_SREG, &number(FIRST));
            bitwise.put(NFTA_BITWISE_DREG, &number(FIRST));
            bitwise.put(NFTA_BITWISE_LEN, &number(mask.len() as u32));
            put_data(bitwise, NFTA_BITWISE_MASK, mask);
            put_data(bitwise, NFTA_BITWISE_XOR, xor);
        });
    }

    /// A number of this machine, not of a packet.
    fn immediate(&mut self, value: u32) {
        self.add("immediate", |immediate| {
            immediate.put(NFTA_IMMEDIATE_DREG, &number(FIRST));
            put_data(immediate, NFTA_IMMEDIATE_DATA, &value.to_ne_bytes());
        });
    }
}

fn put_data(message: &mut Message, attribute: u16, value: &[u8]) {
    message.nest(attribute | NESTED, |data| data.put(NFTA_DATA_VALUE, value));
}

/// The register that is used where one is enough: NFT_REG32_00.
const FIRST: u32 = 8;
pub(crate) const IPV4: u16 = libc::ETH_P_IP as u16;
pub(crate) const IPV6: u16 = libc::ETH_P_IPV6 as u16;
// include/uapi/linux/netfilter.h, netfilter/nf_tables.h
const NF_ACCEPT: i32 = 1;
const NFT_JUMP: i32 = -3;
const NFT_GOTO: i32 = -4;
const NFT_REG_VERDICT: u32 = 0;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;
const NFTA_VERDICT_CHAIN: u16 = 2;
const NFTA_IMMEDIATE_DREG: u16 = 1;
const NFTA_IMMEDIATE_DATA: u16 = 2;
const NFTA_META_DREG: u16 = 1;
const NFTA_META_KEY: u16 = 2;
const NFTA_META_SREG: u16 = 3;
const NFT_META_PROTOCOL: u32 = 1;
pub(crate) const NFT_META_PRIORITY: u32 = 2;
pub(crate) const NFT_META_IIFNAME: u32 = 6;
pub(crate) const NFT_META_OIFNAME: u32 = 7;
pub(crate) const NFT_META_L4PROTO: u32 = 16;
const NFTA_CMP_SREG: u16 = 1;
const NFTA_CMP_OP: u16 = 2;
const NFTA_CMP_DATA: u16 = 3;
const NFT_CMP_EQ: u32 = 0;
pub(crate) const NFT_CMP_NEQ: u32 = 1;
pub(crate) const NFT_CMP_LTE: u32 = 3;
const NFT_CMP_GTE: u32 = 5;
const NFTA_BITWISE_SREG: u16 = 1;
const NFTA_BITWISE_DREG: u16 = 2;
const NFTA_BITWISE_LEN: u16 = 3;
const NFTA_BITWISE_MASK: u16 = 4;
const NFTA_BITWISE_XOR: u16 = 5;
const NFTA_LOOKUP_SET: u16 = 1;
const NFTA_LOOKUP_SREG: u16 = 2;
const NFTA_PAYLOAD_DREG: u16 = 1;
const NFTA_PAYLOAD_BASE: u16 = 2;
const NFTA_PAYLOAD_OFFSET: u16 = 3;
const NFTA_PAYLOAD_LEN: u16 = 4;
const NFTA_PAYLOAD_SREG: u16 = 5;
const NFTA_PAYLOAD_CSUM_TYPE: u16 = 6;
const NFTA_PAYLOAD_CSUM_OFFSET: u16 = 7;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
const NFT_PAYLOAD_CSUM_INET: u32 = 1;
const NFTA_FWD_SREG_DEV: u16 = 1;
