use weir_core::{Draw, Dscp, Duration, Ecn, FlowLabel, Seed};

use super::*;
use crate::port::Ignore;

/// The parameters that `tc` and the kernel make of the words behind `red`.
fn read(words: &str) -> Result<RedParams, SpecError> {
    let spec = QueueSpec::parse(&format!("red {words}"))?;
    spec.read::<RedOptions>(&Device::default())?.settings().for_kernel("red")
}

fn red(words: &str) -> Box<dyn Qdisc> {
    QueueSpec::parse(words).and_then(|spec| spec.build(&Device::default())).unwrap()
}

fn packet(len: u32, ecn: Ecn) -> Packet {
    Packet {
        handle: 0,
        enqueued_at: Time::ZERO,
        label: FlowLabel::default(),
        len,
        flow_id: 0,
        dscp: Dscp::BE,
        ecn,
    }
}

/// Packets so far, by what the discipline did with them.
#[derive(Debug, PartialEq, Eq)]
struct Tally {
    early: u64,
    forced: u64,
    early_marks: u64,
    forced_marks: u64,
}

fn tally(red: &dyn Qdisc) -> Tally {
    let stats = red.stats();
    Tally {
        early: stats.dropped[DropReason::Early as usize].packets,
        forced: stats.dropped[DropReason::Forced as usize].packets,
        early_marks: stats.marked[MarkReason::Early as usize],
        forced_marks: stats.marked[MarkReason::Forced as usize],
    }
}

/// Values that `tc -d qdisc show` of iproute2 6.1 on Linux 6.12 prints: min, max, ewma, probability,
/// Scell_log.
#[test]
fn parameters_are_those_that_tc_shows() {
    let cases = [
        (
            "limit 120000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.02 bandwidth 10mbit",
            (15_000, 45_000, 4, 0.02, 14),
        ),
        ("limit 400000 avpkt 1000", (33_333, 100_000, 5, 0.02, 15)),
        ("limit 400000 min 30000 avpkt 1000 bandwidth 100mbit", (30_000, 90_000, 5, 0.02, 12)),
        (
            "limit 400000 max 90000 avpkt 500 probability 0.1 bandwidth 1mbit",
            (30_000, 90_000, 6, 0.1, 18),
        ),
        ("limit 100000 min 10000 max 10000 avpkt 1000 burst 20", (10_000, 10_000, 4, 0.02, 14)),
        ("limit 1000000 min 62500 max 187500 avpkt 1000 burst 105", (62_500, 187_500, 6, 0.02, 16)),
        ("limit 100000 avpkt 1000 adaptive ecn", (8_333, 25_000, 3, 0.02, 13)),
        // Probability 1 overflows in `tc`.
        (
            "limit 1mb min 100kb max 300kb avpkt 1514 burst 300 probability 1 bandwidth 1gbit",
            (102_400, 307_200, 10, 0.781_202, 14),
        ),
    ];
    for (words, expected) in cases {
        let (min, max, log, probability, cells) = read(words).unwrap().as_shown();
        assert_eq!(
            (min, max, log, cells),
            (expected.0, expected.1, expected.2, expected.4),
            "{words}"
        );
        assert!((probability - expected.3).abs() < 1e-6, "{words}: {probability}");
    }
}

#[test]
fn what_tc_refuses_is_refused_in_one_sentence() {
    let cases = [
        (
            "limit 1mb min 100kb max 300kb avpkt 1514 burst 50",
            "red: `burst 50`: write at least 68, or lower `min` 102400",
        ),
        (
            "limit 1mb min 1mb max 1gb avpkt 1514 burst 5000",
            "red: `max 1073741824`: with a weight of 2^-14 (from `burst` 5000) it must be below \
             131072",
        ),
        (
            "limit 100000 avpkt 1000 probability 0.000001",
            "red: `probability 0.000001`: with these thresholds write a number above \
             0.00000776117667555809, up to 1",
        ),
        (
            "limit 100000 avpkt 1000 probability 2",
            "red: `probability 2`: write a number from 0 to 1",
        ),
        ("limit 9000 min 5000 max 4000 avpkt 1000", "red: `max 4000`: it is below `min` 5000"),
        (
            "limit 9000 min 900 max 4000 avpkt 1000 burst 9",
            "red: `burst 9`: a burst can only be allowed if `min` 900 is above one average packet",
        ),
        (
            "limit 9000 min 900 max 4000 avpkt 1000 burst 1",
            "red: `burst 1`: a burst can only be allowed if `min` 900 is above one average packet",
        ),
        ("limit 0 avpkt 1000", "red: `limit 0`: write a size of at least 1 byte"),
        ("limit 9000", "red: `avpkt` is required (bytes of an average packet)"),
    ];
    for (words, expected) in cases {
        assert_eq!(read(words).unwrap_err().to_string(), expected, "{words}");
    }
    let nodrop = QueueSpec::parse("red limit 9000 avpkt 500 nodrop").unwrap();
    let error = nodrop.build(&Device::default()).err().unwrap();
    assert_eq!(error.to_string(), "red: `nodrop` has a meaning only beside `ecn`");
}

