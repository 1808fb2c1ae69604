//! Starting, stopping and ending all threads.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use weir_core::{End, Seed};
use weir_scenario::{FlowRow, LatencyRow, Scenario, TcpRow, ThroughputRow, TransferRow, UdpRow};

use crate::addresses::Addresses;
use crate::clock::Clock;
use crate::counters;
use crate::error::NetError;
use crate::flows::{ApplicationServer, ApplicationWorker, Board, Sampler, UdpWorker, Worker};
use crate::plan::Plan;
use crate::probes::{Echo, Prober};
use crate::sys::option;

/// A row of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// A probe was answered, or is lost.
    Latency(LatencyRow),
    /// Bytes of a flow arrived.
    Throughput(ThroughputRow),
    /// The state of a flow's sender.
    Tcp(TcpRow),
    /// What the ends of a UDP flow counted.
    Udp(UdpRow),
    /// What an application asked for has ended.
    Transfer(TransferRow),
    /// A flow's totals, at the end.
    Flow(FlowRow),
}

/// Network namespace of an end, which a thread enters before it opens sockets.
#[derive(Clone)]
pub struct EndNamespace(Arc<dyn Fn() -> io::Result<()> + Send + Sync>);

/// Counters of the network stacks over the run, by name such as `TcpExt:TCPTimeouts`: all that are not
/// zero. Everything in the namespace counts, not only the loads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// In the client's namespace.
    pub client: BTreeMap<String, u64>,
    /// In the servers' namespace.
    pub server: BTreeMap<String, u64>,
}

/// The ends of a scenario at work, on threads of their own.
#[must_use = "an end is joined"]
pub struct ScenarioEnds {
    plan: Arc<Plan>,
    client: Thread<BTreeMap<String, u64>>,
    server: Thread<BTreeMap<String, u64>>,
    others: Vec<Thread<()>>,
}

type Thread<T> = JoinHandle<Result<T, NetError>>;

impl EndNamespace {
    /// A namespace that a thread reaches by calling `enter`.
    pub fn new(enter: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(enter))
    }

    /// Moves the calling thread into the namespace.
    ///
    /// # Errors
    /// If the thread may not enter it.
    pub fn enter(&self) -> io::Result<()> {
        (self.0)()
    }

    /// The namespace that the process is in already.
    #[must_use]
    pub fn current() -> Self {
        Self::new(|| Ok(()))
    }
}

impl ScenarioEnds {
    /// Opens all sockets and starts all threads. Every socket that listens is open when this returns, so
    /// it is to be called before the clock's start; loads begin when the clock says so.
    ///
    /// # Errors
    /// If a socket cannot be opened or lacks an option: the first one, by the flow's or probe's name.
    pub fn start(
        scenario: &Arc<Scenario>,
        seed: Seed,
        clock: Clock,
        client: EndNamespace,
        server: EndNamespace,
        samples: Sender<Sample>,
    ) -> Result<Self, NetError> {
        Self::start_at(Addresses::Scenario, (scenario, seed, clock), client, server, samples)
    }

    /// Starts loads and probes as [`ScenarioEnds::start`] does, with ends that have other addresses than the scenario's.
    ///
    /// # Errors
    /// If a socket cannot be opened or lacks an option: the first one, by the flow's or probe's name.
    pub fn start_at(
        addresses: Addresses,
        (scenario, seed, clock): (&Arc<Scenario>, Seed, Clock),
        client: EndNamespace,
        server: EndNamespace,
        samples: Sender<Sample>,
    ) -> Result<Self, NetError> {
        // Where it is refused, `check` says so with the numbers.
        let _ = option::raise_open_files();
        let scenario = Arc::clone(scenario);
        let plan = Arc::new(Plan { scenario, seed, clock, addresses, control: Arc::default() });
        let board = Arc::new(Board::new(Arc::clone(&plan)));
        let (arrivals, arrived) = mpsc::channel();

        let mut starting = Starting { plan: &plan, gates: Vec::new(), ready: mpsc::channel() };
        let mut others = Vec::new();
        let echo = Arc::clone(&plan);
        let echo = move || Echo::new(&echo, arrivals);
        others.push(starting.thread("echo", server.clone(), echo, Echo::run)?);
        let flows = |side| {
            let board = Arc::clone(&board);
            move || Ok((counters::read(), Worker::new(side, board)?))
        };
        let run = |(before, worker): (_, Worker)| {
            worker.run()?;
            Ok(counters::since(&before, counters::read()))
        };
        if plan.scenario.flows.iter().any(|flow| flow.udp.is_some()) {
            let places =
                [(End::Client, "client UDP", &client), (End::Server, "server UDP", &server)];
            for (side, name, place) in places {
                let board = Arc::clone(&board);
                let worker = move || UdpWorker::new(side, &board);
                others.push(starting.thread(name, place.clone(), worker, UdpWorker::run)?);
            }
        }
        if plan.scenario.flows.iter().any(|flow| flow.application.is_some()) {
            let serving = Arc::clone(&board);
            let serving = move || ApplicationServer::new(&serving);
            let work = ApplicationServer::run;
            others.push(starting.thread("server applications", server.clone(), serving, work)?);
            let (asking, rows) = (Arc::clone(&board), samples.clone());
            let asking = move || ApplicationWorker::new(&asking, rows);
            let ask = ApplicationWorker::run;
            others.push(starting.thread("applications", client.clone(), asking, ask)?);
        }
        let server = starting.thread("server flows", server, flows(End::Server), run)?;
        let probes = (Arc::clone(&plan), samples.clone());
        let prober = move || Prober::new(&probes.0, arrived, probes.1);
        let prober = starting.thread("probes", client.clone(), prober, Prober::run)?;
        others.push(prober);
        let client = starting.thread("client flows", client, flows(End::Client), run)?;
        let sampler = move || Ok(Sampler::new(board, samples));
        others.push(starting.thread("samples", EndNamespace::current(), sampler, |sampler| {
            sampler.run();
            Ok(())
        })?);

        let failed = starting.wait();
        let ends = Self { plan, client, server, others };
        match failed {
            None => Ok(ends),
            Some(error) => {
                ends.stop();
                let _ = ends.join();
                Err(error)
            }
        }
    }

