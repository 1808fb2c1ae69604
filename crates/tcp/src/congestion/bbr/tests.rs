//! Tests of BBR's model: what it remembers and when it forgets.

use weir_core::Seed;

use super::*;
use crate::clock::Timers;

/// The window that a look at the round trip goes back to is the largest since losses last set it:
/// `bbr_update_min_rtt` changes the mode before `bbr_save_cwnd` looks at it.
#[test]
fn a_look_at_the_round_trip_keeps_an_earlier_larger_window() {
    for (earlier, restored) in [(120, 120), (60, 90)] {
        let mut bbr = Bbr::new(Seed::new(1).stream("bbr"));
        bbr.prior_cwnd = earlier;
        bbr.min_rtt = MinRtt { us: 40_000, tick: 0 };
        let mut window = Window {
            cwnd: 90,
            ssthresh: Window::INFINITE,
            deliveries: 0,
            is_cwnd_limited: true,
            max_packets_out: 90,
            una: 1_000,
            nxt: 1_090,
            now_us: 10_004_000,
            last_sent_us: 10_000_000,
            paced: true,
            pacing_rate: 1_000_000,
            timers: Timers::Wheel,
        };
        let path = Path {
            mss: 1_000,
            delivered: 1_000,
            lost: 0,
            in_flight: 90,
            phase: Phase::Open,
            srtt8_us: Some(8 * 40_000),
            min_rtt_us: 40_000,
            next_burst_us: 0,
        };
        let sample = RateSample { acked: 1, rtt_us: Some(90_000), ..RateSample::default() };
        bbr.update_min_rtt(&mut window, &path, &mut RateSampler::default(), &sample);
        assert_eq!((bbr.mode, bbr.prior_cwnd), (Mode::ProbeRtt { done: None }, restored));
    }
}
