//! The arithmetic of Linux' queue disciplines: what the kernel and `tc` round, and how.
//!
//! Where Linux has a discipline its rounding is part of its behaviour, and recordings of real
//! kernels are met to the nanosecond only with it (`vectors/linux-6.12/README.md`).

use weir_core::{Duration, ETHERNET_HEADER, IpVersion, Packet, Priority, Protocol, Rate};

/// Properties of the port on which a discipline sits.
#[derive(Clone, Debug)]
pub struct Device {
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Packets that a plain FIFO holds where no limit is given (`txqueuelen`).
    pub tx_queue_len: u32,
    /// Rate of the line behind the port, which `95%` refers to; `None` where it varies.
    pub line_rate: Option<Rate>,
    /// Seed of the random choices of disciplines on this port.
    pub seed: weir_core::Seed,
}

impl Device {
    /// The length of a full packet as a queue counts it (`psched_mtu`).
    #[must_use]
    pub const fn full_packet(&self) -> u32 {
        self.mtu + ETHERNET_HEADER
    }
}

impl Default for Device {
    /// An Ethernet port: MTU 1500, `txqueuelen` 1000, line rate unknown, seed 0.
    fn default() -> Self {
        Self { mtu: 1500, tx_queue_len: 1000, line_rate: None, seed: weir_core::Seed::new(0) }
    }
}

/// A rate as `sch_generic` keeps it: a reciprocal of 32 bits, so that lengths turn into times by a
/// multiplication and a shift (`psched_ratecfg_precompute`, `psched_l2t_ns`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateTable {
    bytes_per_sec: u64,
    multiplier: u64,
    shift: u32,
    overhead: u32,
    mpu: u32,
    cells: bool,
}

impl RateTable {
    /// The table of `rate`, which must be at least 8 bit/s.
    ///
    /// `overhead` bytes are added to every packet, which then counts as `mpu` bytes at least; with
    /// `cells` it occupies whole ATM cells (`linklayer atm`).
    #[must_use]
    pub fn new(rate: Rate, overhead: u32, mpu: u32, cells: bool) -> Self {
        let bytes_per_sec = rate.as_bytes_per_sec();
        assert!(bytes_per_sec > 0, "rate {rate} is below one byte per second");
        // The kernel doubles the factor until the quotient fills 32 bits.
        let mut factor = 1_000_000_000u64;
        let mut shift = 0;
        loop {
            let multiplier = (factor / bytes_per_sec) & 0xffff_ffff;
            if multiplier & (1 << 31) != 0 || factor & (1 << 63) != 0 {
                return Self { bytes_per_sec, multiplier, shift, overhead, mpu, cells };
            }
            factor <<= 1;
            shift += 1;
        }
    }

    /// Nanoseconds that a packet of `len` bytes takes.
    #[must_use]
    pub fn time_of(&self, len: u32) -> i64 {
        let len = (len + self.overhead).max(self.mpu);
        let wire = if self.cells { len.div_ceil(48) * 53 } else { len };
        ((u64::from(wire) * self.multiplier) >> self.shift) as i64
    }

    /// Whole bytes per second.
    #[must_use]
    pub const fn bytes_per_sec(&self) -> u64 {
        self.bytes_per_sec
    }
}

/// A burst in bytes as the time that HTB keeps for it: `tc` computes whole microseconds and hands
/// them over in ticks of 64 ns (15.625 ticks a microsecond).
#[must_use]
pub fn burst_time(burst: u64, rate: Rate) -> i64 {
    let microseconds = (1e6 * burst as f64 / rate.as_bytes_per_sec() as f64) as u32;
    let ticks = (f64::from(microseconds) * 15.625) as u32;
    i64::from(ticks) * 64
}

/// Memory that the kernel accounts for `packet` (`skb->truesize`), as a socket of this machine would allocate it:
/// the socket buffer, and what its data lies in.
///
/// That of packets up to 1514 bytes is recorded on veth with Linux 6.12. The rule behind the three figures holds for
/// longer ones: the data, with room in front of it and the shared info behind, takes the allocator's next power of
/// two (`__alloc_skb`). TCP keeps its headers in a small head and copies what it carries into pages, of which it
/// counts the bytes (`tcp_sendmsg_locked`; the headers' are left in here); it is told apart only where the data no longer fits into 2 KiB. Other
/// packets lie in pages too where they are too long for one allocation (`SKB_MAX_ALLOC`, `__ip_append_data`).
#[must_use]
pub const fn truesize(packet: &Packet) -> u32 {
    let bytes = packet.ip_len();
    let linear = bytes + ROOM_IN_FRONT + SHARED_INFO;
    if linear <= SMALL_HEAD {
        return SK_BUFF + SMALL_HEAD;
    }
    let in_pages = packet.label.protocol.0 == Protocol::TCP.0 || linear > MAX_ALLOCATION;
    if linear > 2_048 && in_pages {
        return SK_BUFF + SMALL_HEAD + bytes;
    }
    SK_BUFF + linear.next_power_of_two()
}

