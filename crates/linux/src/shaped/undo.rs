//! Requests to the kernel that bring back what was there; they are written before anything is changed.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use nix::sys::socket::{MsgFlags, recv, send};
use weir_core::error_in_words;

/// Requests, in groups: what follows a refused one in its group is left out, since the device is then no
/// longer as we left it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Undo {
    groups: Vec<Vec<Vec<u8>>>,
}

impl Undo {
    /// Adds a group, if there is anything in it.
    pub fn add(&mut self, group: Vec<Vec<u8>>) {
        if !group.is_empty() {
            self.groups.push(group);
        }
    }

    /// Sends everything by the socket `fd` of rtnetlink: whether no group was left half done. What is refused
    /// at the front of a group was not ours any more. Async-signal-safe: nothing is allocated, nothing locked.
    pub fn run(&self, fd: RawFd) -> bool {
        let mut whole = true;
        for group in &self.groups {
            for (place, request) in group.iter().enumerate() {
                if !sent(fd, request) {
                    whole &= place == 0;
                    break;
                }
            }
        }
        whole
    }

    /// All requests in one piece: each group is its length and its requests, which begin with their own.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for group in &self.groups {
            let group = group.concat();
            bytes.extend((group.len() as u32).to_ne_bytes());
            bytes.extend(group);
        }
        bytes
    }

    fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut undo = Self::default();
        while !bytes.is_empty() {
            let (mut group, rest) = split(bytes.get(4..)?, length(bytes)?)?;
            let mut requests = Vec::new();
            while !group.is_empty() {
                let (request, others) = split(group, length(group)?)?;
                requests.push(request.to_vec());
                group = others;
            }
            undo.add(requests);
            bytes = rest;
        }
        Some(undo)
    }
}

fn length(bytes: &[u8]) -> Option<usize> {
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize).filter(|&len| len > 0)
}

fn split(bytes: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    Some((bytes.get(..at)?, bytes.get(at..)?))
}

/// Whether the kernel has done what `request` says.
///
/// Between fork and exit, where this may be, nothing but system calls is allowed: nix adds none here, and asks
/// for no memory.
fn sent(fd: RawFd, request: &[u8]) -> bool {
    let mut answer = [0u8; 4096];
    let heard =
        send(fd, request, MsgFlags::empty()).and_then(|_| recv(fd, &mut answer, MsgFlags::empty()));
    // The code behind the header of NLMSG_ERROR, which every request asks for.
    heard.is_ok_and(|len| len >= 20) && answer[16..20] == [0; 4]
}

/// Where it is kept for the next start, should process and guard be killed alike.
#[derive(Clone, Debug)]
pub(super) struct Record {
    file: PathBuf,
}

impl Record {
    /// The record of `device`, with that index, in this network namespace.
    pub fn of(device: &str, index: u32) -> Self {
        let namespace = fs::metadata("/proc/thread-self/ns/net").map_or(0, |data| data.ino());
        Self { file: PathBuf::from(FOLDER).join(format!("{device}-{index}-{namespace}")) }
    }

    /// Keeps `undo`, seen by root alone. Returns what follows if it could not, in one sentence.
    pub fn write(&self, undo: &Undo) -> Option<String> {
        let error = self.try_to_write(undo).err()?;
        Some(format!(
            "cannot write `{}` ({}): if the shaper and its guard are killed at once, the next start does not \
             know what was at the interface before",
            self.file.display(),
            error_in_words(&error)
        ))
    }

    fn try_to_write(&self, undo: &Undo) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut options = fs::OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&self.file)?;
        file.write_all(&undo.to_bytes())
    }

    /// The name of its file, as the kernel takes it.
    pub fn name(&self) -> Option<CString> {
        CString::new(self.file.as_os_str().as_bytes()).ok()
    }

    pub fn read(&self) -> Option<Undo> {
        Undo::from_bytes(&fs::read(&self.file).ok()?)
    }

    pub fn remove(&self) {
        // It is not there where it could not be written.
        let _ = fs::remove_file(&self.file);
    }
}

const FOLDER: &str = "/run/weir/shape";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_kept_is_told() {
        let file = PathBuf::from("/proc/version/eth0-2-1");
        let why = Record { file }.write(&Undo::default()).expect("nobody writes there");
        assert!(why.starts_with("cannot write `/proc/version/eth0-2-1` ("), "{why}");
    }

    #[test]
    fn what_is_written_is_read() {
        let request = |len: u8| [&[len, 0, 0, 0][..], &vec![7; usize::from(len) - 4]].concat();
        let mut undo = Undo::default();
        undo.add(vec![request(16), request(36)]);
        undo.add(vec![]);
        undo.add(vec![request(20)]);
        let bytes = undo.to_bytes();
        assert_eq!(bytes.len(), 4 + 16 + 36 + 4 + 20);
        assert_eq!(Undo::from_bytes(&bytes), Some(undo));
        assert_eq!(Undo::from_bytes(&bytes[..40]), None, "cut off");
    }
}
