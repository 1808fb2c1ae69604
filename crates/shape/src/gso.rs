//! GSO packets, which the kernel makes of up to 64 KB of a connection: which ones stay whole, and what they count
//! as.

use weir_core::{Duration, ETHERNET_HEADER, Framing, Rate};
use weir_linux::Writes;
use weir_packet::Headers;
use weir_qdisc::{Device, GsoPackets, QueueSpec};
use weir_rate_control::Side;

use crate::ShapeError;
use crate::settings::Settings;
use crate::wakes::PERIOD;

/// Which GSO packets of a side stay whole, if its discipline takes any: all, where the longest does not take too long
/// at its rate, else those that take no longer than packets that leave together [anyway](PERIOD).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepGso {
    /// The longest that a packet may take where all stay whole; `None` where none does.
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

    /// The length in bytes up to which GSO packets stay whole at `rate`, or where there is none.
    pub fn up_to(&self, rate: Option<Rate>) -> u32 {
        let Some(max) = self.max else { return 0 };
        let Some(slowest) = rate.into_iter().chain(self.least).min() else { return u32::MAX };
        let in_time = |time: Duration| {
            let bytes = u128::from(time.as_nanos()) * u128::from(slowest.as_bps()) / 8_000_000_000;
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        if in_time(max) >= MAX_GSO_BYTES { u32::MAX } else { in_time(PERIOD) }
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
const MAX_GSO_BYTES: u32 = 65_536;
/// The longest that the others wait, where all stay whole, for a packet of a discipline that Linux hands whole ones
/// to: less than CoDel's target of 5 ms (RFC 8289, section 4.4), so that none is a queue by itself. That is from
/// 132 Mbit/s on.
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

    fn at(keep: KeepGso, mbps: u64) -> u32 {
        keep.up_to(Some(Rate::from_mbit(mbps)))
    }

    #[test]
    fn all_packets_stay_whole_where_the_longest_takes_a_short_time() {
        let split = keep(MAX_SPLIT, None);
        assert_eq!([at(split, 525), split.up_to(None)], [u32::MAX; 2]);
        let whole = keep(MAX_WHOLE, None);
        assert_eq!([at(whole, 132), whole.up_to(None)], [u32::MAX; 2]);
        let none = KeepGso { max: None, least: None };
        assert_eq!([none.up_to(None), at(none, 10_000)], [0, 0]);
    }

    #[test]
    fn others_stay_whole_where_they_take_no_longer_than_what_leaves_together() {
        let split = keep(MAX_SPLIT, None);
        assert_eq!([24, 48, 150, 524].map(|mbps| at(split, mbps)), [1_500, 3_000, 9_375, 32_750]);
        assert_eq!([24, 131].map(|mbps| at(keep(MAX_WHOLE, None), mbps)), [1_500, 8_187]);
    }

    #[test]
    fn a_class_of_a_lower_rate_counts() {
        let capped = keep(MAX_SPLIT, Some(Rate::from_mbit(2)));
        assert_eq!([capped.up_to(None), at(capped, 1_000), at(capped, 1)], [125, 125, 62]);
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
