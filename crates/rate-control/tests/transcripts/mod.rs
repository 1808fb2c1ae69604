//! Transcripts: every decision of a controller on one line, to the word.
//!
//! A line of a transcript is a decision: milliseconds, Mbit/s, state, reason and the reason's value.

use weir_rate_control::{AutoSettings, Bounds, Control, Mode, Side};

use crate::line::Line;
use crate::loaded;
use Side::{Egress, Ingress};

/// Decisions on `side` since `from_ms`, one a line: ms, Mbit/s, state, reason and value.
pub fn transcript(line: &Line, side: Side, from_ms: u64) -> Vec<String> {
    line.log
        .iter()
        .filter(|(at, decision)| *at >= from_ms && decision.side == side)
        .map(|(at, decision)| {
            let rate = decision
                .rate
                .map_or("-".to_owned(), |rate| format!("{:.3}", rate.as_bps() as f64 / 1e6));
            let (state, reason) = (decision.state.name(), decision.reason.name());
            format!("{at} {rate} {state} {reason} {:.2}", decision.value)
        })
        .collect()
}

/// Checks the decisions on `side` since `from_ms`.
fn assert_said(line: &Line, side: Side, from_ms: u64, expected: &str) {
    let said = transcript(line, side, from_ms);
    assert_eq!(said, expected.lines().map(str::trim).collect::<Vec<_>>());
}

#[test]
fn the_first_congestion_to_the_word() {
    // 80 Mbit/s are offered to a line of 40 from 2000 ms on: a queue of 1 ms a ms. Nothing is known of it.
    let mut line = loaded(Mode::Ping, Egress);
    line.run(1_000);
    assert_said(&line, Egress, 0, FIRST_CONGESTION);
}

/// Held is 97 % of the line, as long as no probing found it again, less the probes' 33.6 kbit/s.
const FIRST_CONGESTION: &str = "\
    20 - idle start 0.00
    2020 - loaded load 16.00
    2120 30.766 backing_off delay 20.00
    2140 7.966 backing_off delay 40.00
    2200 11.833 backing_off delay 60.00
    2220 17.467 backing_off delay 60.00
    2240 21.973 backing_off delay 80.00
    2260 25.579 backing_off delay 100.00
    2280 28.463 backing_off delay 115.38
    2300 30.770 backing_off delay 67.33
    2320 32.616 backing_off delay 41.98
    2340 34.093 backing_off delay 25.76
    2360 35.274 backing_off delay 19.99
    2380 36.219 backing_off delay 15.38
    2400 36.976 backing_off delay 11.68
    2420 37.580 backing_off delay 8.73
    2440 38.064 backing_off delay 6.37
    2460 38.452 backing_off delay 4.48
    2480 38.761 backing_off delay 2.96
    2500 38.766 backing_off delay 1.75
    2520 38.766 loaded clear 400.00
    2720 39.736 probing probe 2.50
    2840 41.722 probing probe 5.00
    2960 36.700 backing_off delay 2.58
    2980 37.360 backing_off delay 3.44
    3000 37.888 backing_off delay 4.31";

/// At 10 s the path becomes 30 ms longer: a pulse does not move the excess.
#[test]
fn a_longer_path_to_the_word() {
    let mut line = loaded(Mode::Ping, Egress);
    line.run(8_000);
    line.base_ms.iter_mut().for_each(|base| *base += 30.0);
    line.run(1_500);
    assert_said(&line, Egress, 10_000, LONGER_PATH);
}

