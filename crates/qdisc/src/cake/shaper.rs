//! The shaper: a schedule of when the next packet may leave, without a bucket.
//!
//! Each packet moves the schedule on by the time that it takes on the wire. Time that passes while
//! nothing waits is lost; a wake-up that comes late is made up for.

use weir_core::{Duration, Packet, Time};

/// The time that a byte takes at some rate: `factor` / 2^`shift` ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByteTime {
    factor: u64,
    shift: u32,
}

/// When the next packet may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shaper {
    pub byte_time: ByteTime,
    next: Time,
    /// A second schedule, of packets that were sent, at two thirds of the rate: with `ingress`,
    /// where drops count too, it keeps a flood from stopping everything.
    failsafe: Time,
}

/// Bytes that a packet occupies on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Whether lengths are those of IP packets, or those that Linux reports, Ethernet header
    /// included (`raw`).
    pub beyond_ip: bool,
    /// Bytes added to every packet.
    pub bytes: i32,
    /// The least that a packet counts as.
    pub least: i32,
    /// How it is cut up.
    pub cells: Cells,
}

/// How packets are cut up on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// It is not.
    #[default]
    None,
    /// ATM: cells of 53 bytes with 48 of payload.
    Atm,
    /// PTM: a byte more for each 64, or part of them.
    Ptm,
}

impl ByteTime {
    /// The time of a byte at a rate in bytes per second; 0 stands for no limit.
    pub fn of(bytes_per_sec: u64) -> Self {
        if bytes_per_sec == 0 {
            return Self::default();
        }
        let mut shift = FRACTION_BITS;
        let mut factor = (1_000_000_000 << FRACTION_BITS) / bytes_per_sec.max(MIN_BYTES_PER_S);
        while factor >> FRACTION_BITS != 0 {
            factor >>= 1;
            shift -= 1;
        }
        Self { factor, shift }
    }

    /// How long `bytes` take.
    pub const fn time_of(self, bytes: u32) -> Duration {
        Duration::from_nanos((bytes as u64 * self.factor) >> self.shift)
    }

    pub const fn is_unlimited(self) -> bool {
        self.factor == 0
    }
}

impl Shaper {
    pub fn new(byte_time: ByteTime) -> Self {
        Self { byte_time, ..Self::default() }
    }

    /// The first packet in a while arrives.
    pub fn start(&mut self, now: Time) {
        if self.next < now {
            self.next = now;
            self.failsafe = now;
        }
    }

    /// Until when nothing may leave, if so.
    pub fn closed_until(&self, now: Time) -> Option<Time> {
        let opens = self.next.min(self.failsafe);
        (opens > now).then_some(opens)
    }

    /// A packet that takes `wire` bytes was sent, or dropped in its place.
    pub fn charge(&mut self, wire: u32, sent: bool) {
        let time = self.byte_time.time_of(wire);
        self.next += time;
        if sent {
            self.failsafe += time + time / 2;
        }
    }
}

impl Overhead {
    /// The bytes that `packet` occupies on the wire.
    pub fn wire_len(&self, packet: &Packet) -> u32 {
        let len = if self.beyond_ip { packet.ip_len() } else { packet.len };
        let len = (len as i32 + self.bytes).max(self.least) as u32;
        match self.cells {
            Cells::None => len,
            Cells::Atm => len.div_ceil(48) * 53,
            Cells::Ptm => len + len.div_ceil(64),
        }
    }
}

