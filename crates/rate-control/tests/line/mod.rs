//! A line and its traffic as fluids, ticked every millisecond: enough for a controller, and exact.

use weir_core::{Draw, Duration, Rate, Seed, Time};
use weir_rate_control::{
    AutoSettings, Control, Controller, Decision, Delay, Measured, Mode, OneWay, Side, TICK, Traffic,
};

/// A line with a queue in each direction, a shaper in front, and reflectors behind it.
pub struct Line {
    pub controller: Box<dyn Controller>,
    /// Capacity of egress and ingress in bit/s; 0 takes the direction down.
    pub capacity: [f64; 2],
    /// Rate that the traffic asks for on egress and ingress, in bit/s.
    pub demand: [f64; 2],
    /// Round trip of the empty path, by reflector, in ms.
    pub base_ms: Vec<f64>,
    /// What the path takes longer by in each millisecond, over and over, half of it each way; nothing if empty.
    pub foreign_ms: Vec<f64>,
    /// Reflectors that do not answer.
    pub silent: Vec<usize>,
    /// Reflectors tell their own time.
    pub one_way: bool,
    /// Offset of the reflectors' clocks, in ms.
    pub clock_ms: f64,
    /// Bytes that a queue in front of the line holds.
    pub limit: f64,
    /// A full queue loses probes, as many in a hundred as of the rest.
    pub loses_probes: bool,
    /// From and until when, in ms, the line carries nothing at all, and what is on its way waits; senders, which wait for
    /// acknowledgements, pause as long a round trip later.
    pub pause_ms: std::ops::Range<u64>,
    /// Bytes of the packets that what is sent comes in; fluids have none.
    pub packet_bytes: f64,
    /// The controller is not looked after.
    pub asleep: bool,
    pub now_ms: u64,
    /// Decisions of the controller, each with its time in ms.
    pub log: Vec<(u64, Decision)>,
    /// When probes were sent, in ms.
    pub probes: Vec<u64>,
    rates: [Option<f64>; 2],
    /// Bytes in front of the line.
    queues: [f64; 2],
    /// Bytes that wait in the shaper; the sender keeps at most a window's worth under way.
    shaped: [f64; 2],
    /// Bytes that are sent as the next packet.
    begun: [f64; 2],
    /// Share of what is offered that is lost at present, and probes that are due to be lost.
    lost_share: [f64; 2],
    lost: f64,
    crossed: [f64; 2],
    under_way: Vec<(u64, usize, Delay)>,
    probed_ms: u64,
    turn: usize,
}

impl Line {
    pub fn new(mode: Mode, capacity_mbit: [f64; 2]) -> Self {
        Self::told(AutoSettings { mode, ..AutoSettings::default() }, capacity_mbit)
    }

    /// A line whose controller is told so much.
    pub fn told(settings: AutoSettings, capacity_mbit: [f64; 2]) -> Self {
        Self {
            controller: Control::Auto(settings).build(),
            capacity: capacity_mbit.map(|mbit| mbit * 1e6),
            demand: [0.0; 2],
            base_ms: vec![20.0, 22.0, 25.0],
            foreign_ms: Vec::new(),
            silent: Vec::new(),
            one_way: false,
            clock_ms: 0.0,
            limit: 1e6,
            loses_probes: false,
            pause_ms: 0..0,
            packet_bytes: 0.0,
            asleep: false,
            now_ms: 0,
            log: Vec::new(),
            probes: Vec::new(),
            rates: [None; 2],
            queues: [0.0; 2],
            shaped: [0.0; 2],
            begun: [0.0; 2],
            lost_share: [0.0; 2],
            lost: 0.0,
            crossed: [0.0; 2],
            under_way: Vec::new(),
            probed_ms: 0,
            turn: 0,
        }
    }

