//! The duty of the guard of a device that is shaped by the kernel's own disciplines.

use std::os::fd::RawFd;

use super::undo::Undo;
use crate::guard::Duty;
use crate::netlink::Netlink;

/// Brings back the disciplines that were there before. The kernel's own need nobody who is awake.
pub(super) struct PutBack {
    pub netlink: Netlink,
    pub undo: Undo,
}

impl Duty for PutBack {
    fn socket(&self) -> RawFd {
        self.netlink.fd()
    }

    fn hold(&self) -> Result<(), i32> {
        Ok(())
    }

    fn open(&self) -> Result<(), i32> {
        Ok(())
    }

    fn end(&self) {
        self.undo.run(self.netlink.fd());
    }
}
