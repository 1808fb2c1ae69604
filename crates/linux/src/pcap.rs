//! What arrives at both ends, as a pcapng file (draft-ietf-opsawg-pcapng).

use std::borrow::Cow;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use weir_core::{Packet, Time};
use weir_path::End;

use crate::LinuxError;
use crate::router::Router;

/// A capture being written.
pub(crate) struct Capture {
    writer: PcapNgWriter<BufWriter<File>>,
    file: PathBuf,
    packet: Vec<u8>,
}

impl Capture {
    pub fn create(file: &Path) -> Result<Self, LinuxError> {
        let fail = |error: &dyn std::fmt::Display| {
            LinuxError::io(&format!("cannot write the capture `{}`", file.display()), error)
        };
        let out = File::create_new(file).map_err(|error| fail(&error))?;
        let mut writer = PcapNgWriter::new(BufWriter::new(out)).map_err(|error| fail(&error))?;
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed("weir")),
                // Times are powers of ten: nanoseconds.
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        };
        writer.write_pcapng_block(interface).map_err(|error| fail(&error))?;
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
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: std::time::Duration::from_nanos(at.as_nanos()),
            original_len: self.packet.len() as u32,
            data: Cow::Borrowed(&self.packet),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(block).map(|_| ()).map_err(|error| {
            LinuxError::io(&format!("cannot write the capture `{}`", self.file.display()), error)
        })
    }

    pub fn finish(self) -> Result<(), LinuxError> {
        let file = self.file;
        self.writer.into_inner().into_inner().map(|_| ()).map_err(|error| {
            LinuxError::io(&format!("cannot write the capture `{}`", file.display()), error)
        })
    }
}
