//! Sources of events: which number in the event queue stands for what.

use weir_path::{End, Source};

/// Source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSource {
    /// One of the path's own sources, by its number there.
    Path(Source),
    /// The TCP timer of one end of a flow's connection.
    Timer {
        /// The flow's number.
        flow: usize,
        /// Whose timer it is.
        end: End,
    },
    /// The start of a flow's load.
    Start(usize),
    /// The stop of a flow's load.
    Stop(usize),
    /// The next ping of a probe, by its number.
    Ping(usize),
    /// Something that happens at a steady interval.
    Tick(Tick),
    /// The shaper's next look at its line.
    ShaperTick,
    /// The shaper's next probe.
    ShaperProbe,
    /// A time that a speed test waits for, by its number.
    Test(usize),
    /// The TCP timer of one end of a connection of a speed test or an application.
    ConnectionTimer {
        /// The connection's number, counted over all speed tests and applications.
        connection: u32,
        /// Whose timer it is.
        end: End,
    },
}

/// Work at steady intervals, in the order in which it is done at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    /// A row of throughput for each flow.
    Throughput,
    /// A row of the sender's state for each flow.
    Tcp,
    /// A row for each queue.
    Queue,
    /// The sink hears how far the run has got.
    Progress,
}

/// How the sources of a scenario's events are numbered: the one place that turns a source into a number and back.
///
/// Of two events at one instant the one with the lower number comes first, so the order of the ranges is part of
/// what a run computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceMap {
    /// First number behind the path's own; two for each flow: the client's timer, then the server's.
    timers: Source,
    /// Two for each flow: start, then stop.
    loads: Source,
    /// One for each probe.
    pings: Source,
    /// One for each [`Tick`].
    ticks: Source,
    /// The shaper's tick, then its probe.
    shaper: Source,
    /// One for each speed test.
    tests: Source,
    /// Two for each connection of speed tests and applications, as they are opened: the client's timer, then the server's.
    test_timers: Source,
}

impl Tick {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Self::Throughput, Self::Tcp, Self::Queue, Self::Progress];
}

impl SourceMap {
    /// The numbers behind `own`, the count of the path's own sources.
    pub const fn new(own: Source, flows: usize, probes: usize, tests: usize) -> Self {
        let loads = own + 2 * flows as Source;
        let pings = loads + 2 * flows as Source;
        let ticks = pings + probes as Source;
        let shaper = ticks + Tick::ALL.len() as Source;
        let first_test = shaper + SHAPER_SOURCES;
        let test_timers = first_test + tests as Source;
        Self { timers: own, loads, pings, ticks, shaper, tests: first_test, test_timers }
    }

    /// How many sources there are beside the path's own and the timers of connections that are opened during the
    /// run.
    pub const fn count(flows: usize, probes: usize, tests: usize) -> usize {
        Self::new(0, flows, probes, tests).test_timers as usize
    }

    /// The number of the TCP timer of `end` of flow number `flow`, which is set most often.
    #[inline]
    pub const fn timer(&self, flow: usize, end: End) -> Source {
        self.timers + 2 * flow as Source + end as Source
    }

    /// Whether `number` is that of one of the path's own sources.
    #[inline]
    pub const fn is_of_path(&self, number: Source) -> bool {
        number < self.timers
    }

    /// The number of `source`.
    #[inline]
    pub const fn number(&self, source: EventSource) -> Source {
        match source {
            EventSource::Path(number) => number,
            EventSource::Timer { flow, end } => self.timer(flow, end),
            EventSource::Start(flow) => self.loads + 2 * flow as Source,
            EventSource::Stop(flow) => self.loads + 2 * flow as Source + 1,
            EventSource::Ping(probe) => self.pings + probe as Source,
            EventSource::Tick(tick) => self.ticks + tick as Source,
            EventSource::ShaperTick => self.shaper,
            EventSource::ShaperProbe => self.shaper + 1,
            EventSource::Test(test) => self.tests + test as Source,
            EventSource::ConnectionTimer { connection, end } => {
                self.test_timers + 2 * connection + end as Source
            }
        }
    }

    /// The source of that number.
    #[inline]
    pub const fn source(&self, number: Source) -> EventSource {
        if self.is_of_path(number) {
            EventSource::Path(number)
        } else if number < self.loads {
            let (flow, end) = end_of(number - self.timers);
            EventSource::Timer { flow: flow as usize, end }
        } else if number < self.pings {
            let load = number - self.loads;
            let flow = (load / 2) as usize;
            if load.is_multiple_of(2) { EventSource::Start(flow) } else { EventSource::Stop(flow) }
        } else if number < self.ticks {
            EventSource::Ping((number - self.pings) as usize)
        } else if number < self.shaper {
            EventSource::Tick(Tick::ALL[(number - self.ticks) as usize])
        } else if number < self.tests {
            if number == self.shaper { EventSource::ShaperTick } else { EventSource::ShaperProbe }
        } else if number < self.test_timers {
            EventSource::Test((number - self.tests) as usize)
        } else {
            let (connection, end) = end_of(number - self.test_timers);
            EventSource::ConnectionTimer { connection, end }
        }
    }
}

/// The connection of timer number `timer`, and the end whose timer it is.
const fn end_of(timer: Source) -> (u32, End) {
    (timer / 2, if timer.is_multiple_of(2) { End::Client } else { End::Server })
}

/// Sources of a shaper: its tick and its probe.
const SHAPER_SOURCES: Source = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_stands_for_one_source_and_back() {
        let map = SourceMap::new(7, 2, 3, 1);
        let timer = |flow, end| EventSource::Timer { flow, end };
        let of_test = |connection, end| EventSource::ConnectionTimer { connection, end };
        let behind_the_path = [
            timer(0, End::Client),
            timer(0, End::Server),
            timer(1, End::Client),
            timer(1, End::Server),
            EventSource::Start(0),
            EventSource::Stop(0),
            EventSource::Start(1),
            EventSource::Stop(1),
            EventSource::Ping(0),
            EventSource::Ping(1),
            EventSource::Ping(2),
            EventSource::Tick(Tick::Throughput),
            EventSource::Tick(Tick::Tcp),
            EventSource::Tick(Tick::Queue),
            EventSource::Tick(Tick::Progress),
            EventSource::ShaperTick,
            EventSource::ShaperProbe,
            EventSource::Test(0),
            of_test(0, End::Client),
            of_test(0, End::Server),
            of_test(1, End::Client),
        ];
        let path = (0..7).map(EventSource::Path);
        for (number, source) in path.chain(behind_the_path).enumerate() {
            let number = number as Source;
            assert_eq!(map.source(number), source);
            assert_eq!(map.number(source), number);
        }
        assert_eq!(7 + SourceMap::count(2, 3, 1), map.number(of_test(0, End::Client)) as usize);
    }

    #[test]
    fn a_scenario_without_any_of_a_kind_has_no_number_for_it() {
        let map = SourceMap::new(1, 0, 0, 0);
        assert_eq!(map.source(1), EventSource::Tick(Tick::Throughput));
        assert_eq!(map.source(5), EventSource::ShaperTick);
        let first = EventSource::ConnectionTimer { connection: 0, end: End::Client };
        assert_eq!(map.source(7), first);
    }
}
