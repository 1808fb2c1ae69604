//! A router whose processor forwards only so many packets per second.

mod traffic;

use weir_core::{Duration, End, Seed, Time};
use weir_path::{ArrivalPoint, Path};
use weir_qdisc::{DropReason, Stats};
use weir_scenario::{Direction, Hop, LineRate, Scenario};

use traffic::{Heard, packet};

/// A line of `bps` each way, with a processor of `packets_per_second` in front of it and room for ten to wait.
fn slow_router(packets_per_second: u64, bps: u64) -> Scenario {
    let line = Hop::new("line", "pfifo limit 100", LineRate::Bps(bps));
    let mut scenario = Scenario::over("t", 1_000_000_000, line.clone(), line);
    scenario.path.up.insert(0, Hop::processor("line", packets_per_second, 10));
    scenario.path.down.insert(0, Hop::processor("line", packets_per_second, 10));
    scenario
}

fn path(scenario: &Scenario, ends_behind: Option<u32>) -> Path<Heard> {
    weir_path::check(scenario).expect("it is sound");
    let traces = |name: &str| unreachable!("no recording {name}");
    Path::new(scenario, &traces, Seed::new(1), Heard::ending_behind(ends_behind), 0)
}

/// Where and when packets arrive until `limit`.
fn arrivals(path: &mut Path<Heard>, limit: Time) -> Vec<(Time, ArrivalPoint)> {
    let mut arrived = Vec::new();
    while let Some((at, source)) = path.events.next_by(limit) {
        path.on_event(source, at);
        while let Some((_, point)) = path.next_arrived() {
            arrived.push((at, point));
        }
    }
    arrived
}

/// Packets that arrive in a second in which 100 000 of `ip_len` bytes are sent, and the counts of each hop.
fn flood(scenario: &Scenario, ip_len: u32, from: End) -> (usize, Vec<(String, Stats)>) {
    let mut path = path(scenario, None);
    let mut arrived = 0;
    for number in 0..100_000 {
        let now = Time::ZERO + Duration::from_micros(10 * number);
        arrived += arrivals(&mut path, now).len();
        path.send(packet(ip_len), from, now);
    }
    arrived += arrivals(&mut path, Time::from_millis(1_000)).len();
    let stats = path.hops().iter().map(|hop| (hop.name.clone(), hop.port.stats()));
    (arrived, stats.collect())
}

#[test]
fn what_passes_is_the_lesser_of_the_line_and_of_the_processor() {
    let passed = |bps, ip_len, from| flood(&slow_router(6_250, bps), ip_len, from).0;
    for from in [End::Client, End::Server] {
        // 75 Mbit/s of full packets; the last is on the line when the second is over.
        assert_eq!(passed(100_000_000, 1_500, from), 6_249);
        // A line of 50 Mbit/s carries one in 240 us, the first of which left the processor after 160 us.
        assert_eq!(passed(50_000_000, 1_500, from), 4_166);
        // 3.2 Mbit/s of short ones, however fast the line.
        assert_eq!(passed(100_000_000, 64, from), 6_249);
        assert_eq!(passed(1_000_000_000, 64, from), 6_249);
    }
}

#[test]
fn the_processor_drops_what_its_fifo_does_not_hold_and_the_line_nothing() {
    let (_, hops) = flood(&slow_router(6_250, 100_000_000), 1_500, End::Client);
    let (name, processor) = &hops[0];
    assert_eq!(name, "up/line-cpu");
    assert_eq!(processor.arrived.packets, 100_000);
    assert_eq!(processor.departed.packets, 6_251, "one at the start, one as the second is over");
    // Ten waited, of which the last to depart was one.
    assert_eq!(processor.dropped[DropReason::Overlimit as usize].packets, 100_000 - 6_251 - 9);
    let (behind, line) = &hops[1];
    assert_eq!((behind.as_str(), line.total_dropped().packets), ("up/line", 0));
}

#[test]
fn a_processor_is_no_router_of_its_own() {
    let scenario = slow_router(1_000, 12_000_000);
    assert_eq!(scenario.counted_hops(Direction::Up), 1);
    let ms = Time::from_millis;
    for (passed, at) in [(0, ms(1)), (1, ms(2))] {
        let mut path = path(&scenario, Some(passed));
        path.send(packet(1_500), End::Client, Time::ZERO);
        let router = ArrivalPoint::Router { direction: Direction::Up, passed };
        assert_eq!(arrivals(&mut path, ms(100)), [(at, router)], "behind {passed} hops");
        // Its answer takes a millisecond on the line back if it comes from behind that, and passes no processor.
        path.traffic.ends_behind = None;
        path.send_back(packet(1_500), Direction::Up, passed, ms(100));
        let back = match path.next_arrived() {
            Some((_, point)) => vec![(ms(100), point)],
            None => arrivals(&mut path, ms(200)),
        };
        let end = ArrivalPoint::End(End::Client);
        assert_eq!(back, [(ms(100 + u64::from(passed)), end)], "behind {passed} hops");
    }
}