/// W = 1/16: avg' = avg + (backlog - avg)/16, kept 16 times.
#[test]
fn the_average_follows_in_fixed_point() {
    let params = read("limit 120000 min 15000 max 45000 avpkt 1000 burst 25").unwrap();
    let mut state = RedState::default();
    let averages: Vec<_> =
        [1514, 3028, 3028, 0].map(|backlog| state.update(&params, backlog, Time::ZERO)).into();
    // 1514; 1514 - 94 + 3028; 4448 - 278 + 3028; 7198 - 449.
    assert_eq!(averages, [1_514, 4_448, 7_198, 6_749]);
}

/// One cell of the table is 2^14 us. -ln(1 - 1/16) / 12500 ticks a packet x 2^14 = 0.0846 bits a cell,
/// so that cell 11 still reads 0, cell 12 reads 1 and cell 100 reads 8.
#[test]
fn the_average_falls_while_nothing_waits() {
    let params = read("limit 120000 min 15000 max 45000 avpkt 1000 burst 25").unwrap();
    let after = |idle_us: u64| {
        let mut state = RedState::with_average(1_000_000);
        // Time zero is a time; Linux takes it for "not idle".
        state.start_idling(Time::ZERO);
        state.start_idling(Time::from_millis(7)); // changes nothing
        assert!(state.is_idle());
        let average = state.update(&params, 77, Time::ZERO + Duration::from_micros(idle_us));
        assert!(!state.is_idle());
        average
    };
    assert_eq!(after(0), 1_000_000);
    // 1000000 x 4096 / 2^14 = 250000 fall off.
    assert_eq!(after(4_096), 750_000);
    // Never more than half before the table starts.
    assert_eq!(after(11 * 16_384), 500_000);
    assert_eq!(after(12 * 16_384), 500_000);
    assert_eq!(after(100 * 16_384), 1_000_000 >> 8);
    assert_eq!(after(254 * 16_384), 1_000_000 >> 21);
    assert_eq!(after(10_000_000_000), 0);
}

/// Between the thresholds the wait for the next drop is even over 1..=1/p: half of 1/p on average.
#[test]
fn drops_come_as_often_as_the_average_says() {
    let params =
        read("limit 400000 min 10000 max 30000 avpkt 1000 burst 30 probability 0.1").unwrap();
    let mut rng = Seed::new(1).stream("test");
    let mut gaps_at = |average: u64| {
        let mut state = RedState::default();
        let mut gaps = Vec::new();
        let mut gap = 0;
        for _ in 0..400_000 {
            gap += 1;
            if state.decide(&params, average << params.weight_log, &mut rng) == RedVerdict::Early {
                gaps.push(gap);
                gap = 0;
            }
        }
        gaps.remove(0); // the draw itself takes a packet
        let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
        (gaps.iter().copied().min().unwrap(), gaps.iter().copied().max().unwrap(), mean)
    };
    // p = 0.1 (20000 - 10000) / 20000 = 1/20. The kernel rounds the step down: once in 66668 draws the
    // packet after the last is taken.
    let near = gaps_at(20_000);
    assert_eq!((near.0, near.1), (1, 21));
    assert!((near.2 - 10.5).abs() < 0.1, "{}", near.2);
    // p = 1/100.
    let far = gaps_at(12_000);
    assert_eq!((far.0, far.1), (1, 100));
    assert!((far.2 - 50.5).abs() < 0.7, "{}", far.2);
}

