use weir_scenario::ServerTurn;

use super::*;

#[test]
fn a_round_trip_that_took_no_time_is_a_clock_that_was_set() {
    assert_eq!(plausible(Some(Duration::ZERO)), None);
    assert_eq!(plausible(Some(Duration::from_nanos(1))), Some(Duration::from_nanos(1)));
    assert_eq!(plausible(None), None);
}

#[test]
fn the_ways_of_a_server_with_a_clock_of_its_own_add_up_to_the_round_trip() {
    let row = LatencyRow {
        t: Time::from_millis(5_000),
        probe: 0,
        seq: 0,
        rtt: None,
        up: None,
        down: None,
        timer_error: Duration::ZERO,
        server: Some(ServerTurn { received_ns: 1_007_000_000, sent_ns: 1_009_000_000 }),
    };
    let found = ways(&row, Duration::from_millis(10)).unwrap();
    assert_eq!(found, OneWay { there_ns: -3_993_000_000, back_ns: 4_003_000_000 });
    assert_eq!(ways(&LatencyRow { server: None, ..row }, Duration::from_millis(10)), None);
    // What no clock tells.
    for received_ns in [1 << 63, u64::MAX, (1 << 63) - 1_000_000_000_000_000] {
        let server = Some(ServerTurn { received_ns, sent_ns: received_ns });
        assert_eq!(ways(&LatencyRow { server, ..row }, Duration::from_millis(10)), None);
    }
}

/// Two that are probed by TCP, the first of which was asked `probes` times since 1 s without an answer.
fn one_of_two_waits(probes: u32) -> Reflectors {
    let targets = [9, 7].map(|port| Target::Tcp(SocketAddr::from(([127, 0, 0, 1], port))));
    let mut reflectors = Reflectors::new(&targets, None, Time::ZERO);
    reflectors.all.iter_mut().for_each(|it| (it.heard, it.asked) = (true, ms(1_000)));
    let first = &mut reflectors.all[0];
    (first.waiting, first.unanswered) = (Some(ms(1_000)), probes);
    reflectors
}

const fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn turns(reflectors: &mut Reflectors, now: Time) -> [Option<usize>; 2] {
    [1, 0].map(|last| {
        reflectors.turn = last;
        reflectors.next_turn(now)
    })
}

#[test]
fn one_that_is_silent_has_its_turn_only_now_and_then() {
    let mut reflectors = one_of_two_waits(3);
    assert_eq!(turns(&mut reflectors, ms(5_900)), [Some(0), Some(1)]);
    assert_eq!(turns(&mut reflectors, ms(6_000)), [Some(1), Some(1)]);
    assert_eq!(turns(&mut reflectors, ms(31_000)), [Some(0), Some(1)]);
    // Where nobody answers all are asked in turn.
    reflectors.all[1].heard = false;
    assert_eq!(turns(&mut reflectors, ms(6_000)), [Some(0), Some(1)]);
}

#[test]
fn one_that_is_hardly_asked_is_not_silent_for_that() {
    let mut reflectors = one_of_two_waits(2);
    assert_eq!(turns(&mut reflectors, ms(60_000)), [Some(0), Some(1)]);
    assert_eq!(reflectors.heard(ms(3_900)).count(), 2);
    // The other one, which was not asked since, is still taken to answer.
    assert_eq!(reflectors.heard(ms(60_000)).count(), 1);
}

