//! Reno: RFC 5681, as Linux has it (`tcp_reno_*` in `net/ipv4/tcp_cong.c`).

use super::{Algorithm, CongestionControl};
use crate::window::Window;

#[derive(Debug)]
struct Reno;

impl CongestionControl for Reno {}

/// RFC 5681, equation 4, with the window for the flight size: half of it, two segments at least.
pub(super) fn half(window: &Window) -> u32 {
    (window.cwnd / 2).max(2)
}

/// RFC 5681, section 3.1: grows by what was delivered in slow start, by one segment a round trip after.
pub(super) fn grow(window: &mut Window, acked: u32) {
    if !window.is_limiting() {
        return;
    }
    let acked = if window.in_slow_start() { window.slow_start(acked) } else { acked };
    if acked > 0 {
        window.grow_one_per(window.cwnd, acked);
    }
}

pub(super) static RENO: Algorithm = Algorithm {
    name: "reno",
    summary: "halves its window after a loss, then adds a segment a round trip",
    source: "RFC 5681; Linux net/ipv4/tcp_cong.c",
    begin: |_| Box::new(Reno),
};
