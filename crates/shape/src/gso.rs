//! GSO packets, which the kernel makes of up to 64 KB of a connection: which ones stay whole, and what they count
//! as.

use weir_core::{Duration, ETHERNET_HEADER, Framing, Rate};
use weir_linux::Writes;
use weir_packet::Headers;
use weir_qdisc::{Device, GsoPackets, QueueSpec};
use weir_rate_control::Side;

use crate::ShapeError;
use crate::settings::Settings;

/// Which GSO packets of a side stay whole: those that do not take too long at its rate, if its discipline takes any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepGso {
    /// The longest that a packet may take; `None` where none stays whole.
    max: Option<Duration>,
    /// The least of the rates of classes.
    least: Option<Rate>,
}

impl KeepGso {
    /// What holds for a side that is shaped; `None` for one that is not.
    pub fn of(settings: &Settings, side: Side) -> Result<Option<Self>, ShapeError> {
        let Some(text) = &settings.queues[side as usize] else { return Ok(None) };
        let marked = settings.rules.as_ref().is_some_and(|rules| rules.mark);
        let max = match QueueSpec::parse(text)?.gso_packets(&Device::default())? {
            _ if marked => None,
            GsoPackets::Whole => Some(MAX_WHOLE),
            GsoPackets::Split => Some(MAX_SPLIT),
            GsoPackets::Segments => None,
        };
        let least = settings.rules.as_ref().and_then(|rules| rules.least_cap(side));
        Ok(Some(Self { max, least }))
    }

    /// What may be written into packets of the side.
    pub const fn writes(&self) -> Writes {
        match self.max {
            Some(_) => Writes::Marks,
            None => Writes::Anything,
        }
    }

    /// Whether GSO packets stay whole at `rate`, or where there is none.
    pub fn at(&self, rate: Option<Rate>) -> bool {
        let Some(max) = self.max else { return false };
        let slowest = rate.into_iter().chain(self.least).min();
        let bits = MAX_GSO_BYTES * 8;
        slowest.is_none_or(|it| bits * 1_000_000_000 <= max.as_nanos().saturating_mul(it.as_bps()))
    }
}

/// Segments of a GSO packet, as they are on the line.
///
/// The kernel does not tell how long they are: they are taken to be as long as the device and the Internet allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segments {
    count: u32,
    /// Bytes of each with its IP header, and of the last.
    len: u32,
    last_len: u32,
}

impl Segments {
    /// The segments of a GSO packet on a device of this `mtu`.
    pub fn of(headers: &Headers, mtu: u32) -> Self {
        let header = headers.payload_offset as u32;
        let payload = headers.payload_len() as u32;
        let most = mtu.min(MAX_SEGMENT_BYTES).saturating_sub(header);
        // There are two at least, or it were none.
        let most = most.min(payload.div_ceil(2)).max(1);
        let count = payload.div_ceil(most).max(1);
        let last = payload - most * (count - 1);
        Self { count, len: header + most, last_len: header + last }
    }

    /// Bytes that the packet counts as in a queue: those of its segments, as in Linux (`qdisc_pkt_len_init`).
    pub const fn queue_len(&self) -> u32 {
        self.len * (self.count - 1) + self.last_len + ETHERNET_HEADER * self.count
    }

    /// Bytes of a line that counts as `framing` does.
    pub const fn wire_bytes(&self, framing: &Framing) -> u64 {
        framing.wire_bytes(self.len) * (self.count - 1) as u64 + framing.wire_bytes(self.last_len)
    }
}

/// The longest GSO packet (GSO_LEGACY_MAX_SIZE, include/linux/netdevice.h).
const MAX_GSO_BYTES: u64 = 65_536;
/// The longest that the others wait for a packet of a discipline that Linux hands whole ones to: less than
/// CoDel's target of 5 ms (RFC 8289, section 4.4), so that none is a queue by itself. That is from 132 Mbit/s on.
const MAX_WHOLE: Duration = Duration::from_millis(4);
/// Likewise where Linux splits them: the millisecond of its rate for which `htb` bursts in sqm-scripts, and that
/// TCP puts into a packet by itself (`tcp_tso_autosize`). That is from 525 Mbit/s on.
const MAX_SPLIT: Duration = Duration::from_millis(1);
/// The longest packet of the Internet: a device in front of a modem may take longer ones.
const MAX_SEGMENT_BYTES: u32 = 1_500;

#[cfg(test)]
mod tests {
    use weir_packet::{craft, parse};

    use super::*;

    fn keep(max: Duration, least: Option<Rate>) -> KeepGso {
        KeepGso { max: Some(max), least }
    }

    #[test]
    fn a_packet_stays_whole_where_it_takes_a_short_time() {
        let split = keep(MAX_SPLIT, None);
        assert_eq!([524, 525].map(|mbps| split.at(Some(Rate::from_mbit(mbps)))), [false, true]);
        let whole = keep(MAX_WHOLE, None);
        assert_eq!([131, 132].map(|mbps| whole.at(Some(Rate::from_mbit(mbps)))), [false, true]);
        assert!(split.at(None) && whole.at(None));
        let none = KeepGso { max: None, least: None };
        assert!(!none.at(None) && !none.at(Some(Rate::from_mbit(10_000))));
    }

    #[test]
    fn a_class_of_a_lower_rate_counts() {
        let capped = keep(MAX_SPLIT, Some(Rate::from_mbit(2)));
        assert!(!capped.at(None) && !capped.at(Some(Rate::from_mbit(1_000))));
    }

    /// A packet of IPv4 and TCP without options with so much payload, and its segments.
    fn segments(payload: usize, mtu: u32) -> Segments {
        let (_, packet) =
            craft::Tcp::new("10.0.0.1:1000", "10.0.1.1:2000").super_packet(payload, 100);
        let headers = parse(&packet).unwrap();
        assert_eq!(headers.payload_offset, 52);
        Segments::of(&headers, mtu)
    }

    #[test]
    fn a_packet_counts_as_its_segments_do() {
        let three = segments(1448 * 2 + 100, 1500);
        assert_eq!(three, Segments { count: 3, len: 1500, last_len: 152 });
        assert_eq!(three.queue_len(), 1514 * 2 + 166);
        assert_eq!(three.wire_bytes(&Framing::ETHERNET), 1538 * 2 + 190);
        assert_eq!(three.wire_bytes(&Framing::ATM), (32 * 2 + 4) * 53);
        assert_eq!(segments(1448 * 44, 1500), Segments { count: 44, len: 1500, last_len: 1500 });
    }

    #[test]
    fn segments_are_no_longer_than_the_device_and_the_internet_allow() {
        assert_eq!(segments(1228 * 3, 1280), Segments { count: 3, len: 1280, last_len: 1280 });
        assert_eq!(segments(1448 * 3, 9000), segments(1448 * 3, 1500));
        // One that would fit in one packet is of two at least.
        assert_eq!(segments(1001, 1500), Segments { count: 2, len: 553, last_len: 552 });
    }
}
