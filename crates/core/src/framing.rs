//! Framing: how many bytes of the line an IP packet occupies.
//!
//! The named framings are those of `tc-cake(8)`, so that a shaper and the line that it stands for can
//! be given the same word.

use serde::{Deserialize, Serialize};

/// How an IP packet is wrapped on a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Framing {
    /// Bytes added to every IP packet.
    pub overhead_bytes: u32,
    /// The least that a framed packet occupies.
    pub minimum_bytes: u32,
    /// How the framed packet is cut up.
    pub cells: Cells,
}

/// How a framed packet is cut up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cells {
    /// It is not.
    #[default]
    None,
    /// ATM, as ADSL has it: whole cells of 53 bytes with 48 of payload.
    Atm,
    /// PTM, as VDSL2 has it: a byte more for every 64 begun (64b/65b).
    Ptm,
}

impl Framing {
    /// The framings that have a name.
    pub const NAMED: &[(&str, Self)] = &[
        ("none", Self::NONE),
        ("ethernet", Self::ETHERNET),
        ("docsis", Self::DOCSIS),
        ("ptm", Self::PTM),
        ("atm", Self::ATM),
    ];

    /// The line counts IP bytes and nothing else.
    pub const NONE: Self = Self { overhead_bytes: 0, minimum_bytes: 0, cells: Cells::None };

    /// Ethernet with everything that takes time: header 14, check sequence 4, preamble 8, gap 12.
    pub const ETHERNET: Self = Self { overhead_bytes: 38, minimum_bytes: 84, cells: Cells::None };

    /// DOCSIS cable: the rate that a modem is set to counts the Ethernet frame with its check sequence.
    pub const DOCSIS: Self = Self { overhead_bytes: 18, minimum_bytes: 64, cells: Cells::None };

    /// VDSL2 with bridged Ethernet: header 14, check sequence 4, PTM 4 (`bridged-ptm`).
    pub const PTM: Self = Self { overhead_bytes: 22, minimum_bytes: 0, cells: Cells::Ptm };

    /// ADSL with bridged Ethernet over LLC/SNAP: 10 + 14, AAL5 8 (`bridged-llcsnap`).
    pub const ATM: Self = Self { overhead_bytes: 32, minimum_bytes: 0, cells: Cells::Atm };

    /// Bytes of the line that an IP packet of `ip_len` bytes occupies.
    #[must_use]
    #[inline]
    pub const fn wire_bytes(&self, ip_len: u32) -> u64 {
        let framed = ip_len + self.overhead_bytes;
        let framed = if framed < self.minimum_bytes { self.minimum_bytes } else { framed };
        let framed = framed as u64;
        match self.cells {
            Cells::None => framed,
            Cells::Atm => framed.div_ceil(48) * 53,
            Cells::Ptm => framed + framed.div_ceil(64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_packets_and_acknowledgements_on_every_framing() {
        let bytes = |framing: Framing| (framing.wire_bytes(1500), framing.wire_bytes(52));
        assert_eq!(bytes(Framing::NONE), (1500, 52));
        assert_eq!(bytes(Framing::ETHERNET), (1538, 90));
        assert_eq!(Framing::ETHERNET.wire_bytes(40), 84);
        assert_eq!(bytes(Framing::DOCSIS), (1518, 70));
        assert_eq!(bytes(Framing::PTM), (1522 + 24, 74 + 2));
        // 1532 bytes are 31.9 cells; 84 bytes are 1.75.
        assert_eq!(bytes(Framing::ATM), (32 * 53, 2 * 53));
    }
}
