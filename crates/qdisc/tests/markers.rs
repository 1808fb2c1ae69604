//! What every marker must do, whatever it is, and what each of them does with exact packets. A new marker
//! joins by its line in the list and its own `examples`.

use proptest::prelude::*;
use weir_core::{Dscp, Duration, Ecn, FlowKey, Packet, Protocol, TcpHeader, Time, comes_before};
use weir_qdisc::{
    About, Colour, Device, DropReason, DropSink, MARKERS, MarkReason, Marker, MarkerSpec,
};

/// One packet of a flow.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    after: Duration,
    flow: u16,
    ip_len: u32,
    dscp: Dscp,
    tcp: Option<TcpHeader>,
    window: u32,
}

/// What the markers may know of the packet at hand.
struct Known(Arrival);

impl DropSink for Known {
    fn on_drop(&mut self, _: Packet, _: DropReason) {}
    fn on_mark(&mut self, _: &Packet, _: MarkReason) {}

    fn tcp_header(&self, _: &Packet) -> Option<TcpHeader> {
        self.0.tcp
    }
}

impl About for Known {
    fn window(&self, _: &Packet) -> Option<u32> {
        Some(self.0.window)
    }
}

fn packet(arrival: &Arrival, now: Time) -> Packet {
    let key = FlowKey {
        src: "10.0.0.1".parse().unwrap(),
        dst: "10.0.1.1".parse().unwrap(),
        sport: 10_000 + arrival.flow,
        dport: 5_000,
        protocol: Protocol::TCP,
    };
    Packet {
        handle: 7,
        enqueued_at: now,
        label: key.label(7),
        len: arrival.ip_len + 14,
        flow_id: arrival.flow.into(),
        dscp: arrival.dscp,
        ecn: Ecn::Ect0,
    }
}

