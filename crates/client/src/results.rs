//! Results of a measurement: what is collected while it runs, and becomes the record.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use serde_json::{Value, json};
use weir_core::Time;
use weir_scenario::{Direction, RecordSink, Scenario, ThroughputRow, UdpRow};
use weir_sockets::Sample;
use weir_speedtest::protocol::weir::{EchoCount, FlowSample};

use crate::ClientError;
use crate::applications::ApplicationEvent;
use crate::flow_table::{FlowTable, ServerRow};
use crate::loads::LoadEvent;
use crate::ramps::{RampPlan, Ramps};
use crate::udp_loads::UdpEvent;

/// Results of the loads so far.
pub(crate) struct Results<'r> {
    pub flows: FlowTable,
    pub ramps: Ramps<'r>,
    pub warnings: Vec<String>,
    /// Of applications: how many connections broke or could not be had, and why the first one.
    failed: BTreeMap<u32, (u64, String)>,
}

impl<'r> Results<'r> {
    pub fn new(scenario: Scenario, seed: u64, ramp: Option<&'r RampPlan>) -> Self {
        Self {
            flows: FlowTable::new(scenario, seed),
            ramps: Ramps::new(ramp),
            warnings: Vec::new(),
            failed: BTreeMap::new(),
        }
    }
}

impl Results<'_> {
    /// Takes a sample of the server's end of a load.
    pub fn sampled(
        &mut self,
        t: Time,
        sample: FlowSample,
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        match self.flows.sampled(t, sample)? {
            Some(ServerRow::Tcp(row)) => record.tcp(&row),
            Some(ServerRow::Throughput(row, segments)) => {
                record.throughput(&row);
                self.ramps.arrived(Direction::Up, segments);
            }
            Some(ServerRow::Udp(row, throughput)) => record_udp(&row, &throughput, record),
            None => {}
        }
        Ok(())
    }

    /// Takes the last sample of the server's end of a load.
    pub fn done(
        &mut self,
        t: Time,
        last: FlowSample,
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        let number = last.flow;
        self.sampled(t, last, record)?;
        self.flows.ended(number, t)
    }

    /// Takes that the server gave a load up, and returns a message about it.
    pub fn failure_at_server(&mut self, number: u32, reason: &str) -> Result<String, ClientError> {
        self.flows.given_up(number)?;
        Ok(format!("flow `{}`: the server says: {reason}", self.flows.name(number)?))
    }

    /// Takes an event of this end of the loads.
    pub fn on_load(
        &mut self,
        event: LoadEvent,
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        match event {
            LoadEvent::Running { flow, congestion } => {
                self.flows.sender_has(flow, Direction::Up, congestion)?;
            }
            LoadEvent::Throughput(row, segments) => {
                self.ramps.arrived(Direction::Down, u64::from(segments));
                record.throughput(&row);
            }
            LoadEvent::Tcp(row) => record.tcp(&row),
            LoadEvent::Failed { flow, reason } => {
                let name = self.flows.name(flow)?;
                self.warnings.push(format!("`{name}` broke before its time: {reason}"));
            }
            LoadEvent::Totals(totals) => self.flows.totals(totals)?,
        }
        Ok(())
    }

    /// Takes an event of this end of the UDP loads.
    pub fn on_udp(
        &mut self,
        event: UdpEvent,
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        match event {
            UdpEvent::Sent { flow, counts } => self.flows.udp_sent(flow, counts),
            UdpEvent::Received(row, throughput) => {
                if let Some(row) = self.flows.udp_received(row, &throughput)? {
                    record_udp(&row, &throughput, record);
                }
                Ok(())
            }
            UdpEvent::Failed { flow, reason } => {
                let name = self.flows.name(flow)?;
                self.warnings.push(format!("`{name}` broke before its time: {reason}"));
                Ok(())
            }
            UdpEvent::Ended { flow, first_data } => self.flows.udp_first_data(flow, first_data),
        }
    }

    /// Takes an event of the applications.
    pub fn on_application(
        &mut self,
        event: ApplicationEvent,
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        match event {
            ApplicationEvent::Transfer(row) => record.transfer(&row),
            ApplicationEvent::Throughput(row) => record.throughput(&row),
            ApplicationEvent::Failed { flow, reason } => {
                self.flows.name(flow)?;
                self.failed.entry(flow).or_insert((0, reason)).0 += 1;
            }
            ApplicationEvent::Ended { flow, first_data, delivered } => {
                self.flows.application_ended(flow, first_data, delivered)?;
            }
        }
        Ok(())
    }

    /// Warns of connections of applications that were not to be had: what they were for was waited for in vain.
    pub fn warn_of_failed(&mut self) {
        for (&flow, (times, reason)) in &self.failed {
            let Ok(name) = self.flows.name(flow) else { continue };
            let often = if *times == 1 { "once" } else { &format!("{times} times") };
            self.warnings.push(format!("`{name}` failed {often}: {reason}"));
        }
    }

    /// Warns of loads of which the server has not said its last word: what it sent is not known, and of what arrived
    /// there its last sample is.
    pub fn warn_of_unheard(&mut self) -> Result<(), ClientError> {
        for number in self.flows.under_way() {
            let name = self.flows.name(number)?;
            self.warnings.push(format!(
                "the server did not say how `{name}` ended: its totals are not known, or those of a sample before"
            ));
        }
        Ok(())
    }

    /// Warns of packets that were left out.
    pub fn warn_of_skipped(&mut self) {
        for (flow, packets) in self.flows.udp_skipped() {
            let name = &flow.name;
            let who = if flow.direction.is_down() {
                "the server was more than 100 ms behind, or did not hear from here for a second"
            } else {
                "this machine was more than 100 ms behind"
            };
            self.warnings.push(format!("`{name}` left {packets} packets out: {who}"));
        }
    }

    pub fn note_scenario(&self, record: &mut dyn RecordSink) {
        let scenario = serde_json::to_value(&self.flows.scenario).expect("plain data");
        record.note("scenario", scenario);
    }
}

fn record_udp(row: &UdpRow, throughput: &ThroughputRow, record: &mut dyn RecordSink) {
    record.throughput(throughput);
    record.udp(row);
}

/// Passes on the rows of pings that are there, and says whether a server answered one of them. What routers on the way
/// answer says nothing of the server.
pub(crate) fn pass_on_pings(
    samples: &Receiver<Sample>,
    scenario: &Scenario,
    record: &mut dyn RecordSink,
) -> bool {
    let mut is_answered = false;
    for sample in samples.try_iter() {
        if let Sample::Latency(row) = sample {
            let probe = scenario.probes.get(row.probe as usize);
            is_answered |= row.rtt.is_some() && probe.is_some_and(|probe| probe.ttl.is_none());
            record.latency(&row);
        }
    }
    is_answered
}

/// How many datagrams arrived at the servers, and how many they left unanswered.
#[derive(Default)]
pub(crate) struct Echoes {
    pub trains: Vec<EchoCount>,
    pub limited: u64,
    /// Whether another test of this address loaded a server meanwhile.
    pub met_others: bool,
}

impl Echoes {
    pub fn described(&self) -> Value {
        let count = |train: &EchoCount| json!({"probe": train.train, "received": train.received, "ce": train.ce});
        json!({
            "trains": self.trains.iter().map(count).collect::<Vec<_>>(),
            "limited": self.limited,
            "met_others": self.met_others,
        })
    }
}
