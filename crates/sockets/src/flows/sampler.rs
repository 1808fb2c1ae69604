//! Samples of loads, taken at fixed intervals on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use weir_core::{Duration, Ticker, Time};
use weir_scenario::{FlowRow, ThroughputMeter};

use super::board::Board;
use crate::ends::Sample;
use crate::tcp_info::TcpInfo;

/// Counts at the last samples, so that the next report what came since.
pub(crate) struct Sampler {
    board: Arc<Board>,
    samples: Sender<Sample>,
    /// By flow.
    meters: Vec<ThroughputMeter>,
}

impl Sampler {
    pub fn new(board: Arc<Board>, samples: Sender<Sample>) -> Self {
        let meters = vec![ThroughputMeter::default(); board.flows.len()];
        Self { board, samples, meters }
    }

    /// Takes samples until the run ends, then the totals.
    ///
    /// Rows carry the planned time, so that those of all loads line up. Asking the kernel about thousands
    /// of sockets takes a while; if it takes more than a quarter of an interval, intervals are left out,
    /// and the row behind them has all that came since. The last row of throughput is of the end of the
    /// run, so that the rows add up to the totals.
    pub fn run(mut self) {
        let plan = Arc::clone(&self.board.plan);
        let (clock, end) = (plan.clock, plan.end());
        let sampling = plan.scenario.sampling;
        let tickers = [Ticker::new(sampling.throughput_ns), Ticker::new(sampling.tcp_ns)];
        let mut next = tickers.map(|ticker| ticker.map_or(Time::MAX, |t| t.after(Time::ZERO)));
        while !plan.control.is_stopped() {
            let due = next[0].min(next[1]).min(end);
            let wait = clock.until(due);
            if !wait.is_zero() {
                std::thread::sleep(std::time::Duration::from_nanos(wait.min(NAP).as_nanos()));
                continue;
            }
            if due == end {
                break;
            }
            for number in 0..tickers.len() {
                let Some(ticker) = tickers[number] else { continue };
                if next[number] > due {
                    continue;
                }
                let before = clock.now();
                match number {
                    0 => self.throughput(due),
                    _ => self.tcp(due),
                }
                let cost = clock.now().since(before);
                next[number] = ticker.after(due.max(clock.now() + cost * 3));
            }
        }
        let reached = clock.now().min(end);
        if sampling.throughput_ns > 0 {
            self.throughput(reached);
        }
        if sampling.tcp_ns > 0 && next[1] == reached {
            self.tcp(reached);
        }
        self.totals();
        plan.control.samples_are_taken();
    }

    /// A row for each flow that is running, or still delivers after it stopped; of UDP flows also what their ends count.
    ///
    /// Bytes count when they are read, bytes on the wire when they arrive: a little before.
    fn throughput(&mut self, now: Time) {
        for flow in 0..self.meters.len() {
            let state = &self.board.flows[flow];
            if now <= state.start {
                // What came while this thread was being woken belongs to the next interval.
                continue;
            }
            let delivered = state.delivered.load(Ordering::Acquire);
            let running = now < state.stop;
            let is_new = delivered != self.meters[flow].bytes();
            let wire = if is_new { self.wire_bytes(flow) } else { None };
            let row = self.meters[flow].row(now, flow as u32, delivered, wire);
            if !running && row.is_empty() {
                continue;
            }
            self.send(Sample::Throughput(row));
            if let Some(udp) = &state.udp {
                self.send(Sample::Udp(udp.counts(now, flow as u32)));
            }
        }
    }

    fn wire_bytes(&self, flow: usize) -> Option<u64> {
        if let Some(udp) = &self.board.flows[flow].udp {
            return Some(udp.wire_bytes());
        }
        if self.board.spec(flow).application.is_some() {
            return Some(self.board.flows[flow].application_wire.load(Ordering::Relaxed));
        }
        let receiver = self.board.flows[flow].receiver.get()?;
        let header = self.board.ip_header(flow);
        TcpInfo::of(receiver).ok().map(|info| info.wire_bytes(header))
    }

    /// A row for each flow that is running, once its sender has a socket.
    fn tcp(&self, now: Time) {
        for (flow, state) in self.board.flows.iter().enumerate() {
            if now <= state.start || now >= state.stop {
                continue;
            }
            if let Some(info) = state.sender.get().and_then(|sender| TcpInfo::of(sender).ok()) {
                self.send(Sample::Tcp(info.row(now, flow as u32)));
            }
        }
    }

    fn totals(&self) {
        for (flow, state) in self.board.flows.iter().enumerate() {
            let delivered = match self.board.plan.scenario.sampling.throughput_ns {
                0 => state.delivered.load(Ordering::Acquire),
                // As the rows have it, which add up.
                _ => self.meters[flow].bytes(),
            };
            if let Some(udp) = &state.udp {
                let row = udp.totals(flow as u32, state.first_data(), delivered);
                self.send(Sample::Flow(row));
                continue;
            }
            let info = state.sender.get().and_then(|sender| TcpInfo::of(sender).ok());
            let (sent, again) = info.map(|info| info.sent_bytes()).unzip();
            let (segments, segments_again) = info.map(|info| info.sent_segments()).unzip();
            let completed = state.completed();
            self.send(Sample::Flow(FlowRow {
                sent_bytes: sent,
                sent_segments: segments,
                retransmitted_bytes: again,
                retransmitted_segments: segments_again,
                timeouts: info.and_then(|info| info.timeouts()),
                completed: completed.filter(|_| self.board.spec(flow).bytes == Some(delivered)),
                ..FlowRow::arrived(flow as u32, state.first_data(), delivered)
            }));
        }
    }

    fn send(&self, sample: Sample) {
        // Whoever no longer listens has no use for the rest either.
        let _ = self.samples.send(sample);
    }
}

/// How soon an early end is noticed.
const NAP: Duration = Duration::from_millis(20);