const LONGER_PATH: &str = "\
    10020 35.978 backing_off delay 3.42
    10040 36.782 backing_off delay 4.60
    10060 37.426 backing_off delay 4.60
    10080 37.941 backing_off delay 4.60
    10100 24.809 backing_off delay 34.96
    10120 25.106 backing_off delay 34.96
    10140 26.444 backing_off delay 33.35
    10160 28.273 backing_off delay 32.06
    10180 29.026 backing_off delay 31.03
    10200 28.570 backing_off delay 30.00
    10220 26.714 backing_off delay 30.00
    10240 25.337 backing_off delay 30.00
    10260 24.522 backing_off delay 30.00
    10280 24.997 backing_off delay 30.00
    10300 25.764 backing_off delay 30.00
    10320 25.385 backing_off delay 30.00
    10340 24.342 backing_off delay 30.00
    10360 23.833 backing_off delay 30.00
    10380 24.065 backing_off delay 30.00
    10400 24.405 backing_off delay 30.00
    10420 24.601 backing_off delay 30.00
    10440 24.549 backing_off delay 30.00
    10460 24.406 backing_off delay 30.00
    10480 24.338 backing_off delay 30.00
    10500 24.351 backing_off delay 30.00
    10520 24.401 backing_off delay 30.00
    10540 24.431 backing_off delay 30.00
    10560 24.426 backing_off delay 30.00
    10580 24.408 backing_off delay 30.00
    10600 24.397 backing_off delay 30.00
    10620 24.398 backing_off delay 30.00
    10640 24.404 backing_off delay 30.00
    10660 24.409 backing_off delay 30.00
    10680 24.409 backing_off delay 30.00
    10700 4.882 backing_off test 250.00
    10720 5.662 backing_off delay 30.00
    10740 5.795 backing_off delay 30.00
    10760 28.977 backing_off delay 30.00
    10820 25.385 backing_off delay 30.00
    10840 21.467 backing_off delay 30.00
    10860 22.969 backing_off delay 30.00
    10880 39.366 loaded reroute 30.00";

/// At 10 s the line becomes four times as fast: nine steps of probing find it, the next queue its rate.
#[test]
fn a_faster_line_to_the_word() {
    let after = |side: Side| {
        let mut line = loaded(Mode::Ping, side);
        line.run(8_000);
        line.capacity[side as usize] *= 4.0;
        line.demand[side as usize] *= 4.0;
        line.run(3_800);
        line
    };
    assert_said(&after(Egress), Egress, 10_000, FASTER_EGRESS);
    assert_said(&after(Ingress), Ingress, 10_000, FASTER_INGRESS);
}

const FASTER_EGRESS: &str = "\
    10020 35.978 backing_off delay 3.42
    10040 36.782 backing_off delay 4.60
    10060 39.366 loaded clear 40.00
    12060 40.351 probing probe 2.50
    12180 42.368 probing probe 5.00
    12300 46.605 probing probe 10.00
    12420 55.926 probing probe 20.00
    12540 69.907 probing probe 25.00
    12660 87.384 probing probe 25.00
    12780 109.230 probing probe 25.00
    12900 136.538 probing probe 25.00
    13020 170.672 probing probe 25.00
    13120 31.966 backing_off delay 2.67
    13140 155.166 backing_off delay 4.00
    13160 155.166 backing_off delay 5.34
    13180 154.868 loaded clear 60.00
    13380 158.740 probing probe 2.50
    13500 166.677 probing probe 5.00
    13620 146.962 backing_off delay 2.50
    13640 149.762 backing_off delay 3.34
    13660 151.810 backing_off delay 4.17
    13680 153.448 backing_off delay 4.17
    13700 154.758 backing_off delay 3.38
    13720 155.166 backing_off delay 2.10
    13740 155.166 backing_off delay 1.07
    13760 155.017 loaded clear 140.00";

const FASTER_INGRESS: &str = "\
    10020 104.242 probing probe 5.00
    10140 114.666 probing probe 10.00
    10260 137.600 probing probe 20.00
    10380 172.000 probing probe 25.00
    10500 215.000 probing probe 25.00
    10620 268.750 probing probe 25.00
    10740 335.937 probing probe 25.00
    10860 419.921 probing probe 25.00
    10980 376.014 backing_off delay 2.99
    11000 372.029 backing_off delay 3.98
    11020 368.045 backing_off delay 4.98
    11060 368.858 backing_off delay 4.78
    11080 374.452 backing_off delay 3.38
    11100 380.843 backing_off delay 1.78
    11120 387.838 loaded clear 140.00
    11320 397.534 probing probe 2.50
    11440 417.411 probing probe 5.00
    11560 377.520 backing_off delay 2.61
    11580 374.037 backing_off delay 3.48
    11600 370.555 backing_off delay 4.35
    11640 371.552 backing_off delay 4.10
    11660 376.744 backing_off delay 2.80
    11680 387.893 loaded clear 120.00
    13680 397.591 probing probe 2.50
    13800 417.470 probing probe 5.00";

