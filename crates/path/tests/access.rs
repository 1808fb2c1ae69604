//! Lines that must ask or compete before they send, and lines that are others from time to time.

mod traffic;

use weir_core::{Duration, End, Packet, Seed, Time};
use weir_path::Path;
use weir_scenario::{
    Access, AirtimeParams, Direction, GrantParams, Hop, LineRate, Reconfiguration, Scenario,
};

use traffic::Heard;

const fn us(us: u64) -> Time {
    Time::from_nanos(us * 1_000)
}

/// A line of 12 Mbit/s, on which 1500 bytes take a millisecond.
fn hop() -> Hop {
    Hop::new("line", "pfifo limit 100000", LineRate::Bps(12_000_000))
}

fn airtime(medium: Option<&str>) -> AirtimeParams {
    AirtimeParams {
        medium: medium.map(str::to_owned),
        packets: 3,
        longest_ns: 100_000_000,
        overhead_ns: 100_000,
        gap_ns: 34_000,
        slot_ns: 9_000,
        window: 0,
        max_window: 0,
        failures: 0.0,
    }
}

fn path(up: Hop, down: Hop, seed: u64) -> Path<Heard> {
    let scenario = Scenario::over("t", 1_000_000_000, up, down);
    weir_path::check(&scenario).expect("it is sound");
    let traces = |name: &str| unreachable!("no recording {name}");
    Path::new(&scenario, &traces, Seed::new(seed), Heard::default(), 0)
}

fn packet(handle: u64) -> Packet {
    Packet { handle, ..traffic::packet(1_500) }
}

/// Packets that arrive until `limit`: when, and their numbers.
fn arrivals(path: &mut Path<Heard>, limit: Time) -> Vec<(Time, u64)> {
    let mut arrived = Vec::new();
    while let Some((at, source)) = path.events.next_by(limit) {
        path.on_event(source, at);
        while let Some((packet, _)) = path.next_arrived() {
            arrived.push((at, packet.handle));
        }
    }
    arrived
}

#[test]
fn packets_that_arrive_at_one_instant_come_in_order_and_by_one_event() {
    let rate = LineRate::Unlimited;
    let mut path = path(Hop { rate, delay_ns: 1_000, ..hop() }, hop(), 1);
    for number in 0..3 {
        path.send(packet(number), End::Client, Time::ZERO);
    }
    let (at, source) = path.events.next().expect("packets are under way");
    path.on_event(source, at);
    let numbers = std::iter::from_fn(|| path.next_arrived()).map(|(packet, _)| packet.handle);
    assert_eq!((at, numbers.collect::<Vec<_>>()), (us(1), vec![0, 1, 2]));
    assert_eq!(path.events.next(), None);
}

#[test]
fn an_aggregate_pays_once_for_silence_and_overhead() {
    let access = Some(Access::Airtime(airtime(None)));
    let mut path = path(Hop { access, ..hop() }, hop(), 1);
    for number in 0..5 {
        path.send(packet(number), End::Client, Time::ZERO);
    }
    // 34 us of silence, 100 us of overhead, then three packets of a millisecond each.
    let first = [(us(1_134), 0), (us(2_134), 1), (us(3_134), 2)];
    let second = [(us(4_268), 3), (us(5_268), 4)];
    assert_eq!(arrivals(&mut path, us(100_000)), [&first[..], &second[..]].concat());
}

#[test]
fn no_packet_is_begun_too_long_after_the_first_of_its_aggregate() {
    let access = Some(Access::Airtime(AirtimeParams { longest_ns: 1_500_000, ..airtime(None) }));
    let mut path = path(Hop { access, ..hop() }, hop(), 1);
    for number in 0..3 {
        path.send(packet(number), End::Client, Time::ZERO);
    }
    let times: Vec<_> = arrivals(&mut path, us(100_000)).into_iter().map(|one| one.0).collect();
    assert_eq!(times, [us(1_134), us(2_134), us(3_268)]);
}

