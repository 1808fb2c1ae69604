//! What all requests of traffic control share: numbers of include/uapi/linux/rtnetlink.h, and values as `tc` writes them.

use weir_core::Duration;

use crate::message::{About, Message};

/// Says which discipline or filter it is.
pub(crate) fn put_kind(message: &mut Message, name: &str) {
    message.put(TCA_KIND, format!("{name}\0").as_bytes());
}

/// A request that makes or changes a discipline, as `flags` say, without options yet.
pub(crate) fn new_qdisc(flags: u16, about: About, name: &str) -> Message {
    let mut message = Message::new(RTM_NEWQDISC, flags, about);
    put_kind(&mut message, name);
    message
}

/// The kernel's own cut of a number of 32 bits.
pub(super) fn short(number: u64) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

/// A time in the kernel's microseconds.
pub(super) fn microseconds(time: Duration) -> u32 {
    short(time.as_nanos() / 1_000)
}

pub(crate) const RTM_NEWQDISC: u16 = 36;
pub(crate) const RTM_DELQDISC: u16 = 37;
pub(crate) const RTM_GETQDISC: u16 = 38;
pub(crate) const RTM_NEWTCLASS: u16 = 40;
pub(crate) const RTM_GETTCLASS: u16 = 42;
pub(crate) const RTM_GETTFILTER: u16 = 46;
pub(crate) const TC_H_ROOT: u32 = u32::MAX;
pub(crate) const TC_H_INGRESS: u32 = 0xffff_fff1;
pub(crate) const TCA_KIND: u16 = 1;
pub(crate) const TCA_OPTIONS: u16 = 2;
pub(crate) const TCA_STAB: u16 = 8;
