//! All trains of pings, on one thread.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use weir_core::{Duration, Time};
use weir_scenario::{LatencyRow, Probe, ProbeKind};

use super::icmp::Icmp;
use super::kind::{self, PingMarks, PingMethod};
use super::ping_tracker::{PingTracker, Schedule};
use super::session::Session;
use super::sockets::{NoAnswer, Pinger};
use super::tcp::Tcp;
use super::ttl::{Answers, Ttl};
use super::udp::Udp;
use crate::clock::Clock;
use crate::ends::Sample;
use crate::error::NetError;
use crate::plan::{Control, Plan};
use crate::sys::epoll::{Epoll, Events, Interest};
use crate::sys::message::IcmpError;
use crate::sys::time::wake_exactly;

/// A ping that arrived at the server: probe, sequence number, when.
pub(super) type Arrival = (u32, u32, Time);

/// Takes what comes of pings.
pub(crate) trait PingSink: Send {
    /// A ping was answered, by an ICMP error if `by` says so, or is lost.
    fn row(&mut self, row: LatencyRow, by: Option<IcmpError>);

    /// The kernel or a router tells why a ping is lost.
    fn refused(&mut self, _error: &io::Error) {}
}

impl PingSink for Sender<Sample> {
    fn row(&mut self, row: LatencyRow, _by: Option<IcmpError>) {
        // Whoever no longer listens has no use for the rest either.
        let _ = self.send(Sample::Latency(row));
    }
}

/// Sends pings on time and takes their answers.
pub(crate) struct Prober<S> {
    clock: Clock,
    end: Time,
    control: Arc<Control>,
    patience: Patience,
    epoll: Epoll,
    trains: Vec<ProbeTrain>,
    arrivals: Receiver<Arrival>,
    sink: S,
}

/// How long answers are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Until a while after the end.
    UntilTheEnd,
    /// So long for each ping. A run whose trains are all broken has ended.
    Each(Duration),
}

/// The pings of one probe: their socket, when they are due, and which wait for an answer.
pub(crate) struct ProbeTrain {
    /// The probe's name and the server's.
    name: (String, String),
    pinger: Box<dyn Pinger>,
    schedule: Schedule,
    pings: PingTracker,
    begun: bool,
    broken: bool,
}

impl<S: PingSink> Prober<S> {
    /// Opens the sockets of all trains of `plan`, where the calling thread is.
    pub fn new(plan: &Plan, arrivals: Receiver<Arrival>, sink: S) -> Result<Self, NetError> {
        let mut trains = Vec::new();
        for (number, spec) in plan.scenario.probes.iter().enumerate() {
            let train = ProbeTrain::of_scenario(plan, number, spec)
                .map_err(|error| error_of(&spec.name, "opening its socket", &error))?;
            trains.push(train);
        }
        let control = Arc::clone(&plan.control);
        let time = (plan.clock, plan.end());
        Self::with(trains, time, (control, Patience::UntilTheEnd), arrivals, sink)
    }

    /// One that sends `trains` until `end`.
    pub fn with(
        trains: Vec<ProbeTrain>,
        (clock, end): (Clock, Time),
        (control, patience): (Arc<Control>, Patience),
        arrivals: Receiver<Arrival>,
        sink: S,
    ) -> Result<Self, NetError> {
        let epoll = Epoll::new().map_err(|error| NetError::io("epoll", &error))?;
        Ok(Self { clock, end, control, patience, epoll, trains, arrivals, sink })
    }

