//! When a run begins does not matter: the same arrivals, later, leave as much later, and the same are
//! dropped and marked. A new discipline joins by its line in the registry and its own `examples`.

use proptest::prelude::*;
use weir_core::{Dscp, Duration, Ecn, FlowKey, Packet, Protocol, Rate, Time};
use weir_qdisc::{DISCIPLINES, Device, DropReason, QueueSpec, replay};

/// A packet of the schedule: nanoseconds after the one before it, flow, length, TOS byte.
type Arrival = (u64, u16, u32, u8);

/// What a discipline's clock repeats after, if it has one that begins with the discipline itself.
struct Clock {
    /// Whose it is: examples with these words in them.
    words: &'static str,
    /// Age in nanoseconds from which on it repeats.
    from: u64,
    /// Its period in nanoseconds.
    period: u64,
}

impl Clock {
    const fn new(words: &'static str, from: u64, period: u64) -> Self {
        Self { words, from, period }
    }
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let tos = prop_oneof![Just(0), Just(0x02), Just(0x08), Just(0x10), Just(0xb8), Just(0xbb)];
    let ip_len = prop_oneof![1 => Just(40u32), 3 => Just(1500), 1 => 40..=1500u32];
    // Mostly more than the specs let through, with a pause now and then.
    let gap = prop_oneof![60 => 0..900_000u64, 1 => 0..400_000_000u64];
    prop::collection::vec((gap, 0..6u16, ip_len, tos), 1..500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_same_arrivals_later_leave_as_much_later(
        arrivals in arrivals(),
        offset in prop_oneof![0..10_000_000_000u64, 0..10_000_000_000_000u64],
    ) {
        for discipline in DISCIPLINES {
            for example in discipline.examples {
                assert_shifts(example, &arrivals, Duration::from_nanos(offset));
            }
        }
    }
}

/// Flows that overflow the queue and then stay above CoDel's target: what `fq_codel` drops for want of room
/// counts towards CoDel's rate only if CoDel has dropped a short while ago, which it never has at first.
#[test]
fn the_first_drops_of_codel_do_not_hang_on_the_clock() {
    let arrivals: Vec<Arrival> = (0..8_000).map(|_| (700_000, 0, 1500, 0)).collect();
    for offset in [1_020_000_000, 1_600_000_000, 4_100_000_000, 102_000_000_000] {
        let offset = Duration::from_nanos(offset);
        assert_shifts("fq_codel noecn flows 1 limit 60 drop_batch 8", &arrivals, offset);
    }
}

fn assert_shifts(spec: &str, arrivals: &[Arrival], offset: Duration) {
    let clock = CLOCKS.iter().find(|clock| spec.contains(clock.words)).unwrap_or(&TICKS);
    let from = Duration::from_nanos(clock.from);
    let offset = Duration::from_nanos(offset.as_nanos() / clock.period * clock.period);
    let first = outcome(spec, arrivals, from);
    let later = outcome(spec, arrivals, from + offset);
    for (number, (early, late)) in first.iter().zip(&later).enumerate() {
        assert_eq!(early, late, "{spec}: {number} of those {offset} later");
    }
    assert_eq!(first.len(), later.len(), "{spec}: {offset} later");
}

/// What became of a packet: when it left after the start and with which ECN bits, or why it was dropped.
type Fate = (u64, Result<(u64, Ecn), DropReason>);

fn outcome(spec: &str, arrivals: &[Arrival], start: Duration) -> Vec<Fate> {
    let device = Device { line_rate: Some(Rate::from_mbit(4)), ..Device::default() };
    let qdisc = QueueSpec::parse(&shaped(spec)).and_then(|parsed| parsed.build(&device));
    let start = Time::ZERO + start;
    let mut at = start;
    let packet = |(handle, &(gap, flow, ip_len, tos)): (usize, &Arrival)| {
        at += Duration::from_nanos(gap);
        let key = FlowKey {
            src: "10.0.0.1".parse().unwrap(),
            dst: "10.0.1.1".parse().unwrap(),
            sport: 10_000 + flow,
            dport: 5_000 + flow,
            protocol: Protocol::UDP,
        };
        let stamped = Packet {
            handle: handle as u64,
            enqueued_at: at,
            label: key.label(7),
            len: ip_len + 14,
            flow_id: u32::from(flow),
            dscp: Dscp::from_tos(tos),
            ecn: Ecn::from_tos(tos),
        };
        (at, stamped)
    };
    let packets: Vec<_> = arrivals.iter().enumerate().map(packet).collect();
    let outcome = replay(qdisc.unwrap_or_else(|error| panic!("{spec}: {error}")), &packets);
    let left = outcome
        .departures
        .iter()
        .map(|(left_at, one)| (one.handle, Ok((left_at.since(start).as_nanos(), one.ecn))));
    let dropped = outcome.drops.iter().map(|(one, reason)| (one.handle, Err(*reason)));
    left.chain(dropped).collect()
}

/// A discipline that does not shape lies beneath tbf, so that something waits in it.
fn shaped(spec: &str) -> String {
    let below = format!("tbf rate 4mbit burst 1600 limit 10000000 {spec}");
    let device = Device { line_rate: Some(Rate::from_mbit(4)), ..Device::default() };
    let takes_it = QueueSpec::parse(&below).is_ok_and(|parsed| parsed.build(&device).is_ok());
    if takes_it { below } else { spec.to_owned() }
}

/// Of a discipline without a clock of its own. CoDel counts time in units of 1024 ns, PIE and HFSC in units of 64 ns.
const TICKS: Clock = Clock::new("", 0, 1_024);

/// Of Linux' disciplines those whose timers begin with the discipline itself, and not with its first packet.
const CLOCKS: &[Clock] = &[
    // The first update of the probability is due after 128 jiffies, the next ones every 2 (tupdate 4ms) or 5 (15ms).
    Clock::new("fq_pie", MS * 1_000, JIFFY * 2 * 5 * 7), // 7 for 5000 flows, which take three jiffies
    Clock::new("pie", MS * 1_000, JIFFY * 2 * 5),
    // While nothing comes the probability falls to its least, every 128 jiffies.
    Clock::new("adaptive", MS * 60_000, JIFFY * 128),
    Clock::new("dualpi2 limit", 0, MS),
    Clock::new("dualpi2 drop_enqueue", 0, 1_666_000), // a sixth of `max_rtt`
    Clock::new("dualpi2", 0, MS * 16),
    // Ages in whole jiffies: of sfb's filters, and of fq's flows since they ran dry (`jiffies | 1`).
    Clock::new("sfb ", 0, JIFFY),
    Clock::new("fq ", 0, JIFFY * 2),
    Clock::new("ingress estimator", 0, MS * 250),
];

const MS: u64 = 1_000_000;

/// `HZ=250`.
const JIFFY: u64 = 4 * MS;
