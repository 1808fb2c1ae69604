//! The shaper's controller in the simulator: its ticks, its probes, its counters.

use weir_core::{
    Draw, Dscp, Duration, ETHERNET_HEADER, Ecn, FlowLabel, Framing, Packet, Rng, Seed, Time,
};
use weir_path::{ArrivalPoint, End};
use weir_rate_control::{Controller, Decision, Delay, Measured, OneWay, Side, TICK, Traffic};
use weir_scenario::{
    Direction, Reflector, Scenario, Shaper, ShaperProbe, ShaperRow, Sink, Span, TroubleKind,
};

use crate::packet_store::Ping;
use crate::run::Network;

/// A controller at work on the path's shaped hops.
pub(crate) struct ShaperControl {
    controller: Box<dyn Controller>,
    /// The shaped hops of egress and ingress.
    hops: [Option<usize>; 2],
    probe: ShaperProbe,
    reflectors: Vec<ReflectorAtWork>,
    /// Index of the reflector whose turn it is.
    turn: usize,
    /// When the last probe was sent.
    probed_at: Option<Time>,
    sleeps: Vec<Span>,
    framing: Framing,
    /// Bytes and packets of probes that crossed the line past the shaper, by side.
    probed: [Traffic; 2],
    /// Answers that a reflector holds back: when they are out, and what they say.
    late: Vec<(Time, Delay)>,
    decisions: Vec<Decision>,
}

struct ReflectorAtWork {
    spec: Reflector,
    /// Number of the reflector's probe, behind those of the scenario's probes.
    probe: u32,
    packet: Packet,
    answer_label: FlowLabel,
    rng: Rng,
    seq: u32,
}

impl ShaperControl {
    pub fn new(
        spec: &Shaper,
        scenario: &Scenario,
        network: &Network,
        labels: impl Fn(weir_core::FlowKey) -> [FlowLabel; 2],
        seed: Seed,
    ) -> Self {
        let header = match spec.probe {
            ShaperProbe::Icmp => ICMP_HEADER,
            ShaperProbe::Udp | ShaperProbe::None => UDP_HEADER,
        };
        let len = scenario.ip_version.header_bytes() + header + PAYLOAD + ETHERNET_HEADER;
        let reflectors = spec.reflectors.iter().enumerate().map(|(n, reflector)| {
            let [label, answer_label] = labels(scenario.shaper_probe_key(spec, n));
            ReflectorAtWork {
                spec: reflector.clone(),
                probe: (scenario.probes.len() + n) as u32,
                packet: Packet {
                    handle: 0,
                    enqueued_at: Time::ZERO,
                    label,
                    len,
                    flow_id: network.traffic.flow_id_of_reflector(n as u32),
                    dscp: Dscp::BE,
                    ecn: Ecn::NotEct,
                },
                answer_label,
                rng: seed.derive("reflector").stream(&n.to_string()),
                seq: 0,
            }
        });
        let mut hops = scenario.path.up.iter().chain(&scenario.path.down);
        let shaped = hops.find(|hop| hop.shaped);
        Self {
            controller: spec.control.build(),
            hops: [network.shaper(Direction::Up), network.shaper(Direction::Down)],
            probe: spec.probe,
            reflectors: reflectors.collect(),
            turn: 0,
            probed_at: None,
            sleeps: spec.sleeps.clone(),
            framing: shaped.map_or(Framing::ETHERNET, |hop| hop.framing),
            probed: [Traffic::default(); 2],
            late: Vec::new(),
            decisions: Vec::new(),
        }
    }

    /// Looks at everything, sets rates, and says when to look again and when the next probe is due.
    pub fn tick(&mut self, network: &mut Network, now: Time, sink: &mut dyn Sink) -> [Time; 2] {
        self.release_late(now);
        self.hear_connections(network, now);
        let traffic = Side::ALL.map(|side| self.traffic(side, network));
        let decisions = &mut self.decisions;
        self.controller.on_tick(&traffic, now, &mut |decision| decisions.push(decision));
        for decision in self.decisions.drain(..) {
            let hop = self.hops[decision.side as usize].expect("only shaped sides are decided on");
            network.set_shaper_rate(hop, decision.rate, now);
            sink.shaper(&ShaperRow {
                t: now,
                queue: &network.hops()[hop].name,
                rate_bps: decision.rate.map(weir_core::Rate::as_bps),
                state: decision.state.name(),
                reason: decision.reason.name(),
                value: decision.value,
                unit: decision.reason.unit(),
            });
        }
        [self.awake_at(now + TICK), self.next_probe(now)]
    }

    /// When the next probe is due, at `now` or later; never if none is sent.
    fn next_probe(&self, now: Time) -> Time {
        match (self.probe, self.controller.probe_every()) {
            (ShaperProbe::None, _) | (_, None) => Time::MAX,
            (_, Some(pause)) => {
                let due = self.probed_at.map_or(now, |last| last.saturating_add(pause));
                self.awake_at(due.max(now))
            }
        }
    }