    /// Works until the last answer is in, or is given up.
    pub fn run(mut self) -> Result<(), NetError> {
        wake_exactly();
        let (clock, end) = (self.clock, self.end);
        let lead = if clock.is_virtual() { Duration::ZERO } else { LEAD };
        let give_up = end.saturating_add(self.patience.after_the_end());
        let mut events = Events::new(EVENTS);
        let mut polled = Time::ZERO;
        while !self.control.is_stopped() {
            let now = clock.now();
            // A thread that was held up sends late what was due before the end.
            let next = self.next();
            let answered = || self.trains.iter().all(|t| t.pings.under_way() == 0);
            if now >= give_up || now >= end && next.is_none() && answered() || self.is_broken() {
                break;
            }
            let wait = next.map_or(MAX_WAIT, |(at, _)| clock.until(at));
            match next {
                Some((at, train)) if wait <= lead => {
                    while !clock.until(at).is_zero() {
                        std::hint::spin_loop();
                    }
                    self.send(train, at);
                    if now.checked_since(polled).is_some_and(|since| since > MAX_UNPOLLED_WAIT) {
                        self.poll(&mut events, Duration::ZERO)?;
                        polled = now;
                    }
                }
                _ => {
                    self.poll(&mut events, wait.saturating_sub(lead).min(MAX_WAIT))?;
                    polled = now;
                    self.lose_patience();
                }
            }
        }
        if !self.control.is_stopped() {
            self.give_up();
        }
        self.control.answers_are_in();
        Ok(())
    }

    fn is_broken(&self) -> bool {
        self.patience != Patience::UntilTheEnd && self.trains.iter().all(|train| train.broken)
    }

    /// The ping that is due next, and its train.
    fn next(&self) -> Option<(Time, usize)> {
        let due = |(number, train): (usize, &ProbeTrain)| {
            Some((train.schedule.next().filter(|_| !train.broken)?, number))
        };
        self.trains.iter().enumerate().filter_map(due).min()
    }

    fn send(&mut self, number: usize, planned: Time) {
        let train = &mut self.trains[number];
        train.schedule.advance();
        if !std::mem::replace(&mut train.begun, true)
            && let Err(error) = train
                .pinger
                .begin()
                .and_then(|()| self.epoll.add(&train.pinger.fd(), number as u64, Interest::READ))
        {
            return self.lose(number, &error);
        }
        if !train.pinger.is_ready() {
            return;
        }
        let seq = train.pings.next_seq();
        let at = self.clock.now();
        let result = train.pinger.send(seq);
        // A packet that the kernel would not take is as lost as one that a queue drops.
        train.pings.sent(planned, at);
        if let Err(error) = result {
            self.refused(number, &NoAnswer::to(seq, error));
        }
    }

    /// Takes what answers there are, or come within `timeout`.
    fn poll(&mut self, events: &mut Events, timeout: Duration) -> Result<(), NetError> {
        let all = self.epoll.wait(events, timeout);
        for ready in all.map_err(|error| NetError::io("epoll", &error))? {
            self.receive(ready.token as usize);
        }
        while let Ok((probe, seq, at)) = self.arrivals.try_recv() {
            self.trains[probe as usize].pings.arrived(seq, at);
        }
        Ok(())
    }

    fn receive(&mut self, number: usize) {
        let clock = self.clock;
        for _ in 0..ANSWERS {
            let train = &mut self.trains[number];
            if train.broken {
                return;
            }
            match train.pinger.receive(&train.pings, clock) {
                Ok(Some(answer)) => {
                    if let Some(row) = train.pings.answered(answer, self.patience.with_each()) {
                        self.sink.row(row, row.rtt.and(answer.by));
                    }
                }
                Ok(None) => {}
                Err(none) if none.is_yet() => return,
                Err(none) => self.refused(number, &none),
            }
        }
    }

    /// The kernel told why a ping has no answer.
    fn refused(&mut self, number: usize, none: &NoAnswer) {
        if !is_like_loss(&none.error) {
            return self.lose(number, &none.error);
        }
        self.sink.refused(&none.error);
        // Nobody waits for an answer that does not come.
        if let Some(row) = none.seq.and_then(|seq| self.trains[number].pings.refused(seq)) {
            self.sink.row(row, None);
        }
    }

    /// A train can go no further: the run goes on, and ends with this error.
    fn lose(&mut self, number: usize, error: &io::Error) {
        let train = &mut self.trains[number];
        train.broken = true;
        let _ = self.epoll.remove(&train.pinger.fd());
        let (name, host) = &train.name;
        self.control.fail(error_of(name, &format!("pinging `{host}`"), error));
    }

