//! Packets that arrive at both ends, as a pcapng file.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use weir_core::{Packet, Time};
use weir_linux::LinuxError;
use weir_path::End;
use weir_record::pcapng::Writer;
use weir_scenario::ClientPaths;

use crate::router::Router;

/// A capture being written.
pub(crate) struct Capture {
    writer: Writer<BufWriter<File>>,
    file: PathBuf,
    packet: Vec<u8>,
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
        Ok(Self { writer, file: file.to_owned(), packet: Vec::new() })
    }

    /// Writes `packet`, which arrives at `end` at `at`.
    pub fn write(
        &mut self,
        router: &Router,
        packet: &Packet,
        end: End,
        at: Time,
    ) -> Result<(), LinuxError> {
        router.arrived(packet, end, &mut self.packet);
        self.writer
            .write(router.path_of(packet), at.as_nanos(), &self.packet)
            .map_err(|error| unwritten(&self.file, error))
    }

    pub fn finish(self) -> Result<(), LinuxError> {
        self.writer.finish().map_err(|error| unwritten(&self.file, error))
    }
}

fn unwritten(file: &Path, error: io::Error) -> LinuxError {
    LinuxError::io(&format!("cannot write the capture `{}`", file.display()), error)
}
