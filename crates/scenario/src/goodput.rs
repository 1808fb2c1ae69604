//! Goodput of the flows of a direction from samples of throughput, as `weirlab.stats.arrivals` has it.

use weir_core::Direction;

use crate::{Flow, Scenario};

/// The flows of a direction that run within a span of a run, and the whole intervals of samples there.
///
/// A sample counts what came in the interval that it ends. One that straddles an edge of the span has counted what lies
/// outside too, so that a rate is of the whole intervals, and of their time; where all of the flows begin within the span,
/// nothing came before its first whole interval, which then begins with the span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goodput {
    running: Vec<bool>,
    start_ns: u64,
    end_ns: u64,
    every_ns: u64,
}

impl Goodput {
    /// Of a span from its start to its end, which is not within it, in nanoseconds.
    #[must_use]
    pub fn within(
        (start_ns, end_ns): (u64, u64),
        scenario: &Scenario,
        direction: Direction,
    ) -> Self {
        let runs = |flow: &Flow| {
            flow.direction == direction && flow.start_ns < end_ns && flow.stop_ns > start_ns
        };
        let running: Vec<bool> = scenario.flows.iter().map(runs).collect();
        let mut counted =
            scenario.flows.iter().zip(&running).filter(|(_, is_running)| **is_running);
        let begin_within = counted.all(|(flow, _)| flow.start_ns >= start_ns);
        let every = scenario.sampling.throughput_ns.max(1);
        let first = if begin_within { start_ns } else { start_ns.next_multiple_of(every) };
        Self { running, start_ns: first, end_ns: end_ns / every * every, every_ns: every }
    }

    /// How many flows run within the span.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.running.iter().filter(|runs| **runs).count()
    }

    /// Whether flow number `flow` is among them.
    #[must_use]
    pub fn has(&self, flow: usize) -> bool {
        self.running.get(flow) == Some(&true)
    }

    /// Whether a sample of flow number `flow` that was taken at `t_ns` counts.
    ///
    /// Real samples are taken a little late: one belongs to the time in which the middle of its interval lies.
    #[must_use]
    pub fn counts(&self, flow: usize, t_ns: u64) -> bool {
        let first = self.start_ns - self.start_ns % self.every_ns;
        let half = self.every_ns / 2;
        self.has(flow) && t_ns > first + half && t_ns <= self.end_ns + half
    }

    /// The rate if those samples are of `bytes` together, in Mbit/s; `None` without a flow or a whole interval.
    #[must_use]
    pub fn mbps(&self, bytes: u64) -> Option<f64> {
        let is_known = self.flows() > 0 && self.end_ns > self.start_ns;
        is_known.then(|| bytes as f64 * 8e3 / (self.end_ns - self.start_ns) as f64)
    }
}

#[cfg(test)]
mod tests {
    use weir_core::Time;

    use super::*;
    use crate::{Hop, LineRate};

    /// Of a download from 60 ns on, with samples every 100 ns.
    fn within(span: (u64, u64)) -> Goodput {
        let hop = Hop::new("line", "pfifo", LineRate::Unlimited);
        let mut scenario = Scenario::over("s", 1000, hop.clone(), hop);
        scenario.sampling.throughput_ns = 100;
        scenario.flows = vec![Flow::new(
            "f",
            Direction::Down,
            "cubic",
            (Time::from_nanos(60), Time::from_nanos(1000)),
        )];
        Goodput::within(span, &scenario, Direction::Down)
    }

    #[test]
    fn rates_are_of_whole_intervals() {
        let found = within((70, 610));
        // Up to half an interval late.
        let counted = [100, 150, 151, 200, 600, 650, 651].map(|t_ns| found.counts(0, t_ns));
        assert_eq!(counted, [false, false, true, true, true, true, false]);
        assert_eq!(found.mbps(500), Some(8e3));
        // One that begins within the span.
        let from_its_start = within((50, 610));
        assert!(from_its_start.counts(0, 100));
        assert_eq!(from_its_start.mbps(550), Some(8e3));
    }

    #[test]
    fn without_a_whole_interval_or_a_flow_there_is_no_rate() {
        assert_eq!(within((70, 150)).mbps(1), None);
        assert_eq!(within((1000, 2000)).mbps(0), None);
        assert!(!within((70, 610)).counts(1, 300));
    }
}
