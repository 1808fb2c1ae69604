//! `choke`: RED that also drops two packets of one flow at a time, without any state a flow.
//!
//! Follows Linux `net/sched/sch_choke.c` (Pan, Prabhakar, Psounis 2000): above the lower threshold an
//! arrival is compared with a packet drawn from the queue; if both are of one flow, both are dropped.
//! A flow is hit in proportion to its share of the queue. Nothing is done differently.

use std::collections::VecDeque;

use weir_core::{Draw, Packet, Rate, Rng, Time};

use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, Qdisc, Stats};
use crate::red::{
    BANDWIDTH, ECN, PROBABILITY, Policy, RedParams, RedSettings, RedState, RedTold, RedVerdict,
    burst, size, thresholds,
};
use crate::registry::Discipline;
use crate::tc::{QueueSpec, Record, SpecError, Unless0, number, params};

struct Choke {
    limit: u32,
    params: RedParams,
    state: RedState,
    policy: Policy,
    rng: Rng,
    queue: Holed,
    accounting: Accounting,
}

/// A FIFO out of which packets may be taken from the middle. The first place is never a hole.
#[derive(Default)]
struct Holed {
    places: VecDeque<Option<Packet>>,
}

impl Choke {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let options: ChokeOptions = spec.read(device)?;
        Ok(Self {
            limit: options.limit,
            params: options.settings()?.for_kernel("choke")?,
            state: RedState::default(),
            policy: Policy { ecn: options.ecn, ..Policy::default() },
            rng: device.seed.stream("choke"),
            queue: Holed::default(),
            accounting: Accounting::default(),
        })
    }

    /// Why `packet` may not wait, or nothing. It may have been marked.
    fn judge(
        &mut self,
        packet: &mut Packet,
        now: Time,
        sink: &mut dyn DropSink,
    ) -> Option<DropReason> {
        let backlog = self.accounting.backlog().packets;
        let average = self.state.update(&self.params, u64::from(backlog), now);
        // The thresholds themselves count as between, other than in RED.
        if average <= self.params.min() {
            self.state.start_over();
            return None;
        }
        if self.drop_match(packet, sink) {
            return Some(DropReason::SameFlow);
        }
        let verdict = if average > self.params.max() {
            self.state.start_over();
            RedVerdict::Forced
        } else if self.state.is_drawn(&self.params, average, &mut self.rng) {
            RedVerdict::Early
        } else {
            RedVerdict::Pass
        };
        self.policy.carry_out(verdict, packet, &mut self.accounting, sink)
    }

    /// Draws a packet from the queue and drops it if it is of `arrival`'s flow.
    fn drop_match(&mut self, arrival: &Packet, sink: &mut dyn DropSink) -> bool {
        let Some(place) = self.queue.draw(&mut self.rng) else { return false };
        if self.queue.places[place].is_none_or(|waiting| !same_flow(&waiting, arrival)) {
            return false;
        }
        let dropped = self.queue.take(place).expect("it was just looked at");
        self.accounting.take(&dropped);
        self.accounting.discard(dropped, DropReason::SameFlow, sink);
        true
    }
}

impl Holed {
    /// A place with a packet, drawn at random: three tries, then the first.
    fn draw(&self, rng: &mut Rng) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let tries = (0..TRIES).map(|_| rng.below(self.places.len() as u64) as usize);
        let mut hit = tries.filter(|&place| self.places[place].is_some());
        Some(hit.next().unwrap_or(0))
    }

    /// Takes the packet at `place` and leaves a hole, which goes once it is the first.
    fn take(&mut self, place: usize) -> Option<Packet> {
        let packet = self.places.get_mut(place)?.take();
        while let Some(None) = self.places.front() {
            self.places.pop_front();
        }
        packet
    }
}

/// Whether both have the same addresses, ports and protocol (`choke_match_flow`).
fn same_flow(one: &Packet, other: &Packet) -> bool {
    let key = |packet: &Packet| {
        let label = packet.label;
        (label.src, label.dst, label.sport, label.dport, label.protocol)
    };
    key(one) == key(other)
}

impl ChokeOptions {
    /// What a kernel is told of these words.
    ///
    /// # Errors
    /// If the thresholds are out of order, or no weight fits them.
    pub fn told(&self) -> Result<RedTold, SpecError> {
        self.settings()?.told("choke", Policy { ecn: self.ecn, ..Policy::default() })
    }

