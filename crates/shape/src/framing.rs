//! How bytes are counted, where nobody says it: by what the device is.

use weir_core::Framing;
use weir_linux::{DeviceFacts, device_facts};

use crate::ShapeError;

/// A framing and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The framing.
    pub framing: Framing,
    /// Reason for this framing, in one sentence.
    pub why: &'static str,
}

/// The framing of a device, as far as the device itself tells: a modem behind Ethernet does not say how it
/// wraps packets.
///
/// # Errors
/// If there is no such device.
pub fn detect_framing(device: &str) -> Result<Found, ShapeError> {
    Ok(found(device, &device_facts(device)?))
}

fn found(device: &str, facts: &DeviceFacts) -> Found {
    let ethernet = |more: u32| Framing {
        overhead_bytes: Framing::ETHERNET.overhead_bytes + more,
        ..Framing::ETHERNET
    };
    let (framing, why) = match (facts.hardware, facts.kind.as_deref()) {
        (PPP, _) if facts.atm && !facts.pppoe => (
            PPPOA,
            "PPP over an ATM device of this machine: PPPoA, VC-MUX 10 bytes a packet, in cells",
        ),
        (PPP, _) if facts.pppoe => {
            (ethernet(PPPOE_BYTES), "PPP over Ethernet: 8 bytes a packet more than Ethernet's 38")
        }
        (PPP, _) => (Framing { overhead_bytes: 4, ..Framing::NONE }, "PPP: 4 bytes a packet"),
        (ETHER, _) if facts.atm && device.starts_with("nas") => (
            Framing::ATM,
            "Ethernet over an ATM device of this machine: 32 bytes a packet, in cells",
        ),
        (ETHER, Some("vlan")) => {
            (ethernet(VLAN_BYTES), "a VLAN: 4 bytes a packet more than Ethernet's 38")
        }
        (ETHER, _) if facts.wireless => (
            Framing::ETHERNET,
            "a radio, whose air time no framing describes: as Ethernet, 38 bytes",
        ),
        (ETHER, _) => (
            Framing::ETHERNET,
            "Ethernet: 38 bytes a packet; a modem behind it does not tell how it wraps packets",
        ),
        _ => (Framing::NONE, "a device that carries IP and nothing else"),
    };
    Found { framing, why }
}

/// RFC 2516 with RFC 1661's protocol field: 6 + 2.
const PPPOE_BYTES: u32 = 8;
/// IEEE 802.1Q.
const VLAN_BYTES: u32 = 4;
/// `pppoa-vcmux` of tc-cake(8): PPP 2 and AAL5 8.
const PPPOA: Framing =
    Framing { overhead_bytes: 10, minimum_bytes: 0, cells: weir_core::Cells::Atm };
// include/uapi/linux/if_arp.h
const ETHER: u16 = 1;
const PPP: u16 = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_what_a_packet_of_1500_bytes_counts_there() {
        let bytes =
            |device: &str, facts: DeviceFacts| found(device, &facts).framing.wire_bytes(1500);
        let of = |hardware| DeviceFacts { hardware, ..DeviceFacts::default() };
        assert_eq!(bytes("eth0", of(ETHER)), 1538);
        let vlan = DeviceFacts { kind: Some("vlan".to_owned()), ..of(ETHER) };
        assert_eq!(bytes("eth0.7", vlan), 1542);
        assert_eq!(bytes("ppp0", DeviceFacts { pppoe: true, ..of(PPP) }), 1546);
        assert_eq!(bytes("ppp0", of(PPP)), 1504);
        // 1510 bytes are 31.5 cells, 1532 are 31.9.
        assert_eq!(bytes("ppp0", DeviceFacts { atm: true, ..of(PPP) }), 32 * 53);
        assert_eq!(bytes("nas0", DeviceFacts { atm: true, ..of(ETHER) }), 32 * 53);
        assert_eq!(bytes("wg0", of(65534)), 1500);
    }
}