    /// Ends the run now. What was measured stays; pings that are under way are left out.
    pub fn stop(&self) {
        self.plan.control.stop();
    }

    /// Waits for the end of the run, and for late answers a little longer. Every row has been sent when
    /// this returns, whatever it returns.
    ///
    /// # Errors
    /// The first thing that went wrong: a connection that broke, or a call that failed.
    pub fn join(self) -> Result<Totals, NetError> {
        let mut totals = Totals::default();
        let mut failure = None;
        for (thread, place) in
            [(self.client, &mut totals.client), (self.server, &mut totals.server)]
        {
            match joined(thread) {
                Ok(counters) => *place = counters,
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        for thread in self.others {
            failure = failure.or(joined(thread).err());
        }
        match self.plan.control.failure().or(failure) {
            None => Ok(totals),
            Some(error) => Err(error),
        }
    }
}

/// Message of a thread when it is ready to run, or cannot be.
type Prepared = Result<(), NetError>;

/// Threads that are being started. None runs before all are prepared: a client that is faster than its server
/// would find nobody listening. Whatever happens, they go on when this is dropped.
struct Starting<'p> {
    plan: &'p Arc<Plan>,
    /// One a thread; nothing is ever sent.
    gates: Vec<Sender<Infallible>>,
    ready: (Sender<Prepared>, Receiver<Prepared>),
}

impl Starting<'_> {
    /// Starts a thread that enters `place`, prepares and then runs. If it fails, the run ends early.
    fn thread<P, T: Send + 'static>(
        &mut self,
        name: &str,
        place: EndNamespace,
        prepare: impl FnOnce() -> Result<P, NetError> + Send + 'static,
        run: impl FnOnce(P) -> Result<T, NetError> + Send + 'static,
    ) -> Result<Thread<T>, NetError> {
        let (gate, opened) = mpsc::channel();
        self.gates.push(gate);
        let (plan, ready, label) = (Arc::clone(self.plan), self.ready.0.clone(), name.to_owned());
        let body = move || {
            let _ending = Ending(&plan);
            let prepared = place
                .enter()
                .map_err(|error| NetError::io(format_args!("the place of `{label}`"), &error))
                .and_then(|()| prepare());
            let result = match prepared {
                Ok(prepared) => {
                    let _ = ready.send(Ok(()));
                    let _ = opened.recv();
                    run(prepared)
                }
                Err(error) => {
                    let _ = ready.send(Err(error.clone()));
                    Err(error)
                }
            };
            if let Err(error) = &result {
                plan.control.fail(error.clone());
                plan.control.break_off();
            }
            result
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
        thread.map_err(|error| {
            self.plan.control.break_off();
            NetError::io(format_args!("thread `{name}`"), &error)
        })
    }

    /// Waits until all are prepared, and returns the first error.
    fn wait(self) -> Option<NetError> {
        (0..self.gates.len()).filter_map(|_| self.ready.1.recv().ok()?.err()).next()
    }
}

/// Ends the run if a thread panics: the others would wait for it forever.
struct Ending<'p>(&'p Plan);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.control.break_off();
        }
    }
}

fn joined<T>(thread: Thread<T>) -> Result<T, NetError> {
    let name = thread.thread().name().unwrap_or_default().to_owned();
    thread.join().unwrap_or_else(|_| {
        Err(NetError::new(format!("thread `{name}` of the loads ended by a bug: please report it")))
    })
}