    /// The settings of `choke`, whose thresholds count packets, with what `tc` computes where nothing is
    /// written.
    fn settings(&self) -> Result<RedSettings, SpecError> {
        let Self { limit, min, max, avpkt, .. } = *self;
        let (min, max) = thresholds("choke", ("limit", limit), min, max)?;
        Ok(RedSettings {
            min,
            max,
            unit: avpkt,
            average_packet: avpkt,
            burst: burst(self.burst, min, max, 1),
            probability: self.probability,
            bandwidth: Some(self.bandwidth),
            gentle: false,
        })
    }
}

impl Qdisc for Choke {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let mut packet = *packet;
        if let Some(reason) = self.judge(&mut packet, now, sink) {
            self.accounting.xmit_cn(packet, reason, sink);
        } else if self.accounting.backlog().packets < self.limit {
            self.accounting.arrive(&packet);
            self.queue.places.push_back(Some(packet));
        } else {
            self.accounting.xmit_drop(packet, DropReason::Overlimit, sink);
        }
    }

    fn dequeue(&mut self, now: Time, _fates: &mut dyn DropSink) -> Option<Packet> {
        let Some(packet) = self.queue.take(0) else {
            self.state.start_idling(now);
            return None;
        };
        self.accounting.take(&packet);
        self.accounting.depart(&packet);
        Some(packet)
    }

    fn peek(&mut self, _now: Time, _fates: &mut dyn DropSink) -> Option<&Packet> {
        self.queue.places.front()?.as_ref()
    }

    fn backlog(&self) -> Backlog {
        self.accounting.backlog()
    }

    fn stats(&self) -> Stats {
        self.accounting.stats()
    }
}

params! {
    /// Parameters of `choke`.
    pub struct ChokeOptions {
        /// most packets that may wait
        pub limit: u32 = number("packets", 1, MAX_PACKETS),
        /// average queue up to which nothing is dropped
        min: Unless0<u32> = number("packets", 0, MAX_PACKETS).absent_or_0("max / 3"),
        /// average queue above which everything is dropped or marked
        max: Unless0<u32> = number("packets", 0, MAX_PACKETS).absent_or_0("limit / 4"),
        /// bytes of an average packet
        avpkt: u32 = size().default("1000"),
        /// packets that may come at once; sets the weight of the average
        burst: Unless0<u32> = number("packets", 0, u32::MAX as u64).absent_or_0("(2 min + max) / 3"),
        probability: f64 = PROBABILITY,
        bandwidth: Rate = BANDWIDTH.required(),
        ecn: bool = ECN,
    }
}

pub(crate) static CHOKE: Discipline = Discipline {
    name: "choke",
    summary: "RED that drops an arrival together with a packet of its flow drawn from the queue",
    source: "Linux net/sched/sch_choke.c; Pan, Prabhakar, Psounis 2000",
    params: ChokeOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "choke limit 40 bandwidth 1mbit min 2 max 8 burst 4 probability 0.2",
        "choke limit 20 bandwidth 1mbit min 2 max 4 burst 2 ecn",
    ],
    build: |spec, device| Ok(Box::new(Choke::new(spec, device)?)),
};

/// `CHOKE_MAX_QUEUE`.
const MAX_PACKETS: u64 = 128 * 1024 - 1;

/// How often a place is drawn before the first packet is taken instead (`choke_peek_random`).
const TRIES: usize = 3;

#[cfg(test)]
mod tests {
    use weir_core::{Dscp, Ecn, FlowLabel, Seed};

    use super::*;
    use crate::port::Ignore;
    use crate::tc::DefaultValue;

    fn packet(handle: u64, flow: u16) -> Packet {
        Packet {
            handle,
            enqueued_at: Time::ZERO,
            label: FlowLabel { sport: flow, ..FlowLabel::default() },
            len: 1000,
            flow_id: 0,
            dscp: Dscp::BE,
            ecn: Ecn::NotEct,
        }
    }

    fn choke(words: &str) -> Result<Choke, SpecError> {
        Choke::new(&QueueSpec::parse(&format!("choke {words}"))?, &Device::default())
    }

