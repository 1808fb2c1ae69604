//! The arithmetic of Linux' queue disciplines: what the kernel and `tc` round, and how.
//!
//! Where Linux has a discipline its rounding is part of its behaviour, and recordings of real
//! kernels are met to the nanosecond only with it (`vectors/README.md`).

use weir_core::{Duration, ETHERNET_HEADER, IpVersion, Packet, Priority, Rate};

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

/// Memory that the kernel accounts for a packet of `len` bytes (`skb->truesize`), as recorded on
/// veth with Linux 6.12: the socket buffer, and data in steps of the allocator.
#[must_use]
pub const fn truesize(len: u32) -> u32 {
    match len.saturating_sub(ETHERNET_HEADER) {
        0..=226 => 832,
        227..=674 => 1280,
        _ => 2304,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
