//! What a shaper makes at the root of a device.

use crate::message::{About, CREATE_OR_REPLACE, Message};
use crate::tc::rtnetlink::{RTM_NEWQDISC, TC_H_ROOT, put_kind};

/// The request that makes a discipline of ours at the root, without options yet.
pub(super) fn new_qdisc(index: u32, name: &str) -> Message {
    let about = About { index, handle: OURS, parent: TC_H_ROOT };
    let mut message = Message::new(RTM_NEWQDISC, CREATE_OR_REPLACE, about);
    put_kind(&mut message, name);
    message
}

/// The handle of our root disciplines, by which we know them again.
pub(super) const OURS: u32 = 0x7765 << 16;