/// Precision of [`ByteTime`] (`cake_set_rate`).
const FRACTION_BITS: u32 = 34;
/// In bytes per second: a rate below it would hold a packet for minutes (`MIN_RATE`).
const MIN_BYTES_PER_S: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(ip_len: u32) -> Packet {
        Packet {
            handle: 0,
            enqueued_at: Time::ZERO,
            label: weir_core::FlowLabel::default(),
            len: ip_len + 14,
            flow_id: 0,
            dscp: weir_core::Dscp::BE,
            ecn: weir_core::Ecn::NotEct,
        }
    }

    #[test]
    fn times_are_rounded_down_as_in_linux() {
        assert_eq!(ByteTime::of(1_250_000).time_of(1514).as_nanos(), 1_211_200);
        // 8e9 / 24e6 = 333.3 ns a byte.
        assert_eq!(ByteTime::of(3_000_000).time_of(100).as_nanos(), 33_333);
        // The slowest: 64 bytes per second, whatever is asked for.
        assert_eq!(ByteTime::of(1).time_of(64).as_nanos(), 1_000_000_000);
        assert!(ByteTime::of(0).is_unlimited());
        assert_eq!(ByteTime::of(0).time_of(1514), Duration::ZERO);
    }

    #[test]
    fn lengths_are_those_of_the_wire() {
        let raw = Overhead::default();
        assert_eq!(raw.wire_len(&packet(1500)), 1514);
        let ethernet = Overhead { beyond_ip: true, bytes: 38, least: 84, cells: Cells::None };
        assert_eq!(ethernet.wire_len(&packet(1500)), 1538);
        assert_eq!(ethernet.wire_len(&packet(40)), 84);
        let pppoe = Overhead { beyond_ip: true, bytes: 40, least: 0, cells: Cells::Atm };
        assert_eq!(pppoe.wire_len(&packet(1500)), 33 * 53);
        assert_eq!(pppoe.wire_len(&packet(56)), 2 * 53);
        assert_eq!(pppoe.wire_len(&packet(57)), 3 * 53);
        let vdsl = Overhead { beyond_ip: true, bytes: 30, least: 0, cells: Cells::Ptm };
        assert_eq!(vdsl.wire_len(&packet(1500)), 1530 + 24);
        assert_eq!(vdsl.wire_len(&packet(34)), 64 + 1);
        assert_eq!(vdsl.wire_len(&packet(35)), 65 + 2);
        let less = Overhead { beyond_ip: true, bytes: -64, least: 0, cells: Cells::None };
        assert_eq!(less.wire_len(&packet(40)), 0, "never less than nothing");
    }

    #[test]
    fn a_late_wake_up_is_made_up_for_and_idle_time_is_lost() {
        let at = Time::from_nanos;
        let mut shaper = Shaper::new(ByteTime::of(1_000_000)); // 1 us a byte
        shaper.start(at(5_000_000));
        assert_eq!(shaper.closed_until(at(5_000_000)), None);
        shaper.charge(1000, true);
        assert_eq!(shaper.closed_until(at(5_000_000)), Some(at(6_000_000)));
        assert_eq!(shaper.closed_until(at(5_999_999)), Some(at(6_000_000)));
        assert_eq!(shaper.closed_until(at(6_000_000)), None, "the failsafe is at 6.5 ms");
        // Woken 300 us late, it still sends the next packet in time.
        assert_eq!(shaper.closed_until(at(6_300_000)), None);
        shaper.charge(1000, true);
        assert_eq!(shaper.closed_until(at(6_300_000)), Some(at(7_000_000)));
        shaper.start(at(9_000_000));
        shaper.charge(1000, true);
        assert_eq!(shaper.closed_until(at(9_000_000)), Some(at(10_000_000)));
    }

    /// At the very end of the last packet the schedule goes on as it was, the failsafe included; after it, anew.
    #[test]
    fn a_packet_just_in_time_finds_no_idle_time() {
        for (arrival, opens) in [(6_000_000, 6_500_000), (6_000_001, 6_000_001)] {
            let at = Time::from_nanos;
            let mut shaper = Shaper::new(ByteTime::of(1_000_000));
            shaper.start(at(5_000_000));
            shaper.charge(1000, true);
            shaper.start(at(arrival));
            shaper.charge(1000, false);
            let until = shaper.closed_until(at(arrival)).unwrap_or(at(arrival));
            assert_eq!(until, at(opens));
        }
    }

    #[test]
    fn drops_that_count_never_close_it_beyond_the_failsafe() {
        let at = Time::from_nanos;
        let mut shaper = Shaper::new(ByteTime::of(1_000_000));
        shaper.start(at(1_000_000));
        shaper.charge(1000, true);
        for _ in 0..50 {
            shaper.charge(1000, false);
        }
        assert_eq!(shaper.closed_until(at(1_000_000)), Some(at(2_500_000)));
    }
}