#[test]
fn thresholds_decide_and_gentle_softens_the_upper_one() {
    let words = "limit 400000 min 10000 max 30000 avpkt 1000 burst 30 probability 0.1";
    let (plain, gentle) = (read(words).unwrap(), read(&format!("{words} gentle")).unwrap());
    let mut rng = Seed::new(1).stream("test");
    let mut share = |params: &RedParams, average: u64| {
        let mut state = RedState::default();
        let mut seen = [0u32; 3];
        for _ in 0..10_000 {
            let average = average << params.weight_log;
            seen[state.decide(params, average, &mut rng) as usize] += 1;
        }
        seen
    };
    assert_eq!(share(&plain, 9_999), [10_000, 0, 0]);
    // At the threshold itself the probability is 0.
    assert_eq!(share(&plain, 10_000)[1..], [0, 0]);
    assert_eq!(share(&plain, 30_000), [0, 0, 10_000]);
    // Gentle: p rises from 0.1 at 30000 to 1 at 60000. At 31000 it is 0.13, one packet in
    // (1 + 1/0.13) / 2 = 4.35; at 59999 every packet but the first, which only draws, and one that was lucky.
    let [_, early, forced] = share(&gentle, 31_000);
    assert_eq!(forced, 0);
    assert!((2_250..2_350).contains(&early), "{early}");
    assert_eq!(share(&gentle, 59_999)[1..], [9_998, 0]);
    assert_eq!(share(&gentle, 60_000), [0, 0, 10_000]);
}

/// Floyd, Gummadi, Shenker 2001: up by min(1 %, p/4) above the middle fifth, down to 90 % below it.
#[test]
fn adaptive_red_moves_the_probability() {
    let mut params = read("limit 120000 min 15000 max 45000 avpkt 1000 burst 25").unwrap();
    let at = |average: u64| RedState::with_average(average << 4);
    assert_eq!(params.max_p, 85_899_345);
    params.adapt(&at(33_001), Time::ZERO); // the middle fifth is 27000 to 33000
    assert_eq!(params.max_p, 85_899_345 + 85_899_345 / 4);
    params.adapt(&at(33_000), Time::ZERO);
    params.adapt(&at(27_000), Time::ZERO);
    assert_eq!(params.max_p, 107_374_181);
    params.adapt(&at(26_999), Time::ZERO);
    assert_eq!(params.max_p, 96_636_762);
    assert_eq!(params.step, 3_221);
    for _ in 0..100 {
        params.adapt(&at(0), Time::ZERO);
    }
    assert_eq!(params.max_p, 41_598_936, "the step that went below 1 % was the last");
    for _ in 0..100 {
        params.adapt(&at(50_000), Time::ZERO);
    }
    assert!((0.5..0.51).contains(&(f64::from(params.max_p) / 2f64.powi(32))));
}

/// 20 arrivals a second onto a backlog that stays; adaptive RED has looked at 0.512, 1.024 ... 10.752 s.
#[test]
fn adaptive_red_looks_every_128_jiffies() {
    let words = "red limit 400000 min 2000 max 100000 avpkt 1000 burst 60 adaptive";
    let params = QueueSpec::parse(words).unwrap();
    let mut red = Red::new(&params, &Device::default()).unwrap();
    for step in 0..200 {
        let now = Time::from_millis(1_000 + 50 * step);
        red.enqueue(&packet(64, Ecn::NotEct), now, &mut Ignore);
    }
    assert_eq!(red.adapt_at, Some(Time::from_millis(11_264)));
    let before = Time::from_nanos(11_263_999_999);
    red.enqueue(&packet(64, Ecn::NotEct), before, &mut Ignore);
    assert_eq!(red.adapt_at, Some(Time::from_millis(11_264)));
    red.enqueue(&packet(64, Ecn::NotEct), Time::from_millis(11_264), &mut Ignore);
    assert_eq!(red.adapt_at, Some(Time::from_millis(11_776)));
    let mut expected = 85_899_345u32;
    for _ in 0..7 {
        expected = expected / 10 * 9;
    }
    assert_eq!(red.params.max_p, expected, "below 1 % after seven steps");
}

/// A step that was due before the queue ran empty looks at the average as it was then.
#[test]
fn adaptive_red_looks_before_an_idle_time_begins() {
    let params = QueueSpec::parse("red limit 400000 avpkt 1000 adaptive bandwidth 10mbit").unwrap();
    let mut red = Red::new(&params, &Device::default()).unwrap();
    red.enqueue(&packet(64, Ecn::NotEct), Time::from_millis(1_000), &mut Ignore);
    assert!(red.dequeue(Time::from_millis(1_700), &mut Ignore).is_some());
    assert!(red.dequeue(Time::from_millis(1_800), &mut Ignore).is_none());
    assert_eq!(red.adapt_at, Some(Time::from_millis(2_048)));
}

