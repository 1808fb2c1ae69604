//! `TCP_INFO` of a TCP socket.
//!
//! The layout is that of `struct tcp_info` in Linux' `include/uapi/linux/tcp.h`, to which fields are only
//! ever appended. The kernel says how many bytes it filled; a field beyond them is `None`.

use std::io;

use socket2::Socket;
use weir_core::{Duration, Time};
use weir_scenario::{LiveTcp, TcpRow};

use crate::sys::option;

/// A copy of the kernel's record.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    bytes: [u8; SIZE],
    len: usize,
}

impl TcpInfo {
    /// `TCP_INFO` of `socket` now.
    ///
    /// # Errors
    /// If it is no TCP socket.
    pub fn of(socket: &Socket) -> io::Result<Self> {
        let mut bytes = [0; SIZE];
        let len = option::get_bytes(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        Ok(Self { bytes, len })
    }

    /// A record that the kernel gave some other way, such as sock_diag(7).
    #[must_use]
    pub fn from_bytes(record: &[u8]) -> Self {
        let len = record.len().min(SIZE);
        let mut bytes = [0; SIZE];
        bytes[..len].copy_from_slice(&record[..len]);
        Self { bytes, len }
    }

    /// The kernel's record as it is, as much of it as this kernel has.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The row of a sender.
    #[must_use]
    pub fn row(&self, t: Time, flow: u32) -> TcpRow {
        let micros = |us: u32| Duration::from_micros(u64::from(us));
        let srtt = self.int(RTT);
        TcpRow {
            t,
            flow,
            cwnd_segments: self.int(SND_CWND),
            ssthresh_segments: Some(self.int(SND_SSTHRESH))
                .filter(|&segments| segments < INFINITE_SSTHRESH),
            in_flight_segments: self.in_flight(),
            srtt: (srtt > 0).then(|| micros(srtt)),
            rttvar: micros(self.int(RTTVAR)),
            rto: micros(self.int(RTO)),
            pacing_rate_bps: bits(self.long(PACING_RATE)),
            retransmits: u64::from(self.int(TOTAL_RETRANS)),
            timeouts: self.timeouts(),
            live: self.live(),
        }
    }

    /// The round trip of the handshake of a connection that has just opened; `None` if it is not known.
    pub(crate) fn handshake(&self) -> Option<Duration> {
        let rtt = self.int(RTT);
        let sure = rtt > 0 && self.int(TOTAL_RETRANS) == 0;
        sure.then(|| Duration::from_micros(u64::from(rtt)))
    }

    /// Segments in the network: `tcp_packets_in_flight` in the kernel.
    fn in_flight(&self) -> u32 {
        let left = self.int(SACKED) + self.int(LOST);
        (self.int(UNACKED) + self.int(RETRANS)).saturating_sub(left)
    }

    /// Expirations of the retransmission timer (Linux 6.7 and later).
    #[must_use]
    pub fn timeouts(&self) -> Option<u64> {
        self.get::<2>(TOTAL_RTO).map(|count| u64::from(u16::from_ne_bytes(count)))
    }

    /// Bytes of data sent, repetitions included, and bytes sent again (Linux 4.19 and later).
    #[must_use]
    pub fn sent_bytes(&self) -> (u64, u64) {
        (self.long(BYTES_SENT), self.long(BYTES_RETRANS))
    }

    /// Segments with data sent, repetitions included, and segments sent again.
    #[must_use]
    pub fn sent_segments(&self) -> (u64, u64) {
        (u64::from(self.int(DATA_SEGS_OUT)), u64::from(self.int(TOTAL_RETRANS)))
    }

    /// Bytes of IP packets with data that arrived, where an IP header has `ip_header` bytes.
    ///
    /// The kernel counts segments with data, repetitions included, but bytes in order only: a repetition
    /// that was not needed counts with its headers alone, and data behind a gap when the gap is filled.
    #[must_use]
    pub fn wire_bytes(&self, ip_header: u32) -> u64 {
        let timestamps = self.bytes[OPTIONS] & OPTION_TIMESTAMPS != 0;
        let headers = ip_header + TCP_HEADER + if timestamps { TIMESTAMPS_OPTION } else { 0 };
        self.long(BYTES_RECEIVED) + u64::from(self.int(DATA_SEGS_IN)) * u64::from(headers)
    }

    /// Bytes of data that were acknowledged, and those that arrived in order.
    #[must_use]
    pub fn delivered_bytes(&self) -> (u64, u64) {
        (self.long(BYTES_ACKED), self.long(BYTES_RECEIVED))
    }

    /// The rate at which data arrived of late, in bit/s, by when it was sent and acknowledged; 0 before the
    /// first round trip, `None` before Linux 4.9. Times at which the application had nothing to send do not
    /// lower it (`net/ipv4/tcp_rate.c`).
    #[must_use]
    pub fn delivery_rate_bps(&self) -> Option<u64> {
        self.get(DELIVERY_RATE).map(|rate| bits(u64::from_ne_bytes(rate)))
    }

    /// Segments with data that arrived, repetitions included.
    #[must_use]
    pub fn received_segments(&self) -> u32 {
        self.int(DATA_SEGS_IN)
    }

    /// The sender's maximum segment size in bytes.
    #[must_use]
    pub fn mss(&self) -> u32 {
        self.int(SND_MSS)
    }

    /// The shortest round trip of late; `None` before the first.
    #[must_use]
    pub fn min_rtt(&self) -> Option<Duration> {
        let micros = Some(self.int(MIN_RTT)).filter(|&micros| micros != u32::MAX)?;
        Some(Duration::from_micros(u64::from(micros)))
    }

    /// Whether both ends agreed on ECN, and how many segments arrived at the other end with a CE mark, as
    /// it says.
    #[must_use]
    pub fn ecn(&self) -> (bool, u32) {
        (self.bytes[OPTIONS] & OPTION_ECN != 0, self.int(DELIVERED_CE))
    }

    fn live(&self) -> Option<LiveTcp> {
        self.get::<8>(SNDBUF_LIMITED)?;
        let micros = |at| Duration::from_nanos(self.long(at).saturating_mul(1_000));
        Some(LiveTcp {
            delivery_rate_bps: self.delivery_rate_bps()?,
            busy: micros(BUSY_TIME),
            receive_window_limited: micros(RWND_LIMITED),
            send_buffer_limited: micros(SNDBUF_LIMITED),
        })
    }

    /// A field of 32 bits; 0 if this kernel does not have it.
    fn int(&self, at: usize) -> u32 {
        self.get(at).map_or(0, u32::from_ne_bytes)
    }

    /// A field of 64 bits; 0 if this kernel does not have it.
    fn long(&self, at: usize) -> u64 {
        self.get(at).map_or(0, u64::from_ne_bytes)
    }

    fn get<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes[..self.len].get(at..at + N)?.try_into().ok()
    }
}

