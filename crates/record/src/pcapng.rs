//! Files of packets (draft-ietf-opsawg-pcapng): one section with one or several interfaces, whose packets begin
//! with an Ethernet header of zeros as those of Linux' loopback do, and whose times are nanoseconds.
//!
//! IP packets need no such header: there is a link type without one, 101. But libpcap (sf-pcapng.c) holds the link types of
//! all interfaces but the first, as they are written, against the first's as it calls that itself, which is 12, and so
//! reads no file of two. Ethernet has one number in both.
//!
//! This is all of the format that captures of lab and simulator need; whoever reads such files reads far more of it.

use std::io::{self, Write};
use std::num::NonZeroU32;

/// A file of packets being written.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    block: Vec<u8>,
    /// Bytes that are kept of a packet.
    snap_len: usize,
}

impl<W: Write> Writer<W> {
    /// Begins a file about `interfaces`, which are numbered as they come. Of each IP packet up to `snap_len` bytes are
    /// kept, all of them if that is `None`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W, interfaces: &[&str], snap_len: Option<NonZeroU32>) -> io::Result<Self> {
        let header = ETHERNET_HEADER_BYTES as u32;
        let snap = snap_len.map_or(NO_SNAP_LENGTH, |len| len.get().saturating_add(header));
        let kept = snap_len.map_or(usize::MAX, |len| len.get() as usize);
        let mut writer = Self { out, block: Vec::new(), snap_len: kept };
        writer.write_block(SECTION_HEADER, |block| {
            block.extend(BYTE_ORDER.to_ne_bytes());
            block.extend(VERSION.map(u16::to_ne_bytes).concat());
            block.extend(UNKNOWN_LENGTH.to_ne_bytes());
        })?;
        for interface in interfaces {
            writer.write_block(INTERFACE_DESCRIPTION, |block| {
                block.extend(LINKTYPE_ETHERNET.to_ne_bytes());
                block.extend([0; 2]);
                block.extend(snap.to_ne_bytes());
                put_option(block, IF_NAME, interface.as_bytes());
                put_option(block, IF_TSRESOL, &[NANOSECONDS]);
                put_option(block, END_OF_OPTIONS, &[]);
            })?;
        }
        Ok(writer)
    }

    /// Adds an IP packet that was seen at interface number `interface` at that time, in nanoseconds.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, interface: u32, at_ns: u64, packet: &[u8]) -> io::Result<()> {
        let kept = &packet[..packet.len().min(self.snap_len)];
        self.write_block(ENHANCED_PACKET, |block| {
            // Which interface, the time's upper and lower half, bytes kept, bytes that there were.
            let (high, low) = ((at_ns >> 32) as u32, at_ns as u32);
            let [len, whole] = [kept, packet].map(|ip| (ETHERNET_HEADER_BYTES + ip.len()) as u32);
            block.extend([interface, high, low, len, whole].map(u32::to_ne_bytes).concat());
            block.extend([0; ETHERNET_HEADER_BYTES - 2]);
            block.extend(ether_type(packet).to_be_bytes());
            put_padded(block, kept);
        })
    }

    /// Ends the file, of which everything is then written.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// A block stands between its length and its length.
    fn write_block(&mut self, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.block.clear();
        fill(&mut self.block);
        let len = ((self.block.len() + AROUND_BLOCK) as u32).to_ne_bytes();
        self.out.write_all(&[kind.to_ne_bytes(), len].concat())?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&len)
    }
}

/// What an Ethernet header calls such an IP packet (IEEE 802).
fn ether_type(packet: &[u8]) -> u16 {
    let is_ipv6 = packet.first().is_some_and(|first| first >> 4 == 6);
    if is_ipv6 { 0x86dd } else { 0x0800 }
}

fn put_option(block: &mut Vec<u8>, kind: u16, value: &[u8]) {
    block.extend(kind.to_ne_bytes());
    block.extend((value.len() as u16).to_ne_bytes());
    put_padded(block, value);
}

/// Adds `value`, then zeros up to a multiple of four bytes, at which the fields of a block begin and end.
fn put_padded(block: &mut Vec<u8>, value: &[u8]) {
    block.extend(value);
    block.resize(block.len().next_multiple_of(4), 0);
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Type, length, and the length again.
const AROUND_BLOCK: usize = 12;
/// Mark by which a reader knows the order of bytes in all numbers: the writer's own.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const VERSION: [u16; 2] = [1, 0];
/// The section ends where the file does.
const UNKNOWN_LENGTH: i64 = -1;
/// Packets begin with an Ethernet header (tcpdump.org/linktypes.html).
const LINKTYPE_ETHERNET: u16 = 1;
/// Where to and where from, and the kind of packet.
const ETHERNET_HEADER_BYTES: usize = 14;
/// Packets are kept whole.
const NO_SNAP_LENGTH: u32 = 0;
const END_OF_OPTIONS: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// Times count units of 10 to the power of minus this.
const NANOSECONDS: u8 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram of one byte from 10.0.0.1, port 12345, to port 7 of 10.0.0.2.
    const DATAGRAM: &str = "4500001d00010000401166cd0a0000010a000002303900070009000055";

    /// A file in which tcpdump 4.99.3 reads two datagrams of one byte from 10.0.0.1:12345 to 10.0.0.2:7, at 1.500000042 s
    /// and 5000 s, of two interfaces.
    const FILE: &str = concat!(
        "0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000",
        "01000000280000000100000000000000020002007570000009000100090000000000000028000000",
        "0100000028000000010000000000000002000400646f776e09000100090000000000000028000000",
        "060000004c00000000000000000000002a2f68592b0000002b000000",
        "0000000000000000000000000800",
        "4500001d00010000401166cd0a0000010a000002303900070009000055",
        "004c000000",
        "060000004c000000010000008c040000005039272b0000002b000000",
        "0000000000000000000000000800",
        "4500001d00010000401166cd0a0000010a000002303900070009000055",
        "004c000000",
    );

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2);
        digits
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_file_is_what_tcpdump_reads() {
        let packet = bytes(DATAGRAM);
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, &["up", "down"], None).unwrap();
        writer.write(0, 1_500_000_042, &packet).unwrap();
        writer.write(1, 5_000_000_000_000, &packet).unwrap();
        writer.finish().unwrap();
        assert_eq!(file, bytes(FILE));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn of_a_packet_that_is_cut_off_the_length_is_told() {
        let packet = bytes(DATAGRAM);
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, &["a", "bc"], NonZeroU32::new(20)).unwrap();
        writer.write(1, 7, &packet).unwrap();
        writer.finish().unwrap();
        // Two interfaces, each with its snap length, an Ethernet header's 14 bytes included, in front of its name.
        assert_eq!(file[28..72][12..16], 34u32.to_le_bytes());
        assert_eq!(file[28..][16..21], [2, 0, 1, 0, b'a']);
        assert_eq!(file[68..][16..22], [2, 0, 2, 0, b'b', b'c']);
        let block = &file[108..];
        assert_eq!(block.len(), 68);
        let number = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().unwrap());
        let numbers = [4, 8, 12, 16, 20, 24].map(number);
        assert_eq!(numbers, [68, 1, 0, 7, 34, 43]);
        assert_eq!(block[42..62], packet[..20]);
    }
}