/// Nobody answers for 15 s: overdue answers lower the rate down to a hundredth of the capacity, 3 s restore it, 10 s
/// open the side. When answers come again, the line has the queue of an open side.
#[test]
fn silence_to_the_word() {
    let mut line = loaded(Mode::Ping, Egress);
    line.run(8_000);
    line.silent = vec![0, 1, 2];
    line.run(15_000);
    line.silent.clear();
    line.run(500);
    assert_said(&line, Egress, 10_000, SILENCE);
}

const SILENCE: &str = "\
    10020 35.978 backing_off delay 3.42
    10040 36.782 backing_off delay 4.60
    10060 37.426 backing_off delay 4.60
    10080 37.941 backing_off delay 4.60
    10100 38.352 backing_off delay 4.60
    10120 38.682 backing_off delay 4.60
    10140 38.766 backing_off delay 4.60
    10160 1.312 backing_off overdue 115.00
    10180 1.136 backing_off overdue 135.00
    10200 1.002 backing_off overdue 155.00
    10220 0.896 backing_off overdue 175.00
    10240 0.810 backing_off overdue 195.00
    10260 0.739 backing_off overdue 215.00
    10280 0.680 backing_off overdue 235.00
    10300 0.630 backing_off overdue 255.00
    10320 0.586 backing_off overdue 275.00
    10340 0.548 backing_off overdue 295.00
    10360 0.515 backing_off overdue 315.00
    10380 0.485 backing_off overdue 335.00
    10400 0.459 backing_off overdue 355.00
    10420 0.435 backing_off overdue 375.00
    10440 0.414 backing_off overdue 395.00
    10460 0.400 backing_off overdue 415.00
    12980 0.400 backing_off overdue 2935.00
    13040 39.388 stalled silence 3.00
    20040 - stalled silence 10.00
    25260 39.400 loaded resume 12.22
    25280 19.700 backing_off overdue 178.00
    25380 9.850 backing_off overdue 195.00
    25480 7.921 backing_off overdue 198.00";

/// A line was four times slower for the last 3 s of its load. Ten seconds after the last measurement its capacity
/// begins to return to the usual one, and is reported by the per cent.
#[test]
fn an_idle_line_to_the_word() {
    let mut line = loaded(Mode::Ping, Egress);
    line.run(20_000);
    line.capacity[0] /= 4.0;
    line.run(3_000);
    line.demand = [0.0; 2];
    line.run(10_000);
    assert_said(&line, Egress, 24_900, IDLE);
}

const IDLE: &str = "\
    26080 9.656 idle idle 0.00
    34460 9.755 idle age 10.06
    34580 9.857 idle age 10.18
    34700 9.959 idle age 10.30
    34820 10.061 idle age 10.42
    34940 10.162 idle age 10.54";

/// A line changes between 20 and 40 Mbit/s every second. After a change a rate is held for 200 ms only; the queue
/// of a change for the worse is gone after 660 ms.
#[test]
fn a_varying_line_to_the_word() {
    let mut line = loaded(Mode::Ping, Egress);
    for turn in 0..9 {
        line.capacity[0] = if turn % 2 == 0 { 20e6 } else { 40e6 };
        line.run(1_000);
    }
    assert_said(&line, Egress, 8_500, VARYING);
}

const VARYING: &str = "\
    8720 20.053 probing probe 2.50
    8840 21.056 probing probe 5.00
    8960 17.970 backing_off delay 3.48
    8980 18.442 backing_off delay 4.54
    9000 18.754 backing_off delay 5.59
    9020 19.003 backing_off delay 5.59
    9040 19.261 backing_off delay 3.06
    9060 19.466 backing_off delay 3.06
    9080 19.666 loaded clear 120.00";