/// A rate in bytes per second in bit/s; 0 for the kernel's "unlimited", before the first round trip.
const fn bits(bytes_per_second: u64) -> u64 {
    if bytes_per_second == u64::MAX { 0 } else { bytes_per_second.saturating_mul(8) }
}

/// Bytes up to and with `tcpi_total_rto_time`.
const SIZE: usize = 248;
/// `tcpi_options`.
const OPTIONS: usize = 5;
/// `TCPI_OPT_TIMESTAMPS`.
const OPTION_TIMESTAMPS: u8 = 1;
/// `TCPI_OPT_ECN`.
const OPTION_ECN: u8 = 8;
/// Offsets of the fields of those names, in bytes.
const RTO: usize = 8;
const SND_MSS: usize = 16;
const UNACKED: usize = 24;
const SACKED: usize = 28;
const LOST: usize = 32;
const RETRANS: usize = 36;
const RTT: usize = 68;
const RTTVAR: usize = 72;
const SND_SSTHRESH: usize = 76;
const SND_CWND: usize = 80;
const TOTAL_RETRANS: usize = 100;
const PACING_RATE: usize = 104;
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;
const MIN_RTT: usize = 148;
const DATA_SEGS_IN: usize = 152;
const DATA_SEGS_OUT: usize = 156;
const DELIVERY_RATE: usize = 160;
const BUSY_TIME: usize = 168;
const RWND_LIMITED: usize = 176;
const SNDBUF_LIMITED: usize = 184;
const DELIVERED_CE: usize = 196;
const BYTES_SENT: usize = 200;
const BYTES_RETRANS: usize = 208;
const TOTAL_RTO: usize = 240;
/// `TCP_INFINITE_SSTHRESH`.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// RFC 9293, section 3.1.
const TCP_HEADER: u32 = 20;
/// RFC 7323, section 3.2, and two bytes of padding, as all stacks have it.
const TIMESTAMPS_OPTION: u32 = 12;

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    fn info(fields: &[(usize, u32)]) -> TcpInfo {
        let mut info = TcpInfo { bytes: [0; SIZE], len: SIZE };
        for &(at, value) in fields {
            info.bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        info
    }

    #[test]
    fn fields_lie_where_the_c_library_has_them() {
        assert_eq!(RTO, offset_of!(libc::tcp_info, tcpi_rto));
        assert_eq!(RETRANS, offset_of!(libc::tcp_info, tcpi_retrans));
        assert_eq!(SND_CWND, offset_of!(libc::tcp_info, tcpi_snd_cwnd));
        assert_eq!(TOTAL_RETRANS, offset_of!(libc::tcp_info, tcpi_total_retrans));
    }

    #[test]
    fn a_row_speaks_of_absence_and_in_nanoseconds() {
        let fresh = info(&[(SND_SSTHRESH, INFINITE_SSTHRESH), (SND_CWND, 10), (RTO, 1_000_000)]);
        let row = fresh.row(Time::ZERO, 3);
        assert_eq!((row.ssthresh_segments, row.srtt, row.cwnd_segments), (None, None, 10));
        assert_eq!(row.rto, Duration::from_secs(1));
        let used = info(&[(UNACKED, 20), (SACKED, 5), (LOST, 3), (RETRANS, 2), (RTT, 1_500)]);
        assert_eq!(used.row(Time::ZERO, 3).in_flight_segments, 14);
        assert_eq!(used.row(Time::ZERO, 3).srtt, Some(Duration::from_micros(1_500)));
    }

    #[test]
    fn an_older_kernel_counts_no_timeouts() {
        let old = TcpInfo { len: 232, ..info(&[]) };
        assert_eq!(old.timeouts(), None);
        assert!(old.row(Time::ZERO, 0).live.is_some());
    }

    #[test]
    fn wire_bytes_hold_the_headers_of_each_segment() {
        let mut info = info(&[(BYTES_RECEIVED, 14_480), (DATA_SEGS_IN, 10)]);
        info.bytes[OPTIONS] = OPTION_TIMESTAMPS;
        assert_eq!(info.wire_bytes(20), 15_000);
    }
}