#[test]
fn those_that_were_named_and_do_not_answer_are_told_of_until_they_do() {
    let mut reflectors = one_of_two_waits(3);
    assert_eq!(reflectors.trouble(ms(5_900)), None);
    let silent = "no answer to probes from tcp:127.0.0.1:9";
    assert_eq!(reflectors.trouble(ms(6_000)).as_deref(), Some(silent));
    // Of servers each has its own reason.
    for (port, why) in [(7, "refused"), (9, "no session")] {
        let server = SocketAddr::from(([127, 0, 0, 1], port));
        let keeper = EchoKeeper::start(server, None).unwrap();
        let session = Session::new(server, keeper, Time::ZERO);
        reflectors.sessions.push(Session { trouble: Some(why.to_owned()), ..session });
    }
    let all = format!("refused; no session; {silent}");
    assert_eq!(reflectors.trouble(ms(6_000)), Some(all));
    reflectors.sessions.clear();
    // An answer.
    let first = &mut reflectors.all[0];
    (first.waiting, first.unanswered) = (None, 0);
    assert_eq!(reflectors.trouble(ms(60_000)), None);
    // One that cannot even be asked, as there is no route to it.
    reflectors.missing = vec![vec![Target::Icmp([192, 0, 2, 1].into())]];
    assert_eq!(
        reflectors.trouble(ms(60_000)).as_deref(),
        Some("no answer to probes from 192.0.2.1")
    );
    // Those that nobody named are not missed.
    reflectors.learn = true;
    assert_eq!(reflectors.trouble(ms(60_000)), None);
}

#[test]
fn where_nobody_was_named_it_is_told_of_that_nobody_answers_at_all() {
    let mut reflectors = one_of_two_waits(3);
    reflectors.learn = true;
    assert_eq!(reflectors.trouble(ms(6_000)), None, "the other one was not asked");
    let second = &mut reflectors.all[1];
    (second.waiting, second.unanswered) = (Some(ms(1_000)), 3);
    assert_eq!(reflectors.trouble(ms(5_900)), None);
    assert_eq!(reflectors.trouble(ms(6_000)).as_deref(), Some(NOBODY));
    // Nor is there a route to any.
    reflectors.all.clear();
    assert_eq!(reflectors.trouble(ms(4_900)), None);
    assert_eq!(reflectors.trouble(ms(5_000)).as_deref(), Some(NOBODY));
}

#[test]
fn a_host_that_cannot_ping_is_told_of_and_nobody_else_is_blamed() {
    let mut reflectors = one_of_two_waits(0);
    reflectors.missing = vec![vec![Target::Icmp([192, 0, 2, 1].into())]];
    reflectors.refused = true;
    let said = reflectors.trouble(ms(6_000)).unwrap();
    assert!(said.starts_with(NO_ICMP) && said.ends_with("`udp:HOST`"), "{said}");
    // What is asked otherwise may still not answer.
    reflectors.all[0].unanswered = 3;
    let silent = "; no answer to probes from tcp:127.0.0.1:9";
    assert_eq!(reflectors.trouble(ms(6_000)).unwrap(), format!("{said}{silent}"));
    // Nobody was named.
    reflectors.learn = true;
    assert_eq!(reflectors.trouble(ms(6_000)), Some(said));
}

/// As root, and as one who may neither: `setpriv --bounding-set -net_raw` where `ping_group_range` is 1 0.
#[test]
fn whether_this_host_can_ping_is_found_out_when_reflectors_are_opened() {
    let may = Reflector::icmp(Ipv4Addr::LOCALHOST.into(), FIRST_PORT);
    let forbidden = may.is_err_and(|error| is_forbidden(&error));
    let host = Target::Icmp(Ipv4Addr::LOCALHOST.into());
    for targets in [vec![], vec![host]] {
        let mut reflectors = Reflectors::new(&targets, None, Time::ZERO);
        let said = reflectors.trouble(Time::ZERO);
        assert_eq!(said.is_some_and(|said| said.starts_with(NO_ICMP)), forbidden);
        // It is looked at anew.
        reflectors.refused = true;
        reflectors.open(host, false, Time::ZERO);
        assert_eq!(reflectors.refused, forbidden);
    }
    // An address that nobody may probe is no reason to say so.
    let broadcast = Target::Icmp(Ipv4Addr::BROADCAST.into());
    let reflectors = Reflectors::new(&[broadcast], None, Time::ZERO);
    assert_eq!(reflectors.refused, forbidden);
}

