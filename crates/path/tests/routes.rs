//! Packets of servers with routes: which hops they pass, in which order, and where their time to live ends.

mod traffic;

use weir_core::{Direction, End, Packet, Seed, Time};
use weir_path::{ArrivalPoint, CapturePoint, HopPlace, Path};
use weir_scenario::{Hop, Host, LineRate, Route, Scenario};

use traffic::Heard;

/// Hops a, b (with a processor of a million packets per second) and c up, d and e down: 1, 2, 4, 8 and 16 ms.
/// Servers: 0 over all, then by each of `routes`.
fn scenario(routes: &[(&[u32], &[u32])]) -> Scenario {
    let hop = |name: &str, ms: u64| Hop {
        delay_ns: ms * 1_000_000,
        ..Hop::new(name, "pfifo limit 10", LineRate::Unlimited)
    };
    let mut scenario = Scenario::over("t", 1_000_000_000, hop("a", 1), hop("d", 8));
    let processor = Hop::processor("b", 1_000_000, 10);
    scenario.path.up.extend([processor, hop("b", 2), hop("c", 4)]);
    scenario.path.down.push(hop("e", 16));
    for (number, (up, down)) in (0..).zip(routes) {
        let name = format!("r{number}");
        scenario.routes.push(Route { name: name.clone(), up: up.to_vec(), down: down.to_vec() });
        scenario.hosts.push(Host { name, delay_ns: 0, route: Some(number) });
    }
    scenario
}

fn path(scenario: &Scenario, ends_behind: Option<u32>) -> Path<Heard> {
    weir_path::check(scenario).expect("it is sound");
    let traces = |name: &str| unreachable!("no recording {name}");
    let traffic = Heard::ending_behind(ends_behind);
    let mut path = Path::new(scenario, &traces, Seed::new(1), traffic, 0);
    for hop in 0..path.hops().len() {
        path.capture(hop, CapturePoint::Departures);
    }
    path
}

fn packet(host: u32) -> Packet {
    Packet { flow_id: host, ..traffic::packet(1_500) }
}

/// Where and when the packets of which server arrive, from `now` on.
fn arrivals(path: &mut Path<Heard>, now: Time) -> Vec<(Time, u32, ArrivalPoint)> {
    let mut arrived = Vec::new();
    let (mut due, mut at) = (None, now);
    loop {
        if let Some(source) = due {
            path.on_event(source, at);
        }
        while let Some((packet, point)) = path.next_arrived() {
            arrived.push((at, packet.flow_id, point));
        }
        let Some((then, source)) = path.events.next_by(Time::from_millis(1_000)) else { break };
        (due, at) = (Some(source), then);
    }
    arrived
}

/// The hops that a packet of server number `host` passes, with how many it has passed before, and when it arrives.
fn way(scenario: &Scenario, host: u32, from: End) -> (Vec<(String, u32)>, Time) {
    let mut path = path(scenario, None);
    path.send(packet(host), from, Time::ZERO);
    let [(at, of, point)] = arrivals(&mut path, Time::ZERO)[..] else { panic!("one arrives") };
    assert_eq!((of, point), (host, ArrivalPoint::End(from.other())));
    let name = |place: &HopPlace| path.hops()[place.number].name.clone();
    let passed = path.traffic.places.iter().map(|place| (name(place), place.passed));
    let passed: Vec<_> = passed.collect();
    for hop in path.hops() {
        let here = passed.iter().filter(|(passed_hop, _)| *passed_hop == hop.name).count() as u64;
        assert_eq!(hop.port.stats().departed.packets, here, "{}", hop.name);
    }
    (passed, at)
}

fn named(hops: &[(&str, u32)]) -> Vec<(String, u32)> {
    hops.iter().map(|&(name, passed)| (name.to_owned(), passed)).collect()
}