/// The priority of a packet: what a filter wrote, else what Linux gives it by its TOS byte.
///
/// That is of IPv4 only: the option `IP_TOS` of a socket sets the priority of what it sends, and `ip_forward` that
/// of what a router passes on, but neither `IPV6_TCLASS` nor `ip6_forward` do, so that packets of IPv6 keep 0.
#[must_use]
pub fn priority_of(packet: &Packet) -> u32 {
    let given = || match packet.label.ip_version {
        IpVersion::V4 => u32::from(priority_of_tos(packet.tos())),
        IpVersion::V6 => 0,
    };
    packet.label.priority.map_or_else(given, Priority::get)
}

/// The priority that Linux gives an IPv4 packet by its TOS byte (`rt_tos2priority`): the old TOS
/// bits decide, so that all of EF, CS1 and CS5 are 0 like best effort.
#[must_use]
pub const fn priority_of_tos(tos: u8) -> u8 {
    match (tos & 0x18) >> 3 {
        0 => 0, // best effort
        1 => 2, // bulk
        2 => 6, // interactive
        _ => 4, // interactive bulk
    }
}

/// The length of one clock tick of a kernel with `HZ=250` (Debian's, and the recordings').
pub const JIFFY: Duration = Duration::from_millis(4);

/// `struct sk_buff`, in whole cache lines.
const SK_BUFF: u32 = 256;
/// Data of the smallest allocation (`SKB_SMALL_HEAD_CACHE_SIZE`) of the kernel that was recorded.
const SMALL_HEAD: u32 = 576;
/// `struct skb_shared_info`, in whole cache lines.
const SHARED_INFO: u32 = 320;
/// Bytes in front of an IP packet: the Ethernet header and 16 more.
const ROOM_IN_FRONT: u32 = ETHERNET_HEADER + 16;
/// Most that is allocated as one.
const MAX_ALLOCATION: u32 = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_the_recorded_kernels_and_never_less_than_the_packet() {
        let of = |protocol, ip_len: u32| {
            let mut packet = Packet { len: ip_len + ETHERNET_HEADER, ..Packet::BLANK };
            packet.label.protocol = protocol;
            truesize(&packet)
        };
        for (ip_len, udp, tcp) in [
            (0, 832, 832),
            (226, 832, 832),
            (227, 1_280, 1_280),
            (674, 1_280, 1_280),
            (675, 2_304, 2_304),
            (1_500, 2_304, 2_304),
            (1_698, 2_304, 2_304),
            (1_699, 4_352, 832 + 1_699),
            (3_746, 4_352, 832 + 3_746),
            (3_747, 8_448, 832 + 3_747),
            (9_000, 16_640, 832 + 9_000),
            (16_034, 16_640, 832 + 16_034),
            (16_035, 832 + 16_035, 832 + 16_035),
            (65_535, 832 + 65_535, 832 + 65_535),
        ] {
            assert_eq!(
                (of(Protocol::UDP, ip_len), of(Protocol::TCP, ip_len)),
                (udp, tcp),
                "{ip_len}"
            );
        }
    }

    #[test]
    fn packet_times_are_the_kernels() {
        let table = RateTable::new(Rate::from_mbit(10), 0, 0, false);
        assert_eq!(table.time_of(1514), 1_211_200);
        // 20 bytes take 6666.67 ns at 24 Mbit/s; the reciprocal rounds down.
        let thirds = RateTable::new(Rate::from_mbit(24), 0, 0, false);
        assert_eq!(thirds.time_of(20), 6_666);
        let cells = RateTable::new(Rate::from_mbit(2), 40, 0, true);
        assert_eq!(cells.time_of(60), (3 * 53 * 8 * 1_000) / 2);
    }

    #[test]
    fn bursts_are_tcs() {
        assert_eq!(burst_time(1600, Rate::from_mbit(10)), 1_280_000);
        assert_eq!(burst_time(1600, Rate::from_mbit(3)), 4_265_984);
    }
}