    /// Pings that were waited for long enough are lost.
    fn lose_patience(&mut self) {
        let Patience::Each(patience) = self.patience else { return };
        let now = self.clock.now();
        let latest = now.saturating_sub(patience);
        for train in &mut self.trains {
            for row in train.pings.lost_before(latest) {
                self.sink.row(row, None);
            }
        }
    }

    /// Reports all pings that are not answered by now as lost, in order of time.
    fn give_up(&mut self) {
        let mut rows: Vec<_> =
            self.trains.iter_mut().flat_map(|train| train.pings.lost()).collect();
        rows.sort_by_key(|row| row.t);
        for row in rows {
            self.sink.row(row, None);
        }
    }
}

impl Patience {
    /// How long an answer may take to count.
    const fn with_each(self) -> Duration {
        match self {
            Self::UntilTheEnd => Duration::MAX,
            Self::Each(patience) => patience,
        }
    }

    const fn after_the_end(self) -> Duration {
        match self {
            Self::UntilTheEnd => LAST_ANSWER,
            Self::Each(patience) => patience,
        }
    }
}

impl ProbeTrain {
    /// A train without a scenario, the only one of its run.
    pub fn alone(
        method: PingMethod,
        server: SocketAddr,
        marks: PingMarks,
        schedule: Schedule,
    ) -> io::Result<Self> {
        let host = server.ip().to_string();
        Ok(Self {
            name: ("ping".to_owned(), host),
            pinger: kind::open(method, server, marks)?,
            schedule,
            pings: PingTracker::new(0),
            begun: false,
            broken: false,
        })
    }

    fn of_scenario(plan: &Plan, number: usize, spec: &Probe) -> io::Result<Self> {
        let key = plan.scenario.probe_key(number);
        let (client, server) = plan.addresses.ends(&key, spec.host);
        let payload = spec.payload_bytes as usize;
        let pinger: Box<dyn Pinger> = match spec.kind {
            ProbeKind::Udp => match plan.addresses.session(&key, spec.host) {
                None => Box::new(Udp::new(client, server, spec.dscp, payload)?),
                Some(session) => {
                    let ends = (client, server);
                    Box::new(Session::new(ends, session.token, number as u8, spec.dscp, payload)?)
                }
            },
            ProbeKind::Icmp => Box::new(Icmp::new(client, server, spec.dscp, payload)?),
            ProbeKind::Tcp => Box::new(Tcp::new(client, server, spec.dscp, payload)?),
            ProbeKind::UdpTtl => {
                let marks = (spec.dscp, spec.ttl);
                Box::new(Ttl::new(client, server, marks, payload, Answers::TimeExceeded)?)
            }
        };
        let stop = Time::from_nanos(spec.stop_ns).min(plan.end());
        let start = plan.scenario.probe_start(number, plan.seed);
        let host = plan.scenario.hosts[spec.host as usize].name.clone();
        Ok(Self {
            name: (spec.name.clone(), host),
            pinger,
            schedule: Schedule::new(start, Duration::from_nanos(spec.period_ns), stop),
            pings: PingTracker::new(number as u32),
            begun: false,
            broken: false,
        })
    }
}

fn error_of(name: &str, what: &str, error: &io::Error) -> NetError {
    NetError::io(format_args!("probe `{name}`: {what}"), error)
}

/// Whether the kernel tells of a packet that it did not take or that did not arrive: that is loss.
pub fn is_like_loss(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EAGAIN
                | libc::EINTR
                | libc::ENOBUFS
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ENETDOWN
                | libc::EHOSTDOWN
                | libc::ECONNREFUSED
                | libc::EPROTO
        )
    )
}

/// How much too early the thread lets itself be woken: about as late as a wake-up comes.
const LEAD: Duration = Duration::from_micros(50);
/// How long pings are waited for behind the end.
const LAST_ANSWER: Duration = Duration::from_secs(2);
/// How soon an early end is noticed.
const MAX_WAIT: Duration = Duration::from_millis(20);
/// How long trains that leave no time to wait may keep answers waiting.
const MAX_UNPOLLED_WAIT: Duration = Duration::from_millis(1);
const EVENTS: usize = 64;
/// Answers of a train that are taken before something may be due again.
const ANSWERS: usize = 16;