#[test]
fn packets_pass_the_hops_of_their_route_in_its_order() {
    let scenario = scenario(&[(&[3, 0], &[1]), (&[], &[]), (&[1, 2], &[1, 0])]);
    let us = |us: u64| Time::from_nanos(1_000 * us);
    let up = |host| way(&scenario, host, End::Client);
    let all = [("up/a", 0), ("up/b-cpu", 1), ("up/b", 1), ("up/c", 2)];
    assert_eq!(up(0), (named(&all), us(7_001)));
    assert_eq!(up(1), (named(&[("up/c", 0), ("up/a", 1)]), us(5_000)));
    assert_eq!(up(2), (vec![], us(0)));
    assert_eq!(up(3), (named(&[("up/b-cpu", 0), ("up/b", 0)]), us(2_001)));
    let down = |host| way(&scenario, host, End::Server);
    assert_eq!(down(0), (named(&[("down/d", 0), ("down/e", 1)]), us(24_000)));
    assert_eq!(down(1), (named(&[("down/e", 0)]), us(16_000)));
    assert_eq!(down(2), (vec![], us(0)));
    assert_eq!(down(3), (named(&[("down/e", 0), ("down/d", 1)]), us(24_000)));
}

#[test]
fn a_time_to_live_ends_at_the_routers_of_its_route_and_the_answer_goes_back_on_it() {
    let scenario = scenario(&[(&[3, 0], &[1]), (&[1, 2], &[1, 0])]);
    let us = |us: u64| Time::from_nanos(1_000 * us);
    // Of the route over c and a: before c, before a, and behind it. The answer from behind the last goes all the way
    // back, the others pass the last hops down of the route.
    for (host, passed, there, back) in [
        (1, 0, 0, 0),
        (1, 1, 4_000, 16_000),
        (1, 2, 5_000, 16_000),
        (2, 0, 1, 0),
        (2, 1, 2_001, 24_000),
        (0, 1, 1_001, 16_000),
        (0, 2, 3_001, 24_000),
        (0, 3, 7_001, 24_000),
    ] {
        let mut path = path(&scenario, Some(passed));
        path.send(packet(host), End::Client, Time::ZERO);
        let router = ArrivalPoint::Router { direction: Direction::Up, passed };
        assert_eq!(arrivals(&mut path, Time::ZERO), [(us(there), host, router)], "server {host}");
        path.traffic.ends_behind = None;
        path.send_back(packet(host), Direction::Up, passed, us(LATER));
        let end = ArrivalPoint::End(End::Client);
        let at = us(LATER + back);
        assert_eq!(
            arrivals(&mut path, us(LATER)),
            [(at, host, end)],
            "server {host} behind {passed}"
        );
    }
    // Downwards: before d, which is the second hop of that route.
    let mut down = path(&scenario, Some(1));
    down.send(packet(2), End::Server, Time::ZERO);
    let router = ArrivalPoint::Router { direction: Direction::Down, passed: 1 };
    assert_eq!(arrivals(&mut down, Time::ZERO), [(us(16_000), 2, router)]);
    down.traffic.ends_behind = None;
    down.send_back(packet(2), Direction::Down, 1, us(LATER));
    let end = ArrivalPoint::End(End::Server);
    assert_eq!(
        arrivals(&mut down, us(LATER)),
        [(us(LATER + 2_000), 2, end)],
        "over b, past its processor"
    );
}

#[test]
fn a_route_over_all_hops_is_the_path_without_routes() {
    let with_route = scenario(&[(&[0, 1, 2, 3], &[0, 1])]);
    for from in [End::Client, End::Server] {
        assert_eq!(way(&with_route, 0, from), way(&with_route, 1, from));
        assert_eq!(way(&scenario(&[]), 0, from), way(&with_route, 1, from));
    }
}

#[test]
fn packets_that_arrive_shortly_are_told_by_their_route() {
    let mut path = path(&scenario(&[(&[0], &[])]), None);
    path.send(packet(0), End::Client, Time::ZERO);
    path.send(packet(1), End::Client, Time::ZERO);
    let upcoming = path.upcoming(0).expect("one of them arrives");
    let flow = |ahead| upcoming.packet(ahead).map(|packet| packet.flow_id);
    assert_eq!((upcoming.end, flow(0), flow(1)), (End::Server, None, Some(1)));
}

/// When answers are sent, in microseconds: all else is over.
const LATER: u64 = 100_000;
