//! Packets that arrive at both ends, as a pcapng file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use weir_core::{Packet, Time};
use weir_linux::LinuxError;
use weir_path::End;
use weir_record::pcapng::Writer;
use weir_scenario::ClientPaths;

use crate::router::Router;

/// A capture being written, in the order in which packets arrive.
pub(crate) struct Capture {
    writer: Writer<BufWriter<File>>,
    file: PathBuf,
    kept: Kept,
}

impl Capture {
    /// Creates `file`, with an interface for each of the client's `paths`.
    pub fn create(file: &Path, paths: &ClientPaths) -> Result<Self, LinuxError> {
        let mut names: Vec<&str> = paths.names().iter().map(String::as_str).collect();
        if names.is_empty() {
            names.push("weir");
        }
        let writer = File::create_new(file)
            .and_then(|out| Writer::new(BufWriter::new(out), &names, None))
            .map_err(|error| unwritten(file, error))?;
        Ok(Self { writer, file: file.to_owned(), kept: Kept::default() })
    }

    /// Keeps `packet`, which arrives at `end` at `at`. The ends are dealt with one after the other, so that another may
    /// have what arrived before.
    pub fn keep(&mut self, router: &Router, packet: &Packet, end: End, at: Time) {
        self.kept.push(at, router.path_of(packet), |bytes| router.arrived(packet, end, bytes));
    }

    /// Writes what arrived before `until`: nothing older than that may be kept any more.
    pub fn write_until(&mut self, until: Time) -> Result<(), LinuxError> {
        while let Some((at, interface, bytes)) = self.kept.pop_before(until) {
            self.writer
                .write(interface, at.as_nanos(), &bytes)
                .map_err(|error| unwritten(&self.file, error))?;
            self.kept.spare.push(bytes);
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<(), LinuxError> {
        self.write_until(Time::MAX)?;
        self.writer.finish().map_err(|error| unwritten(&self.file, error))
    }
}

/// When a packet arrives, which of them it was, on which interface, and its bytes.
type Arrived = (Time, u64, u32, Vec<u8>);

/// Packets that wait for older ones.
#[derive(Default)]
struct Kept {
    order: BinaryHeap<Reverse<Arrived>>,
    count: u64,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
}

impl Kept {
    fn push(&mut self, at: Time, interface: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        fill(&mut bytes);
        self.order.push(Reverse((at, self.count, interface, bytes)));
        self.count += 1;
    }

    /// The oldest of those that arrive before `until`; of several at a time the one that was kept first.
    fn pop_before(&mut self, until: Time) -> Option<(Time, u32, Vec<u8>)> {
        let first = self.order.peek_mut().filter(|first| first.0.0 < until)?;
        let Reverse((at, _, interface, bytes)) = std::collections::binary_heap::PeekMut::pop(first);
        Some((at, interface, bytes))
    }
}

fn unwritten(file: &Path, error: io::Error) -> LinuxError {
    LinuxError::io(&format!("cannot write the capture `{}`", file.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_in_the_order_of_their_times_and_then_as_they_were_kept() {
        let mut kept = Kept::default();
        for (at, name) in [(30, b'c'), (40, b'e'), (10, b'a'), (20, b'b'), (30, b'd')] {
            kept.push(Time::from_nanos(at), 0, |bytes| *bytes = vec![name]);
        }
        let mut popped = |until| {
            let next = || kept.pop_before(Time::from_nanos(until)).map(|(_, _, bytes)| bytes[0]);
            String::from_utf8(std::iter::from_fn(next).collect()).unwrap()
        };
        assert_eq!(popped(30), "ab");
        assert_eq!(popped(31), "cd");
        assert_eq!(popped(u64::MAX), "e");
    }
}