    /// Sends the next probe, and says when the one after it is due.
    pub fn send_probe(&mut self, network: &mut Network, now: Time) -> Time {
        self.probed_at = Some(now);
        let turn = self.turn;
        self.turn = (turn + 1) % self.reflectors.len();
        self.controller.on_sent(turn as u32, now);
        let it = &mut self.reflectors[turn];
        let ping = Ping { probe: it.probe, seq: it.seq, sent: now, up: None };
        it.seq += 1;
        let handle = network.traffic.put_ping(ping);
        let packet = Packet { handle, ..it.packet };
        self.count_probe(Side::Egress, &packet);
        match self.hops[Side::Egress as usize] {
            Some(hop) => network.send_from_shaper(packet, hop, now),
            None => network.send(packet, End::Client, now),
        }
        self.next_probe(now)
    }

    /// A probe or its answer arrived.
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        place: ArrivalPoint,
        network: &mut Network,
        now: Time,
    ) {
        let reflector = network.traffic.reflector_of(packet).expect("a probe of the shaper");
        if place == ArrivalPoint::End(End::Server) {
            let ping = network.traffic.ping_mut(packet.handle);
            ping.up = Some(now.since(ping.sent));
            let it = &mut self.reflectors[reflector as usize];
            if it.is_silent(now) {
                network.traffic.give_up_ping(packet.handle);
                return;
            }
            let answer = Packet { label: it.answer_label, ..*packet };
            network.send(answer, End::Server, now);
            return;
        }
        self.count_probe(Side::Ingress, packet);
        let Some(ping) = network.traffic.take_answered(packet.handle) else { return };
        if self.sleeps.iter().any(|sleep| sleep.contains(now.as_nanos())) {
            return;
        }
        let it = &mut self.reflectors[reflector as usize];
        let (delay, out) = it.answer(reflector, &ping, self.probe, now);
        if out > now {
            self.late.push((out, delay));
        } else {
            self.controller.on_delay(&delay, now);
        }
    }

    /// Passes on what the shaper heard of the connections.
    fn hear_connections(&mut self, network: &mut Network, now: Time) {
        for delay in network.traffic.take_passive() {
            let came = (delay.sent + delay.rtt).as_nanos();
            if !self.sleeps.iter().any(|sleep| sleep.contains(came)) {
                self.controller.on_delay(&delay, now);
            }
        }
    }

    fn count_probe(&mut self, side: Side, packet: &Packet) {
        let it = &mut self.probed[side as usize];
        it.bytes += self.framing.wire_bytes(packet.ip_len());
        it.packets += 1;
    }

    fn traffic(&self, side: Side, network: &Network) -> Option<Traffic> {
        let port = &network.hops()[self.hops[side as usize]?].port;
        let passed = port.shaped_traffic().expect("it is shaped");
        let crossed = match side {
            Side::Egress => passed.departed,
            Side::Ingress => passed.arrived,
        };
        let probed = self.probed[side as usize];
        Some(Traffic {
            bytes: crossed.bytes + probed.bytes,
            packets: crossed.packets + probed.packets,
            backlog_bytes: port.backlog().bytes,
        })
    }

    fn release_late(&mut self, now: Time) {
        let (out, held): (Vec<_>, Vec<_>) = self.late.drain(..).partition(|&(at, _)| at <= now);
        self.late = held;
        for (_, delay) in out {
            self.controller.on_delay(&delay, now);
        }
    }

    /// `at`, or the end of the sleep in which it lies.
    fn awake_at(&self, at: Time) -> Time {
        let sleep = self.sleeps.iter().find(|sleep| sleep.contains(at.as_nanos()));
        sleep.map_or(at, |sleep| Time::from_nanos(sleep.to_ns))
    }
}

impl ReflectorAtWork {
    /// Whether it does not answer a probe that is there at `now`.
    fn is_silent(&mut self, now: Time) -> bool {
        let silent = self.troubles(now).any(|what| matches!(what, TroubleKind::Silent));
        silent || (self.spec.loss > 0.0 && self.rng.unit() < self.spec.loss)
    }

    /// The delay that an answer tells that is back at `now`, and the time at which it is out.
    fn answer(&mut self, source: u32, ping: &Ping, probe: ShaperProbe, now: Time) -> (Delay, Time) {
        let (mut late, mut clock) = (Duration::ZERO, 0);
        let troubles: Vec<_> = self.troubles(ping.sent).collect();
        for what in troubles {
            match what {
                TroubleKind::Silent => {}
                TroubleKind::LateNs(by) => late += Duration::from_nanos(by),
                TroubleKind::ErraticNs(most) => {
                    late += Duration::from_nanos(self.rng.below(most + 1));
                }
                TroubleKind::ClockNs(by) => clock += by,
            }
        }
        let out = now + late;
        let rtt = out.since(ping.sent);
        let there = ping.up.expect("it was there").as_nanos() as i64;
        let one_way = (probe == ShaperProbe::Udp).then_some(OneWay {
            there_ns: there + clock,
            back_ns: rtt.as_nanos() as i64 - there - clock,
        });
        (Delay { source, sent: ping.sent, rtt, one_way, by: Measured::Answer }, out)
    }

    fn troubles(&self, at: Time) -> impl Iterator<Item = TroubleKind> {
        let now = self.spec.troubles.iter().filter(move |one| one.during.contains(at.as_nanos()));
        now.map(|trouble| trouble.what)
    }
}

const ICMP_HEADER: u32 = 8;
const UDP_HEADER: u32 = 8;
/// Room for a number and a time; the smallest Ethernet frame holds it.
const PAYLOAD: u32 = 16;