    /// Lets `ms` pass.
    pub fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now_ms += 1;
            for side in Side::ALL {
                self.carry(side);
            }
            self.answer();
            if !self.asleep {
                if self.now_ms.is_multiple_of(TICK.as_nanos() / 1_000_000) {
                    self.tick();
                }
                let every = self.controller.probe_every().expect("it always probes");
                if self.now_ms >= self.probed_ms + every.as_nanos() / 1_000_000 {
                    self.probe();
                }
            }
        }
    }

    /// The rate of a side in Mbit/s.
    pub fn rate(&self, side: Side) -> Option<f64> {
        self.rates[side as usize].map(|bps| bps / 1e6)
    }

    /// Milliseconds from `from_ms` until now for which a side had a rate below `bps`.
    pub fn low_for(&self, side: Side, bps: f64, from_ms: u64) -> u64 {
        let decided = self.log.iter().filter(|(_, decision)| decision.side == side);
        let rates: Vec<_> = decided.map(|&(at, decision)| (at, decision.rate)).collect();
        let ends = rates.iter().skip(1).map(|&(at, _)| at).chain([self.now_ms]);
        let is_low = |rate: Option<Rate>| rate.is_some_and(|rate| (rate.as_bps() as f64) < bps);
        let low = rates.iter().zip(ends).filter(|&(&(_, rate), _)| is_low(rate));
        low.map(|(&(at, _), end)| end.saturating_sub(at.max(from_ms))).sum()
    }

    /// Puts so many milliseconds of traffic in front of the line at once, as a connection that begins does.
    pub fn burst(&mut self, side: Side, ms: f64) {
        self.queues[side as usize] += self.capacity[side as usize] * ms / 8e3;
    }

    /// Milliseconds of queue in front of the line.
    pub fn queue_ms(&self, side: Side) -> f64 {
        let capacity = self.capacity[side as usize];
        if capacity > 0.0 { self.queues[side as usize] * 8e3 / capacity } else { 1e4 }
    }

    /// Makes the path longer, to every reflector.
    pub fn lengthen(&mut self, by_ms: f64) {
        self.base_ms.iter_mut().for_each(|base| *base += by_ms);
    }

    /// Mean queue in ms, and share of the line that is used, over the next `ms`.
    pub fn watch(&mut self, side: Side, ms: u64) -> (f64, f64) {
        self.watch_all(&[side], ms)[0]
    }

    /// As [`Line::watch`], of each of several sides.
    pub fn watch_all(&mut self, sides: &[Side], ms: u64) -> Vec<(f64, f64)> {
        let before: Vec<f64> = sides.iter().map(|&side| self.crossed_line(side)).collect();
        let mut queues = vec![0.0; sides.len()];
        for _ in 0..ms {
            self.run(1);
            for (queue, &side) in queues.iter_mut().zip(sides) {
                *queue += self.queue_ms(side);
            }
        }
        let used = |(&side, &crossed): (&Side, &f64)| {
            let carried = (self.crossed_line(side) - crossed) * 8e3 / ms as f64;
            carried / self.capacity[side as usize]
        };
        let used = sides.iter().zip(&before).map(used);
        queues.into_iter().map(|queue| queue / ms as f64).zip(used).collect()
    }

    /// What the path takes longer by at present.
    fn foreign_ms(&self) -> f64 {
        let count = self.foreign_ms.len().max(1);
        self.foreign_ms.get(self.now_ms as usize % count).copied().unwrap_or(0.0)
    }

    /// Bytes that crossed a side of the line, or entered its queue on egress, since the beginning.
    pub fn crossed_line(&self, side: Side) -> f64 {
        self.crossed[side as usize]
    }

    /// A millisecond of traffic. On ingress the sender's window is full: what the shaper lets go is what is
    /// sent anew, so that a queue moves from the line to the shaper when the rate falls.
    fn carry(&mut self, side: Side) {
        let n = side as usize;
        let could = if self.pause_ms.contains(&self.now_ms) { 0.0 } else { self.capacity[n] / 8e3 };
        let acknowledged = self.now_ms.saturating_sub(self.base_ms[0] as u64);
        let wanted = if self.pause_ms.contains(&acknowledged) { 0.0 } else { self.demand[n] / 8e3 };
        let allowed = self.rates[n].map_or(f64::INFINITY, |bps| bps / 8e3);
        let offered = self.in_packets(n, wanted.min(allowed));
        let over = (self.queues[n] + offered - self.limit).max(0.0);
        self.lost_share[n] = if over > 0.0 { over / offered } else { 0.0 };
        self.queues[n] += offered - over;
        let carried = self.queues[n].min(could);
        self.queues[n] -= carried;
        // On ingress nothing waits for a rate that less arrives than.
        let waits = side == Side::Egress || carried >= allowed * 0.999;
        self.shaped[n] = if wanted > allowed && waits { 1e5 } else { 0.0 };
        self.crossed[n] += match side {
            Side::Egress => offered,
            Side::Ingress => carried,
        };
    }

    /// What is sent of `bytes` by now: whole packets.
    fn in_packets(&mut self, n: usize, bytes: f64) -> f64 {
        if self.packet_bytes == 0.0 {
            return bytes;
        }
        self.begun[n] += bytes;
        let sent = (self.begun[n] / self.packet_bytes).floor() * self.packet_bytes;
        self.begun[n] -= sent;
        sent
    }

    fn probe(&mut self) {
        self.probed_ms = self.now_ms;
        self.probes.push(self.now_ms);
        let source = self.turn % self.base_ms.len();
        self.turn += 1;
        let sent = Time::from_millis(self.now_ms);
        self.controller.on_sent(source as u32, sent);
        if self.loses_probes {
            self.lost += self.lost_share[0] + self.lost_share[1];
        }
        if self.lost >= 1.0 {
            self.lost -= 1.0;
            return;
        }
        if self.silent.contains(&source) || self.capacity.contains(&0.0) {
            return;
        }
        let is_pause = self.pause_ms.contains(&self.now_ms);
        let pause_ms = if is_pause { self.pause_ms.end - self.now_ms } else { 0 } as f64;
        let path_ms = self.base_ms[source] + self.foreign_ms() + pause_ms;
        let [there, back] = Side::ALL.map(|side| path_ms / 2.0 + self.queue_ms(side));
        let rtt = Duration::from_nanos(((there + back) * 1e6) as u64);
        let one_way = self.one_way.then_some(OneWay {
            there_ns: ((there + self.clock_ms) * 1e6) as i64,
            back_ns: ((back - self.clock_ms) * 1e6) as i64,
        });
        let at = self.now_ms + (there + back).ceil() as u64;
        self.under_way.push((
            at,
            source,
            Delay { source: source as u32, sent, rtt, one_way, by: Measured::Answer },
        ));
    }

    fn answer(&mut self) {
        let now_ms = self.now_ms;
        let (due, later): (Vec<_>, Vec<_>) =
            self.under_way.drain(..).partition(|&(at, ..)| at <= now_ms);
        self.under_way = later;
        if !self.asleep {
            for (_, _, delay) in due {
                self.controller.on_delay(&delay, Time::from_millis(now_ms));
            }
        }
    }

    fn tick(&mut self) {
        let traffic = Side::ALL.map(|side| {
            Some(Traffic {
                bytes: self.crossed[side as usize] as u64,
                packets: (self.crossed[side as usize] / 1500.0) as u64,
                backlog_bytes: self.shaped[side as usize] as u64,
            })
        });
        let Self { controller, rates, log, now_ms, .. } = self;
        controller.on_tick(&traffic, Time::from_millis(*now_ms), &mut |decision| {
            rates[decision.side as usize] = decision.rate.map(|rate| rate.as_bps() as f64);
            log.push((*now_ms, decision));
        });
    }
}

/// Delays of 0 to `most_ms` that follow one another anyhow; none if that is 0.
pub fn jitter(most_ms: f64) -> Vec<f64> {
    let mut random = Seed::new(1).stream("jitter");
    let count = if most_ms > 0.0 { 20_011 } else { 0 };
    (0..count).map(|_| most_ms * random.unit()).collect()
}