#[test]
fn both_directions_of_a_medium_take_turns() {
    let access = Some(Access::Airtime(airtime(Some("air"))));
    let wireless = || Hop { access: access.clone(), ..hop() };
    let mut path = path(wireless(), wireless(), 1);
    for number in 0..6 {
        path.send(packet(number), End::Client, Time::ZERO);
        path.send(packet(100 + number), End::Server, Time::ZERO);
    }
    let arrived = arrivals(&mut path, us(100_000));
    let numbers: Vec<_> = arrived.iter().map(|&(_, number)| number).collect();
    assert_eq!(numbers, [0, 1, 2, 100, 101, 102, 3, 4, 5, 103, 104, 105]);
    // Four opportunities of 3.134 ms, none beside another, and nanoseconds by which turns are told apart.
    let last = arrived.last().unwrap().0.since(us(4 * 3_134));
    assert!(last < Duration::from_nanos(10), "{last}");
}

#[test]
fn slots_are_counted_on_after_others_have_sent() {
    let with = |window| {
        let params = AirtimeParams { window, max_window: window, ..airtime(Some("air")) };
        Hop { access: Some(Access::Airtime(params)), ..hop() }
    };
    // The client draws up to 15 slots, the server none.
    let alone = {
        let mut path = path(with(15), with(0), 5);
        path.send(packet(0), End::Client, Time::ZERO);
        arrivals(&mut path, us(100_000))[0].0.since(us(1_134))
    };
    assert!(alone > Duration::ZERO && alone.as_nanos().is_multiple_of(9_000), "{alone}");
    let mut path = path(with(15), with(0), 5);
    path.send(packet(0), End::Client, Time::ZERO);
    path.send(packet(1), End::Server, Time::ZERO);
    let arrived = arrivals(&mut path, us(100_000));
    assert_eq!(arrived, [(us(1_134), 1), (us(2 * 1_134) + alone, 0)]);
}

#[test]
fn failures_cost_airtime_and_no_packet() {
    let seconds = |failures| {
        let params = AirtimeParams { failures, window: 15, max_window: 1_023, ..airtime(None) };
        let mut path = path(Hop { access: Some(Access::Airtime(params)), ..hop() }, hop(), 1);
        for number in 0..3_000 {
            path.send(packet(number), End::Client, Time::ZERO);
        }
        let arrived = arrivals(&mut path, us(60_000_000));
        assert!(arrived.iter().map(|one| one.1).eq(0..3_000), "in order, and all of them");
        assert_eq!(path.traffic.dropped, 0);
        arrived.last().unwrap().0.as_secs_f64()
    };
    // A thousand opportunities of 3.134 ms and 7.5 slots of 9 us on average.
    let sound = seconds(0.0);
    assert!((sound - 3.2015).abs() < 0.003, "{sound}");
    // A third of all attempts fails: half a failure an opportunity. Each costs 134 us, and slots of a window that
    // has doubled once or more often, to 31, 63 ... 1023.
    let failing = seconds(1.0 / 3.0);
    let window = |failed: i32| (16.0 * f64::powi(2.0, failed) - 1.0).min(1_023.0);
    let slots = (1..=20).map(|failed| f64::powi(1.0 / 3.0, failed) * window(failed) / 2.0);
    let expected = sound + 0.5 * 0.134 + 0.009 * slots.sum::<f64>();
    assert!((failing - expected).abs() < 0.05, "{failing} where {expected} was expected");
}

#[test]
fn a_modem_asks_first_and_then_sends_at_the_rate_of_its_line() {
    let access = Some(Access::Grants(GrantParams { interval_ns: 2_000_000, delay_ns: 3_000_000 }));
    let mut path = path(Hop { access, ..hop() }, hop(), 1);
    for number in 0..1_000 {
        path.send(packet(number), End::Client, us(500));
    }
    let arrived = arrivals(&mut path, us(60_000_000));
    assert!(arrived.iter().map(|one| one.1).eq(0..1_000));
    // The request comes from 2 to 4 ms, the grant at 6 or 8; all that waited was asked for at once.
    let first = arrived[0].0;
    assert!([us(7_000), us(9_000)].contains(&first), "{first}");
    assert_eq!(arrived[999].0.since(first), Duration::from_millis(999));
}