/// A host that has got another address meanwhile asks by it; those who stay silent are not opened each time.
#[test]
fn one_that_was_named_and_is_silent_is_opened_anew_and_stays_silent_until_it_answers() {
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let mut reflectors = Reflectors::new(&[Target::Icmp(here)], None, Time::ZERO);
    if reflectors.refused {
        return;
    }
    let server = SocketAddr::from((here, 9));
    let keeper = EchoKeeper::start(server, None).unwrap();
    let session = Session::new(server, keeper, Time::ZERO);
    reflectors.sessions.push(Session { source: Some(1), ..session });
    let of_session = Reflector::tcp(server, 7).unwrap();
    reflectors.add(of_session, Target::Udp(server), Duration::ZERO, false, Time::ZERO);
    let own = |it: &Reflectors| (it.all[0].reflector.key().1, it.sessions[0].begun);
    let before = own(&reflectors);
    let mut looked = |now: Time, unanswered, other_answers| {
        for source in &mut reflectors.all {
            (source.heard, source.unanswered, source.waiting) =
                (true, unanswered, Some(ms(30_000)));
        }
        let target = Target::Tcp(SocketAddr::from((here, 7)));
        if other_answers {
            let other = Reflector::tcp(SocketAddr::from((here, 7)), 7).unwrap();
            reflectors.add(other, target, Duration::ZERO, false, now);
            reflectors.all.last_mut().expect("it was added").heard = true;
        }
        reflectors.reopen_silent(now);
        reflectors.all.retain(|it| it.target != target);
        assert_eq!(reflectors.all[0].is_silent(now), unanswered == SILENT_PROBES);
        own(&reflectors)
    };
    assert_eq!(looked(ms(40_000), SILENT_PROBES - 1, false), before);
    let anew = looked(ms(40_000), SILENT_PROBES, false);
    assert_ne!(anew.0, before.0);
    assert_eq!(anew.1, ms(40_000));
    assert_eq!(looked(ms(49_000), SILENT_PROBES, false), anew);
    // The source of a session that is begun anew is as silent as the one before.
    let mut again = one_of_two_waits(SILENT_PROBES);
    let old = again.forget(0).expect("it is there");
    again.add(
        Reflector::tcp(server, 8).unwrap(),
        Target::Udp(server),
        Duration::ZERO,
        false,
        ms(6_000),
    );
    assert!(!again.all[1].is_silent(ms(6_000)));
    again.goes_on(Some(old).filter(|old| old.is_silent(ms(6_000))));
    assert!(again.all[1].is_silent(ms(6_000)));
    // Where others answer there is no hurry.
    assert_eq!(looked(ms(69_000), SILENT_PROBES, true), anew);
    assert_eq!(looked(ms(70_000), SILENT_PROBES, true).1, ms(70_000));
    assert_eq!(looked(ms(80_000), SILENT_PROBES, false).1, ms(80_000));
}

/// A pause that was asked for while the line slept does not hold once it is awake.
#[test]
fn a_shorter_pause_counts_from_the_last_probe() {
    let clock = Clock::starting_in(Duration::ZERO);
    let mut reflectors = one_of_two_waits(0);
    let mut next = |every: Duration, now| {
        reflectors.ask(Some(every), true, clock, now);
        reflectors.next()
    };
    let (asleep, awake) = (Duration::from_secs(60), Duration::from_millis(20));
    assert_eq!(next(asleep, ms(2_000)), ms(62_000));
    assert_eq!(next(asleep, ms(9_000)), ms(62_000));
    assert_eq!(next(awake, ms(9_020)), ms(9_040), "asked at once");
}

#[test]
fn each_well_known_reflector_is_tried_by_ipv4_and_then_by_ipv6() {
    for addresses in well_known() {
        let kinds: Vec<bool> = addresses
            .iter()
            .map(|target| matches!(target, Target::Icmp(address) if address.is_ipv4()))
            .collect();
        assert_eq!(kinds, [true, false]);
    }
}
