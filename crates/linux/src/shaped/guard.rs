//! The duty of the guard of a device that is shaped by the kernel's own disciplines.

use std::ffi::CString;
use std::os::fd::RawFd;

use nix::unistd::unlink;

use super::undo::Undo;
use crate::guard::Duty;
use crate::netlink::Netlink;

/// Brings back the disciplines that were there before. The kernel's own need nobody who is awake.
pub(super) struct PutBack {
    pub netlink: Netlink,
    pub undo: Undo,
    /// The file that keeps it for the next start, if its name can be told to the kernel.
    pub record: Option<CString>,
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
        let is_whole = self.undo.run(self.netlink.fd());
        if let Some(file) = self.record.as_ref().filter(|_| is_whole) {
            let _ = unlink(file.as_c_str());
        }
    }
}
