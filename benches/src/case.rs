//! A symmetric line with loads and probes: what benchmarks run.
use weir_core::{Duration, Time};
use weir_scenario::{Direction, Flow, Hop, LineRate, Probe, ProbeKind, Sampling, Scenario};

/// A line with loads and probes.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// Name on the command line.
    pub key: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Loads down.
    pub down_flows: usize,
    /// Loads up.
    pub up_flows: usize,
    /// Their congestion control.
    pub congestion_control: &'static str,
    /// Rate of the line in each direction, in bit/s of IP packets.
    pub rate_bps: u64,
    /// The queue in front of it, in `tc` syntax.
    pub queue: &'a str,
    /// Round trip of the line.
    pub rtt_ms: u64,
    /// Seconds that it lasts.
    pub seconds: u64,
    /// Trains of UDP pings.
    pub probes: u32,
    /// Time between two pings of a train.
    pub period_ns: u64,
}

impl Case<'static> {
    /// The one of [`CASES`] with that name.
    #[must_use]
    pub fn named(key: &str) -> Option<&'static Self> {
        CASES.iter().find(|case| case.key == key)
    }
}

impl Case<'_> {
    /// The case as a scenario.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let duration_ns = self.seconds * 1_000_000_000;
        let down = (0..self.down_flows).map(|number| self.flow(Direction::Down, number));
        let up = (0..self.up_flows).map(|number| self.flow(Direction::Up, number));
        let probe = |number: u32| {
            let (period, stop) =
                (Duration::from_nanos(self.period_ns), Time::from_nanos(duration_ns));
            Probe::new(format!("ping {number}"), ProbeKind::Udp, period, stop)
        };
        Scenario {
            flows: down.chain(up).collect(),
            probes: (0..self.probes).map(probe).collect(),
            start_jitter_ns: 50_000_000,
            sampling: Sampling {
                throughput_ns: 100_000_000,
                tcp_ns: 100_000_000,
                queue_ns: 100_000_000,
            },
            ..Scenario::over(self.key, duration_ns, self.hop(), self.hop())
        }
    }

    fn hop(&self) -> Hop {
        let rate = LineRate::Bps(self.rate_bps);
        Hop { delay_ns: self.rtt_ms * 500_000, ..Hop::new("line", self.queue, rate) }
    }

    fn flow(&self, direction: Direction, number: usize) -> Flow {
        let span = (Time::ZERO, Time::from_nanos(self.seconds * 1_000_000_000));
        Flow::new(format!("{direction:?} {number}"), direction, self.congestion_control, span)
    }
}

/// The cases by which the simulator's speed is told.
pub static CASES: [Case<'static>; 4] = [
    Case {
        key: "a",
        title: "100 Reno flows, 10 Mbit/s, 200 ms, pfifo 250, 60 s",
        down_flows: 100,
        up_flows: 0,
        congestion_control: "reno",
        rate_bps: 10_000_000,
        queue: "pfifo limit 250",
        rtt_ms: 200,
        seconds: 60,
        probes: 4,
        period_ns: 10_000_000,
    },
    Case {
        key: "b",
        title: "RRUL (4 + 4 CUBIC), 100/100 Mbit/s, 20 ms, fq_codel, 70 s",
        down_flows: 4,
        up_flows: 4,
        congestion_control: "cubic",
        rate_bps: 100_000_000,
        queue: "fq_codel",
        rtt_ms: 20,
        seconds: 70,
        probes: 4,
        period_ns: 10_000_000,
    },
    Case {
        key: "c",
        title: "100 CUBIC flows, 1 Gbit/s, 20 ms, fq_codel, 10 s",
        down_flows: 100,
        up_flows: 0,
        congestion_control: "cubic",
        rate_bps: 1_000_000_000,
        queue: "fq_codel",
        rtt_ms: 20,
        seconds: 10,
        probes: 4,
        period_ns: 10_000_000,
    },
    Case {
        key: "d",
        title: "10 000 CUBIC flows, 10 Gbit/s, 20 ms, fq_codel, 2 s",
        down_flows: 10_000,
        up_flows: 0,
        congestion_control: "cubic",
        rate_bps: 10_000_000_000,
        queue: "fq_codel",
        rtt_ms: 20,
        seconds: 2,
        probes: 4,
        period_ns: 10_000_000,
    },
];
