//! Filters of the kind `u32`: include/uapi/linux/pkt_cls.h, in the words that `tc` uses.

use crate::message::{About, Message};
use crate::tc::options::TCA_OPTIONS;
use crate::tc::put_kind;

use super::CREATE;

/// Four bytes of a packet, counted from the IP header on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub at: u32,
    pub mask: u32,
    pub value: u32,
}

impl Key {
    pub const fn word(at: u32, value: u32) -> Self {
        Self { at, mask: u32::MAX, value }
    }

    pub const fn byte(at: u32, value: u8) -> Self {
        Self { at, mask: 0xff << 24, value: (value as u32) << 24 }
    }

    pub const fn any(self) -> Self {
        Self { mask: 0, ..self }
    }
}

/// Request for a filter that puts packets which match all of `keys` into a class.
pub(super) fn classify(about: About, kind: (u16, u16), keys: &[Key], class: u32) -> Vec<u8> {
    let mut message = new_filter(about, kind, "u32");
    message.nest(TCA_OPTIONS, |options| {
        options.put_u32(TCA_U32_CLASSID, class);
        options.put(TCA_U32_SEL, &selector(keys));
    });
    message.finish()
}

/// `struct tc_u32_sel`: all keys must match, and then the filter has found it.
pub(super) fn selector(keys: &[Key]) -> Vec<u8> {
    let mut bytes = vec![TC_U32_TERMINAL, 0, keys.len() as u8, 0];
    bytes.extend([0; 12]);
    for key in keys {
        bytes.extend(key.mask.to_be_bytes());
        bytes.extend(key.value.to_be_bytes());
        bytes.extend(key.at.to_ne_bytes());
        bytes.extend([0; 4]);
    }
    bytes
}

/// A filter called `name` of that preference and protocol, without options yet.
pub(super) fn new_filter(about: About, kind: (u16, u16), name: &str) -> Message {
    let mut message = filter(RTM_NEWTFILTER, CREATE, about, kind);
    put_kind(&mut message, name);
    message
}

/// A request about the filters of that preference and protocol.
pub(super) fn filter(
    request: u16,
    flags: u16,
    about: About,
    (preference, protocol): (u16, u16),
) -> Message {
    let info = u32::from(preference) << 16 | u32::from(protocol.to_be());
    Message::about_filter(request, flags, about, info)
}

// include/uapi/linux/rtnetlink.h, pkt_cls.h
const RTM_NEWTFILTER: u16 = 44;
const TCA_U32_CLASSID: u16 = 1;
pub(super) const TCA_U32_SEL: u16 = 5;
const TC_U32_TERMINAL: u8 = 1;