/// Both ways are full, and only round trips are known: the way with more traffic is suspected first.
#[test]
fn both_ways_full_to_the_word() {
    let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
    line.run(2_000);
    line.demand = [60e6, 150e6];
    line.run(1_200);
    assert_said(&line, Egress, 0, BOTH_EGRESS);
    assert_said(&line, Ingress, 0, BOTH_INGRESS);
}

const BOTH_EGRESS: &str = "\
    20 - idle start 0.00
    2020 - loaded load 12.00
    2420 30.000 backing_off overdue 115.00
    2520 15.000 backing_off overdue 155.00
    2620 7.500 backing_off overdue 195.00
    2720 3.750 backing_off overdue 160.00
    2760 3.206 backing_off delay 111.50
    2780 22.606 backing_off delay 30.25
    2800 22.606 loaded clear 380.00";

const BOTH_INGRESS: &str = "\
    20 - idle start 0.00
    2020 - loaded load 20.00
    2120 76.966 backing_off delay 20.00
    2140 56.966 backing_off delay 40.00
    2200 36.966 backing_off delay 60.00
    2240 19.966 backing_off delay 80.00
    2260 19.646 backing_off delay 100.00
    2280 15.302 backing_off overdue 118.00
    2300 12.233 backing_off overdue 115.00
    2320 9.632 backing_off overdue 120.00
    2340 6.392 backing_off overdue 118.00
    2360 3.288 backing_off overdue 115.00
    2380 2.216 backing_off overdue 120.00
    2400 1.611 backing_off overdue 118.00
    2760 32.503 loaded clear 640.00
    3100 33.315 probing probe 2.50";

/// The law of cake-autorate raises a rate that is used by 4 % every 200 ms, lowers it by up to a quarter when
/// there is a queue, returns to its base by 1 % a second, and falls to its least in silence.
#[test]
fn cake_autorate_to_the_word() {
    let bounds = |base: u64| Bounds { min_bps: base / 4, base_bps: base, max_bps: base * 4 };
    let mut line = Line::told(AutoSettings::default(), [40.0, 100.0]);
    line.controller =
        Control::CakeAutorate { egress: bounds(32_000_000), ingress: bounds(50_000_000) }.build();
    line.run(2_000);
    line.demand[0] = 80e6;
    line.run(4_000);
    line.demand[0] = 0.0;
    line.run(3_000);
    line.silent = vec![0, 1, 2];
    line.run(11_000);
    assert_said(&line, Egress, 0, CAKE_AUTORATE_EGRESS);
    assert_said(&line, Ingress, 0, CAKE_AUTORATE_INGRESS);
}

const CAKE_AUTORATE_EGRESS: &str = "\
    20 32.000 idle start 0.00
    2080 32.000 loaded age 1.00
    2240 33.280 probing probe 4.00
    2440 34.611 probing probe 4.00
    2680 35.996 probing probe 4.00
    2840 37.435 probing probe 4.00
    3040 38.933 probing probe 4.00
    3280 40.490 probing probe 4.00
    3440 42.110 probing probe 4.00
    3640 43.794 probing probe 4.00
    3860 45.546 probing probe 4.00
    4080 46.631 probing probe 2.38
    4260 46.817 probing probe 0.40
    4320 45.699 backing_off delay 31.99
    4660 36.012 backing_off delay 55.51
    4980 27.009 backing_off delay 71.50
    5280 23.856 backing_off delay 43.79
    5580 24.810 probing probe 4.00
    5680 25.802 probing probe 4.00
    5840 26.835 probing probe 4.00
    6040 27.908 probing probe 4.00
    7080 28.187 idle age 1.00
    8140 28.469 idle age 1.00
    19040 8.000 stalled silence 10.00";

const CAKE_AUTORATE_INGRESS: &str = "\
    20 50.000 idle start 0.00
    4320 48.800 backing_off delay 31.99
    4660 38.449 backing_off delay 55.51
    4980 28.837 backing_off delay 71.50
    5280 25.463 backing_off delay 43.79
    6340 25.718 idle age 1.00
    7380 25.975 idle age 1.00
    8440 26.235 idle age 1.00
    19040 12.500 stalled silence 10.00";
