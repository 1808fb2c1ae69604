//! UDP loads between two machines: what client and server of Weir's own protocol share.

use std::io;
use std::net::SocketAddr;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::Socket;
use weir_core::Duration;
use weir_scenario::{UdpLoad, UdpPattern, UdpRow, UdpSenderCounts};
use weir_speedtest::protocol::weir::{
    UdpPattern as AskedPattern, UdpReceived, UdpRequest, UdpSent,
};

pub use crate::probes::is_like_loss;
use crate::probes::shared_udp_socket;

/// Asks for `load`, whose random times come from `seed`.
#[must_use]
pub const fn udp_request(load: &UdpLoad, seed: u64) -> UdpRequest {
    let pattern = match load.pattern {
        UdpPattern::Constant => AskedPattern::Constant,
        UdpPattern::Poisson => AskedPattern::Poisson,
        UdpPattern::Bursts { on_ns, off_ns } => AskedPattern::Bursts { on_ns, off_ns },
        UdpPattern::OnOff { on_ns, off_ns } => AskedPattern::OnOff { on_ns, off_ns },
    };
    let UdpLoad { rate_bps, payload_bytes, jitter_buffer_ns, .. } = *load;
    UdpRequest { rate_bps, payload_bytes, pattern, jitter_buffer_ns, seed }
}

/// The load that was asked for.
#[must_use]
pub const fn udp_load(request: &UdpRequest) -> UdpLoad {
    let pattern = match request.pattern {
        AskedPattern::Constant => UdpPattern::Constant,
        AskedPattern::Poisson => UdpPattern::Poisson,
        AskedPattern::Bursts { on_ns, off_ns } => UdpPattern::Bursts { on_ns, off_ns },
        AskedPattern::OnOff { on_ns, off_ns } => UdpPattern::OnOff { on_ns, off_ns },
    };
    let UdpRequest { rate_bps, payload_bytes, jitter_buffer_ns, .. } = *request;
    UdpLoad { rate_bps, payload_bytes, pattern, jitter_buffer_ns }
}

/// Packets a second that a load sends while it sends, rounded up.
#[must_use]
pub fn packets_per_second(rate_bps: u64, payload_bytes: u32) -> u64 {
    rate_bps.div_ceil(8 * u64::from(payload_bytes.max(1)))
}

/// A receiver's row, to be told to the other machine.
#[must_use]
pub fn udp_received(row: &UdpRow) -> UdpReceived {
    UdpReceived {
        packets: row.received_packets,
        lost: row.lost_packets,
        delay_mean_ns: row.delay_mean.map(Duration::as_nanos),
        delay_max_ns: row.delay_max.map(Duration::as_nanos),
        jitter_ns: row.jitter.as_nanos(),
        buffer: row.buffer.map(|buffer| (buffer.late_packets, buffer.playout_sum.as_nanos())),
    }
}

/// What a sender counted, to be told to the other machine.
#[must_use]
pub const fn udp_sent(counts: &UdpSenderCounts) -> UdpSent {
    UdpSent {
        packets: counts.sent_packets,
        skipped: counts.skipped_packets,
        late_max_ns: counts.late_max.as_nanos(),
    }
}

/// A UDP socket at `address` that does not block, whose packets carry `dscp` and come with the time at which the kernel
/// took them in. Port 0: any.
///
/// # Errors
/// If the system has none to give.
pub fn udp_socket(address: SocketAddr, dscp: u8) -> io::Result<Socket> {
    let socket = shared_udp_socket(address, dscp)?;
    reserve(&socket)?;
    Ok(socket)
}

/// Lets the kernel keep what comes while the thread does other things, beyond `net.core.rmem_max` for those who may.
pub(crate) fn reserve(socket: &Socket) -> io::Result<()> {
    setsockopt(socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES)
        .map_err(io::Error::from)
        .or_else(|_| socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES))
}

/// Packets of 1500 bytes of 10 ms at 1 Gbit/s, at their size in the kernel's memory.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_is_asked_for_is_the_load() {
        let voice = UdpLoad::voice(40_000_000, 20_000_000);
        let (on_ns, off_ns) = (3, 5);
        for pattern in [
            UdpPattern::Constant,
            UdpPattern::Poisson,
            UdpPattern::Bursts { on_ns, off_ns },
            UdpPattern::OnOff { on_ns, off_ns },
        ] {
            let load = UdpLoad { pattern, ..voice };
            let request = udp_request(&load, 7);
            assert_eq!((udp_load(&request), request.seed), (load, 7));
        }
        assert_eq!(packets_per_second(voice.rate_bps, voice.payload_bytes), 50);
        assert_eq!(packets_per_second(1, 1_000), 1);
    }
}
