//! How disciplines take GSO packets.

use super::{QueueSpec, SpecError};
use crate::Device;
use crate::cake::CakeOptions;

/// Form in which a discipline takes GSO packets, which are up to 64 KB of a connection in one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoPackets {
    /// Whole: to Linux' own discipline of that name each is a packet like any other.
    Whole,
    /// Split, as Linux' own discipline does it by default (`split-gso` of `cake`); whole, it only costs delay.
    Split,
    /// Segments only: its limits are below a whole one, it holds packets at a rate of its own, or it writes
    /// into packets that are not marked. Trees are among these, whatever is in them.
    Segments,
}

impl QueueSpec {
    /// The form in which this discipline takes GSO packets on a port of `device`.
    ///
    /// # Errors
    /// If a value is not of its parameter's kind or out of range.
    pub fn gso_packets(&self, device: &Device) -> Result<GsoPackets, SpecError> {
        if !self.stands_alone() {
            return Ok(GsoPackets::Segments);
        }
        Ok(match self.discipline.name {
            "pfifo" | "pfifo_head_drop" | "codel" | "fq_codel" => GsoPackets::Whole,
            "cake" => self.read::<CakeOptions>(device)?.gso_packets(),
            _ => GsoPackets::Segments,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::GsoPackets::{Segments, Split, Whole};
    use super::*;

    #[test]
    fn disciplines_take_gso_packets_as_linux_does_or_not_at_all() {
        let of =
            |text: &str| QueueSpec::parse(text).unwrap().gso_packets(&Device::default()).unwrap();
        for (text, expected) in [
            ("pfifo limit 100", Whole),
            ("pfifo_head_drop", Whole),
            ("codel", Whole),
            ("fq_codel ecn", Whole),
            ("cake diffserv4 dual-srchost", Split),
            ("cake unlimited rtt 50ms", Split),
            ("cake wash", Segments),
            ("cake bandwidth 10mbit", Segments),
            ("bfifo limit 30000", Segments),
            ("tbf rate 10mbit burst 10kb latency 50ms", Segments),
            ("htb rate 10mbit fq_codel", Segments),
            ("dualpi2", Segments),
            ("prio fq_codel", Segments),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
