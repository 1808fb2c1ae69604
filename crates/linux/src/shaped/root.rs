//! What a shaper makes at the root of a device.

use crate::message::{About, Message};
use crate::tc::rtnetlink::{TC_H_ROOT, new_qdisc};

/// A request about a discipline of ours at the root, without options yet.
pub(super) fn at_root(flags: u16, index: u32, name: &str) -> Message {
    new_qdisc(flags, About { index, handle: OURS, parent: TC_H_ROOT }, name)
}

/// The handle of our root disciplines, by which we know them again.
pub(super) const OURS: u32 = 0x7765 << 16;
