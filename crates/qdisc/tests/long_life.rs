//! What is counted in 32 bits is counted on beyond them: queues of a router pass more than 4 GB.

use weir_core::{Dscp, Duration, Ecn, FlowKey, Packet, Protocol, Rate, Time};
use weir_qdisc::{DISCIPLINES, Device, QueueSpec, replay};

/// Each example of each discipline takes 4.6 GB, in bursts of two flows that even slow queues are done with before the next.
#[test]
fn every_discipline_passes_more_bytes_than_32_bits_count() {
    let arrivals = bursts();
    assert!(arrivals.len() as u64 * u64::from(LEN_BYTES) > 1 << 32);
    let device = Device { line_rate: Some(Rate::from_bps(100_000_000)), ..Device::default() };
    for spec in DISCIPLINES.iter().flat_map(|discipline| discipline.examples) {
        let qdisc = QueueSpec::parse(spec).and_then(|parsed| parsed.build(&device));
        let qdisc = qdisc.unwrap_or_else(|error| panic!("{spec}: {error}"));
        let outcome = replay(qdisc, &arrivals);
        let seen = outcome.departures.len() + outcome.drops.len();
        assert!(seen >= arrivals.len() - LAST_MAY_WAIT, "{spec}: {seen} of {}", arrivals.len());
    }
}

/// A burst of four packets each ten seconds.
fn bursts() -> Vec<(Time, Packet)> {
    let mut arrivals = Vec::new();
    for burst in 0..COUNT / 4 {
        let at = Time::from_millis(burst * 10_000);
        for place in 0..4u64 {
            let port = 1 + (place % 2) as u16;
            let key = FlowKey {
                src: "10.0.0.1".parse().unwrap(),
                dst: "10.0.1.1".parse().unwrap(),
                sport: port,
                dport: 443,
                protocol: Protocol::UDP,
            };
            let at = at + Duration::from_nanos(place);
            let packet = Packet {
                handle: burst * 4 + place,
                enqueued_at: at,
                label: key.label(1),
                len: LEN_BYTES,
                flow_id: u32::from(port),
                dscp: Dscp::BE,
                ecn: Ecn::NotEct,
            };
            arrivals.push((at, packet));
        }
    }
    arrivals
}

const LEN_BYTES: u32 = 65_535;
const COUNT: u64 = 70_000;
/// Packets that wait when nothing comes any more.
const LAST_MAY_WAIT: usize = 8;
