//! What must hold of any text that is read as a queue spec or as a marker: it is refused in one
//! sentence that can be printed, or what it says is built and accounts for every packet.

use weir_core::{Dscp, Duration, Ecn, FlowKey, Packet, Protocol, Rate, Seed, Time};
use weir_qdisc::{
    About, Device, DropReason, DropSink, MarkReason, MarkerSpec, Qdisc, QueueSpec, SpecError,
};

/// Takes `data` as a queue spec, on an Ethernet port in front of a line and on a narrow port without.
///
/// # Panics
/// If something that must hold does not.
pub fn spec(data: &[u8]) {
    at_pace(data, Duration::from_micros(1));
}

/// As [`spec`], with packets that lie up to an hour and a half apart and wait for hours.
///
/// # Panics
/// If something that must hold does not.
#[allow(dead_code, reason = "not every owner of this file has hours")]
pub fn slow_spec(data: &[u8]) {
    at_pace(data, Duration::from_millis(10));
}

fn at_pace(data: &[u8], step: Duration) {
    let text = String::from_utf8_lossy(data);
    let spec = match QueueSpec::parse(&text) {
        Ok(spec) => spec,
        Err(error) => return check_sentence(&error),
    };
    let line_rate = Some(Rate::from_mbit(20));
    let wide = Device { line_rate, seed: Seed::new(7), ..Device::default() };
    let narrow = Device { mtu: 576, tx_queue_len: 2, ..Device::default() };
    for device in [wide, narrow] {
        match spec.build(&device) {
            Ok(qdisc) => drive(qdisc, device.mtu, step),
            Err(error) => check_sentence(&error),
        }
        if let Err(error) = spec.expanded(&device) {
            check_sentence(&error);
        }
    }
}

/// Takes `data` as a marker.
///
/// # Panics
/// If something that must hold does not.
pub fn marker(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let device = Device { line_rate: Some(Rate::from_mbit(20)), ..Device::default() };
    match MarkerSpec::parse(&text).and_then(|spec| spec.build(&device)) {
        Ok(mut marker) => {
            for n in 0..20 {
                marker.mark(&mut packet(n, 1_500), &Nobody, Time::from_millis(n * n));
            }
        }
        Err(error) => check_sentence(&error),
    }
}

fn check_sentence(error: &SpecError) {
    let text = error.to_string();
    assert!(text.len() <= MAX_SENTENCE_BYTES, "{} bytes: {text}", text.len());
    assert!(!text.is_empty() && !text.contains(char::is_control), "{text:?}");
}

/// Sends packets of several flows through `qdisc`, with up to 2^19 times `step` between them, and checks its
/// counts after each one.
fn drive(mut qdisc: Box<dyn Qdisc>, mtu: u32, step: Duration) {
    let mut now = Time::ZERO;
    for n in 0..60 {
        let ip_len = [mtu, 40, mtu / 2][n as usize % 3];
        let arrival = Packet { enqueued_at: now, ..packet(n, ip_len) };
        qdisc.enqueue(&arrival, now, &mut Nobody);
        check_accounting(&*qdisc);
        if n % 2 == 0 {
            let next = qdisc.peek(now, &mut Nobody).map(|first| first.len);
            check_accounting(&*qdisc);
            let sent = qdisc.dequeue(now, &mut Nobody).map(|first| first.len);
            assert!(next.is_none() || next == sent, "another packet left than was looked at");
            check_accounting(&*qdisc);
        }
        now += step * (1 << (n % 20));
    }
    for _ in 0..100 {
        if qdisc.dequeue(now, &mut Nobody).is_none() {
            let Some(at) = qdisc.wake_at() else { break };
            now = at.max(now) + Duration::from_nanos(1);
        }
        check_accounting(&*qdisc);
    }
    qdisc.classes(&mut |class| assert!(!class.name.is_empty()));
}

fn check_accounting(qdisc: &dyn Qdisc) {
    let (stats, backlog) = (qdisc.stats(), qdisc.backlog());
    assert!(stats.balances(backlog), "{stats:?} {backlog:?}");
}

/// Packet number `n` of five flows, each with its own code point.
fn packet(n: u64, ip_len: u32) -> Packet {
    let flow = (n % 5) as u16;
    let key = FlowKey {
        src: [10, 0, 0, flow as u8].into(),
        dst: [10, 0, 1, 1].into(),
        sport: 40_000 + flow,
        dport: 5_000 + flow,
        protocol: if flow == 0 { Protocol::UDP } else { Protocol::TCP },
    };
    Packet {
        handle: n,
        enqueued_at: Time::ZERO,
        label: key.label(1),
        len: ip_len + weir_core::ETHERNET_HEADER,
        flow_id: u32::from(flow),
        dscp: Dscp::new([0, 46, 8, 10, 48][usize::from(flow)]).unwrap_or_default(),
        ecn: [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][n as usize % 3],
    }
}

/// An owner that asks for nothing and knows nothing.
struct Nobody;

impl DropSink for Nobody {
    fn on_drop(&mut self, _: Packet, _: DropReason) {}
    fn on_mark(&mut self, _: &Packet, _: MarkReason) {}
}

impl About for Nobody {
    fn window(&self, _: &Packet) -> Option<u32> {
        Some(10)
    }
}

/// The longest sentence: a quoted command, and the names of all parameters of the largest table.
const MAX_SENTENCE_BYTES: usize = 1_000;
