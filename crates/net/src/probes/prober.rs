//! All trains of pings, on one thread.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use weir_core::{Duration, Time};
use weir_world::{Probe, ProbeKind};

use super::icmp::Icmp;
use super::ping_tracker::{PingTracker, Schedule};
use super::session::Session;
use super::sockets::Pinger;
use super::tcp::Tcp;
use super::ttl::Ttl;
use super::udp::Udp;
use crate::ends::Sample;
use crate::error::NetError;
use crate::plan::Plan;
use crate::sys::epoll::{Epoll, Events, Interest};
use crate::sys::time::wake_exactly;

/// A ping that arrived at the server: probe, sequence number, when.
pub(super) type Arrival = (u32, u32, Time);

/// Sends pings on time and takes their answers.
pub(crate) struct Prober {
    plan: Arc<Plan>,
    epoll: Epoll,
    trains: Vec<ProbeTrain>,
    arrivals: Receiver<Arrival>,
    samples: Sender<Sample>,
}

/// The pings of one probe: their socket, when they are due, and which wait for an answer.
struct ProbeTrain {
    pinger: Box<dyn Pinger>,
    schedule: Schedule,
    pings: PingTracker,
    begun: bool,
    broken: bool,
}

impl Prober {
    /// Opens the sockets of all trains, where the calling thread is.
    pub fn new(
        plan: Arc<Plan>,
        arrivals: Receiver<Arrival>,
        samples: Sender<Sample>,
    ) -> Result<Self, NetError> {
        let epoll = Epoll::new().map_err(|error| NetError::io("epoll", &error))?;
        let mut trains = Vec::new();
        for (number, spec) in plan.scenario.probes.iter().enumerate() {
            let train = ProbeTrain::new(&plan, number, spec)
                .map_err(|error| error_of(spec, "opening its socket", &error))?;
            trains.push(train);
        }
        Ok(Self { plan, epoll, trains, arrivals, samples })
    }

    /// Works until the last answer is in, or is given up.
    pub fn run(mut self) -> Result<(), NetError> {
        wake_exactly();
        let plan = Arc::clone(&self.plan);
        let (clock, end) = (plan.clock, plan.end());
        let give_up = end.saturating_add(LAST_ANSWER);
        let mut events = Events::new(EVENTS);
        let mut polled = Time::ZERO;
        while !plan.control.is_stopped() {
            let now = clock.now();
            // A thread that was held up sends late what was due before the end.
            let next = self.next();
            let answered = || self.trains.iter().all(|t| t.pings.under_way() == 0);
            if now >= give_up || now >= end && next.is_none() && answered() {
                break;
            }
            let wait = next.map_or(MAX_WAIT, |(at, _)| clock.until(at));
            match next {
                Some((at, train)) if wait <= LEAD => {
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
                    self.poll(&mut events, wait.saturating_sub(LEAD).min(MAX_WAIT))?;
                    polled = now;
                }
            }
        }
        if !plan.control.is_stopped() {
            self.give_up();
        }
        plan.control.answers_are_in();
        Ok(())
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
        let at = self.plan.clock.now();
        let result = train.pinger.send(seq);
        // A packet that the kernel would not take is as lost as one that a queue drops.
        train.pings.sent(planned, at);
        if let Err(error) = result
            && !is_like_loss(&error)
        {
            self.lose(number, &error);
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
        let clock = self.plan.clock;
        let train = &mut self.trains[number];
        if train.broken {
            return;
        }
        for _ in 0..ANSWERS {
            match train.pinger.receive(&train.pings, clock) {
                Ok(Some(answer)) => {
                    if let Some(row) = train.pings.answered(answer) {
                        // Whoever no longer listens has no use for the rest either.
                        let _ = self.samples.send(Sample::Latency(row));
                    }
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_like_loss(&error) => {}
                Err(error) => return self.lose(number, &error),
            }
        }
    }

    /// A train can go no further: the run goes on, and ends with this error.
    fn lose(&mut self, number: usize, error: &io::Error) {
        let train = &mut self.trains[number];
        train.broken = true;
        let _ = self.epoll.remove(&train.pinger.fd());
        let spec = &self.plan.scenario.probes[number];
        let host = &self.plan.scenario.hosts[spec.host as usize].name;
        self.plan.control.fail(error_of(spec, &format!("pinging `{host}`"), error));
    }

    /// What is not answered by now is lost, in order of time.
    fn give_up(&mut self) {
        let mut rows: Vec<_> =
            self.trains.iter_mut().flat_map(|train| train.pings.lost()).collect();
        rows.sort_by_key(|row| row.t);
        for row in rows {
            let _ = self.samples.send(Sample::Latency(row));
        }
    }
}

impl ProbeTrain {
    fn new(plan: &Plan, number: usize, spec: &Probe) -> io::Result<Self> {
        let key = plan.scenario.probe_key(number);
        let (client, server) = plan.addresses.ends(&key, spec.host);
        let payload = spec.payload_bytes as usize;
        let pinger: Box<dyn Pinger> = match spec.kind {
            ProbeKind::Udp => match plan.addresses.session {
                None => Box::new(Udp::new(client, server, spec.dscp, payload)?),
                Some(session) => {
                    let ends = (client, server);
                    Box::new(Session::new(ends, session.token, number as u8, spec.dscp, payload)?)
                }
            },
            ProbeKind::Icmp => Box::new(Icmp::new(client, server, spec.dscp, payload)?),
            ProbeKind::Tcp => Box::new(Tcp::new(client, server, spec.dscp, payload)?),
            ProbeKind::UdpTtl => {
                let ttl = spec.ttl.unwrap_or(u8::MAX);
                Box::new(Ttl::new(client, server, (spec.dscp, ttl), payload)?)
            }
        };
        let stop = Time::from_nanos(spec.stop_ns).min(plan.end());
        let start = plan.scenario.probe_start(number, plan.seed);
        Ok(Self {
            pinger,
            schedule: Schedule::new(start, Duration::from_nanos(spec.period_ns), stop),
            pings: PingTracker::new(number as u32),
            begun: false,
            broken: false,
        })
    }
}

fn error_of(spec: &Probe, what: &str, error: &io::Error) -> NetError {
    NetError::io(format_args!("probe `{}`: {what}", spec.name), error)
}

/// Whether the kernel tells of a packet that it did not take or that did not arrive: that is loss.
fn is_like_loss(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EAGAIN
                | libc::EINTR
                | libc::ENOBUFS
                | libc::EHOSTUNREACH
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