fn marker(text: &str) -> Marker {
    let built = MarkerSpec::parse(text).and_then(|spec| spec.build(&Device::default()));
    built.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The colours of all packets.
fn colours(text: &str, arrivals: &[Arrival]) -> Vec<Colour> {
    let mut marker = marker(text);
    let mut now = Time::ZERO;
    let colour = |arrival: &Arrival| {
        now += arrival.after;
        let before = packet(arrival, now);
        let mut after = before;
        marker.mark(&mut after, &Known(*arrival), now);
        assert_eq!(after, Packet { dscp: after.dscp, ..before }, "{text}: more than a colour");
        Colour::of(after.dscp).expect("every packet gets a colour")
    };
    arrivals.iter().map(colour).collect()
}

/// `g`, `y` and `r`.
fn letters(colours: &[Colour]) -> String {
    colours.iter().map(|colour| &colour.name()[..1]).collect()
}

/// The header of `payload` bytes from `seq` on.
fn header(seq: u32, payload: u32) -> TcpHeader {
    TcpHeader { seq, payload, ..TcpHeader::default() }
}

/// A full packet of new data.
fn data(flow: u16, number: u32) -> Arrival {
    Arrival {
        after: Duration::ZERO,
        flow,
        ip_len: 1_500,
        dscp: Dscp::BE,
        tcp: Some(header(number * 1_460, 1_460)),
        window: 10,
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let dscp = prop_oneof![Just(0u8), Just(10), Just(12), Just(14), Just(46)];
    let tcp = prop_oneof![
        4 => (0..40u32).prop_map(|n| Some(header(n * 1_460, 1_460))),
        1 => Just(Some(header(u32::MAX - 700, 1_460))),
        1 => Just(Some(header(0, 0))),
        1 => Just(None),
    ];
    (0..200_000_000u64, 0..6u16, 40..=1_500u32, dscp, tcp, 1..40u32).prop_map(
        |(nanos, flow, ip_len, dscp, tcp, window)| Arrival {
            // Mostly a few milliseconds, now and then several intervals.
            after: Duration::from_nanos(if nanos > 190_000_000 { 9 * nanos } else { nanos / 50 }),
            flow,
            ip_len,
            dscp: Dscp::new(dscp).unwrap(),
            tcp,
            window,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    /// Every packet is forwarded with a colour and nothing else changed, and the same packets get the same
    /// colours again.
    #[test]
    fn markers_colour_and_forward(arrivals in prop::collection::vec(arrival(), 1..300)) {
        for kind in MARKERS {
            for example in kind.examples {
                let once = colours(example, &arrivals);
                prop_assert_eq!(once, colours(example, &arrivals), "{}", example);
            }
        }
    }

    /// With a strict cap no interval has more green data than its tokens and those carried over.
    #[test]
    fn a_strict_cap_holds(arrivals in prop::collection::vec(arrival(), 1..300)) {
        let text = "tcp_friendly cap strict tokens 20000 interval 20ms";
        let mut now = 0;
        let mut green = std::collections::BTreeMap::new();
        for (arrival, colour) in arrivals.iter().zip(colours(text, &arrivals)) {
            now += arrival.after.as_nanos();
            let has_data = arrival.tcp.is_none_or(|header| header.payload > 0);
            if colour == Colour::Green && has_data {
                *green.entry(now / 20_000_000).or_insert(0) += arrival.ip_len.saturating_sub(20);
            }
        }
        for (interval, bytes) in green {
            prop_assert!(bytes <= 2 * 20_000, "{} bytes in interval {}", bytes, interval);
        }
    }

    /// With a soft cap, data that is sent again is green, and no two packets of a flow in a row are red, as
    /// long as the flow is remembered.
    #[test]
    fn a_soft_cap_protects(arrivals in prop::collection::vec(arrival(), 1..300)) {
        let text = "tcp_friendly tokens 3000 forget 10000";
        let mut ends = [None::<u32>; 6];
        let mut was_red = [false; 6];
        for (arrival, colour) in arrivals.iter().zip(colours(text, &arrivals)) {
            let flow = usize::from(arrival.flow);
            let header = arrival.tcp.filter(|header| header.payload > 0);
            let again = header
                .is_some_and(|header| ends[flow].is_some_and(|end| comes_before(header.seq, end)));
            if let (Some(header), false) = (header, again) {
                ends[flow] = Some(header.end());
            }
            let red = colour == Colour::Red;
            prop_assert!(!(red && again), "a retransmission of flow {} is red", flow);
            if arrival.tcp.is_some_and(|one| one.payload == 0) {
                prop_assert!(!red);
                continue;
            }
            prop_assert!(!(red && was_red[flow]), "two in a row of flow {}", flow);
            was_red[flow] = red;
        }
    }
}

#[test]
fn names_are_unique_and_errors_one_sentence() {
    let mut names: Vec<_> = MARKERS.iter().map(|kind| kind.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), MARKERS.len());
    let error = |text: &str| {
        let built = MarkerSpec::parse(text).and_then(|spec| spec.build(&Device::default()));
        built.err().unwrap().to_string()
    };
    assert_eq!(
        error("paint"),
        "unknown marker `paint` (known: token_bucket, tcp_friendly, tcp_friendly_1, fair, srtcm, \
         trtcm, tswtcm)"
    );
    assert_eq!(error(""), "an empty marker: name one, such as `token_bucket`");
    assert_eq!(
        error("token_bucket class 5"),
        "token_bucket: `class 5`: write a number from 1 to 4"
    );
    assert_eq!(
        error("token_bucket interval 0ms"),
        "token_bucket: `interval 0`: write a time above 0, such as 400ms"
    );
    assert_eq!(
        error("trtcm cir 2mbit pir 1mbit"),
        "trtcm: `pir 1Mbit`: write `cir`, which is 2Mbit, or more"
    );
}

#[test]
fn only_the_oracle_needs_the_senders_window() {
    for kind in MARKERS {
        for example in kind.examples {
            assert_eq!(marker(example).needs_window(), example.contains("window sender"));
        }
    }
}

#[test]
fn a_batch_of_tokens_is_followed_by_a_block_of_red() {
    // Two packets' tokens an interval of 10 ms; a packet every 3 ms.
    let mut arrivals = vec![data(0, 0)];
    arrivals.extend((1..8).map(|n| Arrival { after: ms(3), ..data(0, n) }));
    let batch = "token_bucket tokens 2960 interval 10ms";
    // At 0, 3, 6, 9 | 12, 15, 18 | 21 ms.
    assert_eq!(letters(&colours(batch, &arrivals)), "ggrrggrg");
    // Continuously 296 bytes a millisecond: 888 between two packets of 1480.
    let continuous = format!("{batch} refill continuous");
    assert_eq!(letters(&colours(&continuous, &arrivals)), "gggrggrg");
    let class = "token_bucket tokens 2960 class 3";
    let mut first = packet(&arrivals[0], Time::ZERO);
    marker(class).mark(&mut first, &Known(arrivals[0]), Time::ZERO);
    assert_eq!(first.dscp.to_string(), "AF31");
}

#[test]
fn the_first_generation_alternates_in_the_second_half() {
    let arrivals: Vec<_> = (0..12).map(|n| data(0, n)).collect();
    let text = "tcp_friendly_1 tokens 11840 interval 400ms";
    assert_eq!(letters(&colours(text, &arrivals)), "ggggrgrgrgrg");
    let late: Vec<_> = (0..4).map(|n| Arrival { after: ms(50 + 50 * n), ..data(0, 0) }).collect();
    // At 50, 150, 300 and 500 ms; the second half begins at 200 ms.
    assert_eq!(letters(&colours(text, &late)), "ggrg");
    let by_tokens = format!("{text} alternate tokens");
    assert_eq!(letters(&colours(&by_tokens, &late)), "gggg");
}

#[test]
fn the_first_generation_shares_tokens_between_flows() {
    // The first interval shows who is there; in the next each flow has four packets' tokens.
    let mut arrivals = vec![data(0, 0), data(1, 0)];
    arrivals.push(Arrival { after: ms(400), ..data(0, 1) });
    arrivals.extend((2..8).map(|n| data(0, n)));
    arrivals.push(data(1, 1));
    let text = "tcp_friendly_1 per flow tokens 5920 interval 400ms alternate tokens";
    // Two of its own and up to as many again that were left over.
    assert_eq!(letters(&colours(text, &arrivals)[2..]), "ggrgrgrg");
}

#[test]
fn small_windows_and_retransmissions_are_green_on_credit() {
    let text = "tcp_friendly tokens 1480 interval 400ms small 2";
    // Eight packets in the first interval make a window of eight in the second.
    let mut arrivals: Vec<_> = (0..8).map(|n| data(0, n)).collect();
    arrivals.push(Arrival { after: ms(400), ..data(0, 8) });
    arrivals.push(data(0, 3));
    arrivals.push(data(1, 0));
    arrivals.push(data(1, 1));
    let soft = letters(&colours(text, &arrivals));
    assert_eq!(&soft[9..], "ggg");
    let strict = letters(&colours(&format!("{text} cap strict"), &arrivals));
    assert_eq!(&strict[9..], "rrr");
}

#[test]
fn red_packets_of_a_flow_are_spread_over_its_window() {
    // Twelve packets an interval, of which tokens cover eight: every third may be red.
    let mut arrivals = Vec::new();
    for interval in 0..4u32 {
        for n in 0..12u32 {
            let after = if interval > 0 && n == 0 { ms(400) } else { Duration::ZERO };
            arrivals.push(Arrival { after, ..data(0, 12 * interval + n) });
        }
    }
    let text = "tcp_friendly tokens 11840 interval 400ms small 2";
    assert_eq!(letters(&colours(text, &arrivals)[36..]), "grggrggrggrg");
}

/// `spacing` holds as long as tokens last; behind them every second packet is red, or each with a strict cap.
#[test]
fn red_packets_keep_their_distance_as_long_as_tokens_last() {
    // Twenty packets an interval. Tokens cover twelve, less those that a soft cap gave on credit before.
    let mut arrivals = Vec::new();
    for interval in 0..2u32 {
        for n in 0..20u32 {
            let after = if interval > 0 && n == 0 { ms(400) } else { Duration::ZERO };
            arrivals.push(Arrival { after, ..data(0, 20 * interval + n) });
        }
    }
    let text = "tcp_friendly tokens 17760 interval 400ms small 2 spacing 5";
    assert_eq!(&letters(&colours(text, &arrivals))[20..], "gggrggggrggrgrgrgrgr");
    let strict = format!("{text} cap strict");
    assert_eq!(&letters(&colours(&strict, &arrivals))[20..], "ggggrggggrggggrrrrrr");
}

#[test]
fn the_oracle_knows_which_windows_are_small() {
    // It counts twenty packets, but the sender's window is two.
    let arrivals: Vec<_> = (0..20).map(|n| Arrival { window: 2, ..data(0, n) }).collect();
    let count = "tcp_friendly tokens 1480 small 4";
    assert!(letters(&colours(count, &arrivals)).contains('r'));
    let oracle = format!("{count} window sender");
    assert_eq!(letters(&colours(&oracle, &arrivals)), "g".repeat(20));
}

#[test]
fn the_fair_marker_leaves_tokens_to_flows_with_few() {
    // Flow 0 takes all that one flow may have; flow 1 still gets its share.
    let mut arrivals: Vec<_> = (0..30).map(|n| data(0, n)).collect();
    arrivals.push(data(1, 0));
    let got = letters(&colours("fair wq 1", &arrivals));
    let greedy = got[..30].chars().filter(|&letter| letter == 'g').count();
    // The lower threshold, 23680 bytes, in packets of 1514.
    assert_eq!((greedy, &got[30..]), (16, "g"));
    // Traces vanish at 740 bytes a millisecond.
    arrivals.push(Arrival { after: ms(2), ..data(2, 0) });
    arrivals.push(Arrival { after: ms(400), ..data(0, 30) });
    assert_eq!(&letters(&colours("fair wq 1", &arrivals))[31..], "gg");
}

#[test]
fn a_single_rate_marker_spends_the_committed_burst_then_the_excess_burst() {
    // RFC 2697: 1500 bytes are one packet; 1 Mbit/s brings 125 bytes a millisecond.
    let text = "srtcm cir 1mbit cbs 3000 ebs 1500";
    let mut arrivals: Vec<_> = (0..4).map(|n| data(0, n)).collect();
    arrivals.push(Arrival { after: ms(12), ..data(0, 4) });
    // 36 ms fill the committed bucket, and 12 more the excess bucket.
    arrivals.push(Arrival { after: ms(36), ..data(0, 5) });
    arrivals.extend((6..9).map(|n| data(0, n)));
    assert_eq!(letters(&colours(text, &arrivals)), "ggyrgggyr");
    let aware = format!("{text} mode aware");
    let yellow = Arrival { dscp: Colour::Yellow.dscp(1), ..data(0, 0) };
    let red = Arrival { dscp: Colour::Red.dscp(1), ..data(0, 0) };
    let brought = [red, yellow, yellow, data(0, 0), data(0, 0), data(0, 0)];
    assert_eq!(letters(&colours(&aware, &brought)), "ryrggr");
}

#[test]
fn a_two_rate_marker_has_a_bucket_for_each_rate() {
    // RFC 2698: a packet that is red takes no tokens, one that is yellow only those of the peak.
    let text = "trtcm cir 1mbit cbs 1500 pir 2mbit pbs 4500";
    let mut arrivals: Vec<_> = (0..4).map(|n| data(0, n)).collect();
    // 6 ms bring 1500 bytes at the peak rate, 750 at the committed one.
    arrivals.push(Arrival { after: ms(6), ..data(0, 4) });
    arrivals.push(Arrival { after: ms(6), ..data(0, 5) });
    assert_eq!(letters(&colours(text, &arrivals)), "gyyryg");
    let yellow = Arrival { dscp: Colour::Yellow.dscp(2), ..data(0, 0) };
    let red = Arrival { dscp: Colour::Red.dscp(2), ..data(0, 0) };
    let aware = format!("{text} mode aware");
    assert_eq!(letters(&colours(&aware, &[red, yellow, data(0, 0), red])), "rygr");
}

#[test]
fn a_sliding_window_colours_what_exceeds_the_rates_by_lot() {
    // 3 Mbit/s against 1 and 2: a third each.
    let arrivals: Vec<_> = (0..30_000).map(|n| Arrival { after: ms(4), ..data(0, n) }).collect();
    let got = colours("tswtcm ctr 1mbit ptr 2mbit", &arrivals);
    for colour in Colour::ALL {
        let count = got[1_000..].iter().filter(|&&one| one == colour).count();
        assert!((9_300..10_050).contains(&count), "{count} are {}", colour.name());
    }
    assert!(colours("tswtcm ctr 4mbit", &arrivals).iter().all(|&colour| colour == Colour::Green));
}