#[test]
fn ecn_marks_harddrop_drops_and_nodrop_lets_wait() {
    // min = max: all or nothing. W = 1/2: the averages are 0, 500, 1250, 2125, and more from there.
    let flood = |words: &str, ecn: Ecn| {
        let mut red = red(&format!("red limit 90000 min 2000 max 2000 avpkt 1000 burst 2 {words}"));
        for _ in 0..12 {
            red.enqueue(&packet(1_000, ecn), Time::ZERO, &mut Ignore);
        }
        tally(&*red)
    };
    let none = Tally { early: 0, forced: 0, early_marks: 0, forced_marks: 0 };
    assert_eq!(flood("", Ecn::Ect0), Tally { forced: 9, ..none });
    assert_eq!(flood("ecn", Ecn::Ect0), Tally { forced_marks: 9, ..none });
    assert_eq!(flood("ecn", Ecn::NotEct).forced, 9);
    assert_eq!(flood("ecn harddrop", Ecn::Ect0).forced, 9);
    assert_eq!(flood("ecn nodrop", Ecn::NotEct), none);
    assert_eq!(flood("ecn nodrop harddrop", Ecn::NotEct).forced, 9);
}

#[test]
fn other_disciplines_may_sit_beneath() {
    let mut red = red("red limit 90000 min 30000 max 60000 avpkt 1000 burst 60 pfifo limit 3");
    for _ in 0..5 {
        red.enqueue(&packet(1_000, Ecn::NotEct), Time::ZERO, &mut Ignore);
    }
    assert_eq!(red.backlog().packets, 3);
    assert_eq!(red.stats().dropped[DropReason::Overlimit as usize].packets, 2);
}

#[test]
fn the_same_seed_draws_the_same_drops() {
    let run = |seed: u64| {
        let device = Device { seed: Seed::new(seed), ..Device::default() };
        let words = "red limit 400000 min 10000 max 90000 avpkt 1000 burst 40 probability 0.1";
        let mut red = QueueSpec::parse(words).unwrap().build(&device).unwrap();
        let mut dice = Seed::new(5).stream("lengths");
        for _ in 0..400 {
            let len = 500 + dice.below(1_000) as u32;
            red.enqueue(&packet(len, Ecn::NotEct), Time::ZERO, &mut Ignore);
        }
        red.stats()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// An average outside the thresholds ends the wait for the next drop: the first packet after it draws a new one, and so
/// passes, though at this average every second packet is struck at the latest.
#[test]
fn the_wait_is_drawn_anew_when_the_average_comes_back() {
    let params =
        read("limit 400000 min 10000 max 30000 avpkt 1000 burst 25 probability 0.5").unwrap();
    let mut rng = Seed::new(1).stream("test");
    for outside in [params.min() - 1, params.max()] {
        let mut state = RedState::default();
        let mut struck = 0;
        for _ in 0..100 {
            assert_eq!(state.decide(&params, params.max() - 1, &mut rng), RedVerdict::Pass);
            for _ in 0..2 {
                let verdict = state.decide(&params, params.max() - 1, &mut rng);
                struck += u32::from(verdict == RedVerdict::Early);
            }
            state.decide(&params, outside, &mut rng);
        }
        assert!(struck >= 100, "{struck}");
    }
}

/// Below the lower threshold nothing is judged, from the upper one on all is.
#[test]
fn the_thresholds_belong_to_what_lies_above_them() {
    let params =
        read("limit 400000 min 10000 max 30000 avpkt 1000 burst 25 probability 0.5").unwrap();
    let mut rng = Seed::new(1).stream("test");
    let mut judge = |average: Average| {
        let mut state = RedState::default();
        let verdict = state.decide(&params, average, &mut rng);
        (verdict, format!("{state:?}").contains("since_last: Some"))
    };
    assert_eq!(judge(params.min() - 1), (RedVerdict::Pass, false));
    assert_eq!(judge(params.min()), (RedVerdict::Pass, true));
    assert_eq!(judge(params.max() - 1), (RedVerdict::Pass, true));
    assert_eq!(judge(params.max()), (RedVerdict::Forced, false));
}