#[test]
fn a_shaped_load_waits_for_grants_and_for_nothing_else() {
    let access = Some(Access::Grants(GrantParams { interval_ns: 2_000_000, delay_ns: 3_000_000 }));
    let mut path = path(Hop { access, ..hop() }, hop(), 1);
    // 8 of 12 Mbit/s.
    let mut arrived = Vec::new();
    for number in 0..2_000 {
        let now = us(1_500 * number);
        arrived.extend(arrivals(&mut path, now));
        path.send(packet(number), End::Client, now);
    }
    arrived.extend(arrivals(&mut path, us(60_000_000)));
    let waits = arrived.iter().map(|&(at, number)| at.since(us(1_500 * number)));
    let waits: Vec<_> = waits.map(Duration::as_millis_f64).collect();
    assert_eq!(waits.len(), 2_000);
    let mean = waits.iter().sum::<f64>() / 2_000.0;
    // Of an interval on average half, then the next start behind 3 ms, then a millisecond or two on the line.
    assert!((5.0..9.0).contains(&mean), "{mean}");
    assert!(waits.iter().all(|&ms| ms < 14.0), "{waits:?}");
}

#[test]
fn a_line_pauses_and_has_another_rate_and_delay_on_each_path() {
    let reconfiguration = Some(Reconfiguration {
        first_ns: 100_000_000,
        period_ns: 100_000_000,
        delay_ns: 20_000_000,
        min_rate_share: 0.5,
        outage_ns: 30_000_000,
    });
    let mut path = path(Hop { reconfiguration, ..hop() }, hop(), 4);
    for number in 0..5_000 {
        path.send(packet(number), End::Client, Time::ZERO);
    }
    let arrived = arrivals(&mut path, us(60_000_000));
    assert!(arrived.iter().map(|one| one.1).eq(0..5_000), "in order, and all of them");
    // 5000 packets of 1 to 2 ms, of which 7 tenths of the time are left but for the first path.
    let seconds = arrived.last().unwrap().0.as_secs_f64();
    assert!((5.0 / 0.7 * 1.2..5.0 / 0.7 * 1.5).contains(&seconds), "{seconds}");
    let gaps =
        arrived.windows(2).filter(|pair| pair[1].0.since(pair[0].0) > Duration::from_millis(5));
    assert!(gaps.count() >= 60);
}

/// Whatever the access, as many packets arrive as were sent, in their order, and the same again with the same seed.
#[test]
fn nothing_is_lost_or_overtakes_whatever_comes_before_sending() {
    let grants = Access::Grants(GrantParams { interval_ns: 1_000_000, delay_ns: 2_500_000 });
    let params =
        AirtimeParams { window: 15, max_window: 1_023, failures: 0.2, ..airtime(Some("air")) };
    let reconfiguration = Some(Reconfiguration {
        first_ns: 50_000_000,
        period_ns: 70_000_000,
        delay_ns: 9_000_000,
        min_rate_share: 0.3,
        outage_ns: 20_000_000,
    });
    for access in [grants, Access::Airtime(params)] {
        for seed in 1..=5 {
            let run = || {
                let hop = Hop { access: Some(access.clone()), reconfiguration, ..hop() };
                let mut path = path(hop.clone(), hop, seed);
                let mut arrived = Vec::new();
                for number in 0..2_000u64 {
                    let now = us((number / 40) * 90_000 + (number % 40) * 300);
                    arrived.extend(arrivals(&mut path, now));
                    let end = if number.is_multiple_of(3) { End::Server } else { End::Client };
                    path.send(packet(number), end, now);
                }
                arrived.extend(arrivals(&mut path, us(600_000_000)));
                (arrived, path.traffic.dropped)
            };
            let (arrived, dropped) = run();
            assert_eq!((arrived.len(), dropped), (2_000, 0));
            for direction in [Direction::Up, Direction::Down] {
                let down = |number: u64| number.is_multiple_of(3);
                let of = |one: &&(Time, u64)| down(one.1) == (direction == Direction::Down);
                assert!(arrived.iter().filter(of).map(|one| one.1).is_sorted(), "{direction}");
            }
            assert_eq!(run().0, arrived);
        }
    }
}