    #[test]
    fn the_burst_is_by_default_what_its_description_says() {
        // Of thresholds in packets, which no length of a packet divides: (2 x 8 + 25) / 3.
        let described = CHOKE.params.iter().find(|param| param.name == "burst").unwrap();
        assert!(matches!(described.default, DefaultValue::Absent("(2 min + max) / 3")));
        let shown = |words: &str| choke(words).unwrap().params.as_shown();
        let by_default = shown("limit 100 bandwidth 10mbit");
        assert_eq!(by_default, shown("limit 100 bandwidth 10mbit burst 13"));
        assert_ne!(by_default, shown("limit 100 bandwidth 10mbit burst 30"));
    }

    /// Values that `tc -d qdisc show` of iproute2 6.1 prints: min, max, ewma, probability, Scell_log.
    #[test]
    fn parameters_are_those_that_tc_shows() {
        let cases = [
            (
                "limit 1000 min 20 max 60 avpkt 1000 burst 35 bandwidth 10mbit",
                (20, 60, 5, 0.02, 15),
            ),
            ("limit 400 bandwidth 10mbit", (33, 100, 5, 0.02, 15)),
            ("limit 400 bandwidth 100mbit max 90 ecn", (30, 90, 5, 0.02, 12)),
            // Probability 1 overflows in `tc`.
            ("limit 400 bandwidth 100mbit probability 1", (33, 100, 5, 0.000_511_154, 12)),
        ];
        for (words, expected) in cases {
            let (min, max, log, probability, cells) = choke(words).unwrap().params.as_shown();
            assert_eq!((min, max, log, cells), (expected.0, expected.1, expected.2, expected.4));
            assert!((probability - expected.3).abs() < 1e-8, "{words}: {probability}");
        }
        for (words, expected) in [
            (
                "limit 400 bandwidth 1mbit min 90 max 80",
                "choke: `min 90`: it is not below `max` 80",
            ),
            ("limit 40 bandwidth 1mbit max 80", "choke: `max 80`: it is above `limit` 40"),
            (
                "limit 200000 bandwidth 1mbit",
                "choke: `limit 200000`: write a number from 1 to 131071",
            ),
        ] {
            assert_eq!(choke(words).err().unwrap().to_string(), expected);
        }
    }

    /// One flow alone: once the average is above `min`, every arrival takes a waiting packet with it.
    #[test]
    fn a_lone_flow_hits_itself() {
        let mut queue = choke("limit 100 bandwidth 1mbit min 3 max 50 burst 3").unwrap();
        for handle in 0..12 {
            queue.enqueue(&packet(handle, 1), Time::ZERO, &mut Ignore);
        }
        // W = 1/2; the averages, kept twice in whole numbers, are 0, 1, 3, 5, 7, 7, 6, 6, 7, 7, 6, 6
        // for backlogs of 0, 1, 2, 3, 4, 3, 2, 3, 4, 3, 2, 3, and 7 is above the threshold, 6.
        let dropped = queue.stats().dropped;
        assert_eq!(dropped[DropReason::SameFlow as usize].packets, 2 * 4);
        assert_eq!(queue.backlog().packets, 12 - 2 * 4);
        assert_eq!(queue.dequeue(Time::ZERO, &mut Ignore).map(|first| first.len), Some(1000));
    }

    /// Holes are skipped, and the order of the others stays.
    #[test]
    fn packets_leave_in_order_around_holes() {
        let mut queue = Holed::default();
        queue.places.extend((0..6).map(|handle| Some(packet(handle, 1))));
        assert_eq!(queue.take(2).unwrap().handle, 2);
        assert_eq!(queue.take(1).unwrap().handle, 1);
        assert!(queue.take(1).is_none());
        let left: Vec<_> = std::iter::from_fn(|| queue.take(0)).map(|one| one.handle).collect();
        assert_eq!(left, [0, 3, 4, 5]);
        assert!(queue.places.is_empty());
    }

    /// A flow with three packets in four is drawn three times in four.
    #[test]
    fn a_flow_is_drawn_by_its_share_of_the_queue() {
        let mut queue = Holed::default();
        queue.places.extend((0..100).map(|n| Some(packet(n, if n % 4 == 0 { 1 } else { 2 }))));
        let mut rng = Seed::new(3).stream("test");
        let hits = (0..10_000)
            .filter(|_| {
                let place = queue.draw(&mut rng).unwrap();
                same_flow(&queue.places[place].unwrap(), &packet(0, 2))
            })
            .count();
        assert!((7_400..7_600).contains(&hits), "{hits}");
        assert!(Holed::default().draw(&mut rng).is_none());
    }
}
