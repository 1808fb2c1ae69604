//! The flow table: the state of each load as both ends report it, and its rows of the record.

use weir_core::{Duration, Seed, Time};
use weir_scenario::{
    Direction, Flow, FlowRow, Scenario, TcpRow, ThroughputMeter, ThroughputRow, UdpLoad, UdpRow,
    UdpSenderCounts,
};
use weir_sockets::TcpInfo;
use weir_sockets::load::options::MAX_UNSENT_BYTES;
use weir_sockets::load::udp::udp_request;
use weir_speedtest::protocol::weir::{FlowRequest, FlowSample, Token, UdpSample};

use crate::ClientError;
use crate::applications::ApplicationOrder;
use crate::loads::{Order, Totals};
use crate::sender::{Sent, tcp_row};
use crate::udp_loads::UdpOrder;
use crate::udp_state::{UdpState, sender_counts, tells_something, udp_row};
use crate::ways::Way;

/// All loads of a measurement, those that ramps add included.
pub(crate) struct FlowTable {
    /// The scenario as it runs: with the flows that ramps added, and the congestion controls that senders have.
    pub scenario: Scenario,
    /// The run's, and what is derived from it.
    seed: (u64, Seed),
    /// By number in the record.
    flows: Vec<FlowState>,
}

/// State of one load, as both ends have reported it.
#[derive(Clone, Debug, Default)]
struct FlowState {
    /// When it is opened.
    start: Time,
    server: ServerEnd,
    /// The last that the server told.
    last: Option<FlowSample>,
    /// Data that arrived at the server.
    meter: ThroughputMeter,
    /// Segments with data that arrived at the server.
    segments: u32,
    totals: Option<Totals>,
    udp: UdpState,
    /// Of an application: when data first arrived here, and how much did.
    application: (Option<Time>, u64),
}

/// How far the server's end of a load is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum ServerEnd {
    #[default]
    NotAskedFor,
    AskedFor,
    /// It has ended, and the server has said its last word of it.
    Ended(Time),
    /// The server gave it up, and says no more of it.
    GivenUp,
}

/// Rows that a sample of the server's end of a load adds to the record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ServerRow {
    /// The server sends: its state.
    Tcp(TcpRow),
    /// The server receives: what arrived there, and in how many segments.
    Throughput(ThroughputRow, u64),
    /// The server receives a UDP load.
    Udp(UdpRow, ThroughputRow),
}

impl FlowTable {
    pub fn new(scenario: Scenario, run_seed: u64) -> Self {
        let seed = Seed::new(run_seed);
        let start = |flow| scenario.flow_start(flow, seed);
        let flows = (0..scenario.flows.len())
            .map(|number| FlowState { start: start(number), ..FlowState::default() })
            .collect();
        Self { scenario, seed: (run_seed, seed), flows }
    }

    /// Adds a load, which is opened at its start to the nanosecond, and returns its number.
    pub fn add(&mut self, flow: Flow) -> u32 {
        self.flows.push(FlowState { start: flow.start(), ..FlowState::default() });
        self.scenario.flows.push(flow);
        self.flows.len() as u32 - 1
    }

    /// The loads that start by `until`, and that the server was not asked for yet.
    pub fn to_ask_for(&self, until: Time) -> Vec<u32> {
        self.those(|state| state.server == ServerEnd::NotAskedFor && state.start <= until)
    }

    /// Request to the server for the flow `number`, whose samples come at least `min_sample_ns` apart.
    pub fn request(&mut self, number: u32, min_sample_ns: u64) -> FlowRequest {
        let state = &mut self.flows[number as usize];
        state.server = ServerEnd::AskedFor;
        let flow = &self.scenario.flows[number as usize];
        // Connections are opened a little later than told, and last as long; packets are due to the stop.
        let begins = if flow.is_tcp() { flow.start() } else { state.start };
        let down = flow.direction.is_down();
        let sampling = &self.scenario.sampling;
        let sample =
            [sampling.throughput_ns, sampling.tcp_ns].into_iter().filter(|&ns| ns > 0).min();
        FlowRequest {
            flow: number,
            direction: flow.direction,
            duration_ns: flow.stop().checked_since(begins).map_or(1, Duration::as_nanos).max(1),
            bytes: flow.bytes.filter(|_| down),
            congestion: chosen_congestion(flow).filter(|_| down && flow.udp.is_none()),
            dscp: flow.dscp,
            pacing_bps: None,
            unsent_bytes: Some(MAX_UNSENT_BYTES),
            sample_ns: sample
                .filter(|_| flow.application.is_none())
                .map(|ns| ns.max(min_sample_ns)),
            udp: flow.udp.map(|load| udp_request(&load, self.seed.0)),
            application: flow.application.is_some(),
        }
    }

    /// The order for this end of a load for which the server at the end of `way` gave `ticket`.
    pub fn order(&self, number: u32, ticket: Token, way: Way) -> Result<Order, ClientError> {
        let state = self.flows.get(number as usize).ok_or_else(|| unknown(number))?;
        let flow = &self.scenario.flows[number as usize];
        Ok(Order {
            flow: number,
            way,
            direction: flow.direction,
            ticket,
            congestion: chosen_congestion(flow),
            dscp: flow.dscp,
            start: state.start,
            stop: flow.stop(),
            bytes: flow.bytes,
        })
    }

    /// The order for this end of a UDP load for which the server gave `ticket`; `None` if it is none.
    pub fn udp_order(&self, number: u32, ticket: Token, way: &Way) -> Option<UdpOrder> {
        let state = self.flows.get(number as usize)?;
        let flow = &self.scenario.flows[number as usize];
        let (load, start, stop) = (flow.udp?, state.start, flow.stop());
        Some(UdpOrder {
            flow: number,
            way: way.clone(),
            direction: flow.direction,
            ticket,
            load,
            dscp: flow.dscp,
            start,
            stop,
            sender: load.sender(number, (start, stop), self.seed.1),
        })
    }

    /// The order for the application for which the server gave `ticket`; `None` if it is none.
    pub fn application_order(
        &self,
        number: u32,
        ticket: Token,
        way: &Way,
    ) -> Option<ApplicationOrder> {
        let state = self.flows.get(number as usize)?;
        let flow = &self.scenario.flows[number as usize];
        let (start, stop) = (state.start, flow.stop().max(state.start));
        let application = flow.application.clone()?;
        let (way, dscp) = (way.clone(), flow.dscp);
        Some(ApplicationOrder { flow: number, way, ticket, application, dscp, start, stop })
    }

    /// Keeps what arrived here of an application.
    pub fn application_ended(
        &mut self,
        number: u32,
        first_data: Option<Time>,
        delivered: u64,
    ) -> Result<(), ClientError> {
        self.state(number)?.application = (first_data, delivered);
        Ok(())
    }

    /// The loads that the server was asked for, and has not said its last word of.
    pub fn under_way(&self) -> Vec<u32> {
        self.those(|state| state.server == ServerEnd::AskedFor)
    }

    /// Takes what the sender of a UDP load did.
    pub fn udp_sent(&mut self, number: u32, counts: UdpSenderCounts) -> Result<(), ClientError> {
        self.state(number)?.udp.sent(counts);
        Ok(())
    }

    /// Completes a row of a UDP load that arrived here with what its sender did; `None` if it tells nothing.
    pub fn udp_received(
        &mut self,
        row: UdpRow,
        throughput: &ThroughputRow,
    ) -> Result<Option<UdpRow>, ClientError> {
        let udp = &mut self.state(row.flow)?.udp;
        udp.arrived_bytes += throughput.bytes;
        let row = UdpRow { sender: Some(std::mem::take(&mut udp.since)), ..row };
        let stop = self.scenario.flows[row.flow as usize].stop();
        Ok(tells_something(&row, throughput, stop).then_some(row))
    }

    /// Notes when data of a UDP load was first sent from here, or first arrived.
    pub fn udp_first_data(&mut self, number: u32, first: Option<Time>) -> Result<(), ClientError> {
        self.state(number)?.udp.first_data = first;
        Ok(())
    }

    /// Packets that senders of UDP loads left out, by the loads' names.
    pub fn udp_skipped(&self) -> impl Iterator<Item = (&Flow, u64)> {
        let flows = self.scenario.flows.iter().zip(&self.flows);
        flows
            .map(|(flow, state)| (flow, state.udp.skipped_packets))
            .filter(|(_, skipped)| *skipped > 0)
    }

    /// The name of a load.
    pub fn name(&self, number: u32) -> Result<&str, ClientError> {
        let flow = self.scenario.flows.get(number as usize).ok_or_else(|| unknown(number))?;
        Ok(&flow.name)
    }

    /// Notes the congestion control that the sender of `direction` has, if the load is of that direction and left it
    /// to the machine.
    pub fn sender_has(
        &mut self,
        number: u32,
        direction: Direction,
        congestion: String,
    ) -> Result<(), ClientError> {
        self.state(number)?;
        let flow = &mut self.scenario.flows[number as usize];
        if flow.direction == direction && flow.is_tcp() && chosen_congestion(flow).is_none() {
            flow.tcp.congestion_control = congestion;
        }
        Ok(())
    }

    /// Takes a sample of the server's end of a load at `t`, and returns what it adds to the record.
    pub fn sampled(
        &mut self,
        t: Time,
        sample: FlowSample,
    ) -> Result<Option<ServerRow>, ClientError> {
        let number = sample.flow;
        let state = self.flows.get_mut(number as usize).ok_or_else(|| unknown(number))?;
        let ip_version = self.scenario.flow_ip(number as usize);
        let flow = &self.scenario.flows[number as usize];
        if flow.application.is_some() {
            // All that it asks for arrives here.
            return Ok(None);
        }
        if let Some(load) = &flow.udp {
            let packet = load.ip_len(ip_version);
            return Ok(state.udp_sampled((t, flow.stop()), &sample, (load, packet)));
        }
        match flow.direction {
            Direction::Up => {
                let header = ip_version.header_bytes() + TCP_HEADER;
                Ok(Some(state.arrived(t, sample, header)))
            }
            Direction::Down => {
                let tcp = sample.tcp.as_ref().filter(|_| state.ended().is_none());
                let row = tcp.map(|tcp| ServerRow::Tcp(tcp_row(t, number, tcp)));
                state.last = Some(sample);
                Ok(row)
            }
        }
    }

    /// Notes that the server's end of a load ended at `t`.
    pub fn ended(&mut self, number: u32, t: Time) -> Result<(), ClientError> {
        self.state(number)?.server = ServerEnd::Ended(t);
        Ok(())
    }

    /// Notes that the server gave a load up, and tells no more of it.
    pub fn given_up(&mut self, number: u32) -> Result<(), ClientError> {
        self.state(number)?.server = ServerEnd::GivenUp;
        Ok(())
    }

    /// Keeps the totals that this end has of a load when the load is over.
    pub fn totals(&mut self, totals: Totals) -> Result<(), ClientError> {
        self.state(totals.flow)?.totals = Some(totals);
        Ok(())
    }

    /// The totals of all loads.
    pub fn rows(&self) -> impl Iterator<Item = FlowRow> {
        let flows = self.flows.iter().zip(&self.scenario.flows);
        (0..).zip(flows).map(|(number, (state, flow))| state.row(number, flow))
    }

    /// Numbers of the loads whose state is `wanted`.
    fn those(&self, wanted: impl Fn(&FlowState) -> bool) -> Vec<u32> {
        (0..)
            .zip(&self.flows)
            .filter(|(_, state)| wanted(state))
            .map(|(number, _)| number)
            .collect()
    }

    fn state(&mut self, number: u32) -> Result<&mut FlowState, ClientError> {
        self.flows.get_mut(number as usize).ok_or_else(|| unknown(number))
    }
}

impl FlowState {
    /// When the server's end ended.
    const fn ended(&self) -> Option<Time> {
        match self.server {
            ServerEnd::Ended(t) => Some(t),
            _ => None,
        }
    }

    /// The server received up to `sample`, in packets whose IP and TCP headers are `header` bytes.
    fn arrived(&mut self, t: Time, sample: FlowSample, header: u32) -> ServerRow {
        let wire = sample
            .tcp
            .as_ref()
            .map(|tcp| tcp.received_bytes + u64::from(tcp.received_segments) * u64::from(header));
        let arrived = sample.tcp.as_ref().map_or(0, |tcp| tcp.received_segments);
        let row = self.meter.row(t, sample.flow, sample.bytes, wire);
        let segments = arrived.saturating_sub(self.segments);
        self.segments = self.segments.max(arrived);
        self.last = Some(sample);
        ServerRow::Throughput(row, segments.into())
    }

    /// The server's end of a UDP load, whose packets have `packet` bytes with all headers and leave until `stop`.
    fn udp_sampled(
        &mut self,
        (t, stop): (Time, Time),
        sample: &FlowSample,
        (load, packet): (&UdpLoad, u32),
    ) -> Option<ServerRow> {
        match sample.udp? {
            UdpSample::Sent(sent) => {
                self.udp.sent(sender_counts(sent));
                None
            }
            UdpSample::Received(received) => {
                let packets = sample.bytes / u64::from(load.payload_bytes.max(1));
                let wire = packets.saturating_mul(u64::from(packet));
                let throughput = self.meter.row(t, sample.flow, sample.bytes, Some(wire));
                let sender = Some(std::mem::take(&mut self.udp.since));
                let row = UdpRow { sender, ..udp_row(t, sample.flow, &received) };
                tells_something(&row, &throughput, stop).then_some(ServerRow::Udp(row, throughput))
            }
        }
    }

    /// Totals of a UDP load. Counts of the sender are known once it has sent.
    fn udp_totals(&self, flow: u32, spec: &Flow, load: &UdpLoad) -> FlowRow {
        let UdpState { sent_packets, skipped_packets, first_data, arrived_bytes, .. } = self.udp;
        let delivered = match spec.direction {
            Direction::Down => arrived_bytes,
            Direction::Up => self.meter.bytes(),
        };
        let told = sent_packets > 0 || skipped_packets > 0;
        let none_of = |count: u64| told.then_some(count);
        FlowRow {
            sent_bytes: none_of(sent_packets.saturating_mul(load.payload_bytes.into())),
            sent_segments: none_of(sent_packets),
            retransmitted_bytes: none_of(0),
            retransmitted_segments: none_of(0),
            timeouts: none_of(0),
            loss_probes: none_of(0),
            fast_recoveries: none_of(0),
            ecn_reductions: none_of(0),
            ..FlowRow::arrived(flow, first_data, delivered)
        }
    }

    /// Totals of the flow, as number `flow` of the record.
    fn row(&self, flow: u32, spec: &Flow) -> FlowRow {
        if let Some(load) = &spec.udp {
            return self.udp_totals(flow, spec, load);
        }
        if spec.application.is_some() {
            let (first_data, delivered) = self.application;
            return FlowRow::arrived(flow, first_data, delivered);
        }
        let totals = self.totals;
        let info = totals.and_then(|totals| totals.info);
        // Before its last word, what the server had sent is less than what has arrived since.
        let last = self.last.as_ref().filter(|_| self.ended().is_some());
        let theirs = last.and_then(|last| last.tcp.as_ref());
        let (sent, delivered, ended) = match spec.direction {
            Direction::Down => (
                theirs.map(Sent::of_server),
                totals.map_or(0, |totals| totals.delivered),
                totals.and_then(|totals| totals.ended),
            ),
            Direction::Up => {
                let delivered = self.meter.bytes();
                let sent = |own: &TcpInfo| Sent::of_kernel(own).of_all(delivered, own.mss());
                (info.as_ref().map(sent), delivered, self.ended())
            }
        };
        let first_data = totals.and_then(|totals| totals.first_data);
        FlowRow {
            sent_bytes: sent.map(|sent| sent.bytes),
            sent_segments: sent.map(|sent| sent.segments),
            retransmitted_bytes: sent.map(|sent| sent.bytes_again),
            retransmitted_segments: sent.map(|sent| sent.segments_again),
            timeouts: sent.and_then(|sent| sent.timeouts),
            completed: ended.filter(|_| spec.bytes == Some(delivered)),
            ..FlowRow::arrived(flow, first_data, delivered)
        }
    }
}

/// The congestion control that a load asks for; `None` if it is left to the sending machine.
fn chosen_congestion(flow: &Flow) -> Option<String> {
    let name = &flow.tcp.congestion_control;
    (name != MACHINES_OWN).then(|| name.clone())
}

/// What is said of a load that the server was not asked for.
pub(crate) fn unknown(number: u32) -> ClientError {
    ClientError::new(format!("the server speaks of a flow {number} that nobody asked for"))
}

/// In place of a congestion control's name: whatever the sending machine has.
pub(crate) const MACHINES_OWN: &str = "default";
/// RFC 9293, section 3.1, with time stamps (RFC 7323), as all Linux has them.
const TCP_HEADER: u32 = 20 + 12;

#[cfg(test)]
mod tests {
    use weir_scenario::{Hop, LineRate};
    use weir_speedtest::protocol::weir::{UdpReceived, UdpSent};

    use super::*;

    fn flow(direction: Direction) -> Flow {
        Flow::new("load", direction, MACHINES_OWN, (Time::ZERO, Time::from_millis(1_000)))
    }

    fn table(flows: Vec<Flow>) -> FlowTable {
        let hop = Hop::new("line", "pfifo", LineRate::Unlimited);
        let scenario = Scenario::over("test", 1_000_000_000, hop.clone(), hop);
        FlowTable::new(Scenario { flows, ..scenario }, 1)
    }

    fn sample(flow: u32, bytes: u64) -> FlowSample {
        FlowSample { flow, bytes, tcp: None, udp: None }
    }

    #[test]
    fn what_no_kernel_has_told_is_unknown_and_not_none() {
        for direction in Direction::ALL {
            let row = FlowState::default().row(3, &flow(direction));
            let counts = [
                row.sent_bytes,
                row.sent_segments,
                row.retransmitted_bytes,
                row.retransmitted_segments,
                row.timeouts,
            ];
            assert_eq!((row.flow, counts), (3, [None; 5]), "{direction:?}");
        }
    }

    #[test]
    fn a_load_is_asked_for_once_and_in_time() {
        let mut table = table(vec![flow(Direction::Down)]);
        let late = Flow { start_ns: 500_000_000, ..flow(Direction::Up) };
        assert_eq!(table.add(late), 1);
        assert_eq!(table.to_ask_for(Time::from_millis(499)), [0]);
        assert_eq!(table.to_ask_for(Time::from_millis(500)), [0, 1]);
        let request = table.request(0, 0);
        assert_eq!((request.flow, request.direction), (0, Direction::Down));
        assert_eq!((request.duration_ns, request.congestion), (1_000_000_000, None));
        assert_eq!(table.to_ask_for(Time::from_millis(500)), [1]);
        let order = table.order(1, Token(7), Way::nowhere()).unwrap();
        assert_eq!((order.start, order.stop), (Time::from_millis(500), Time::from_millis(1_000)));
    }

    #[test]
    fn the_sender_names_what_was_left_to_it() {
        let mut table = table(vec![flow(Direction::Down), flow(Direction::Up)]);
        for number in [0, 1] {
            table.sender_has(number, Direction::Down, "bbr".to_owned()).unwrap();
            table.sender_has(number, Direction::Up, "cubic".to_owned()).unwrap();
        }
        let names: Vec<_> =
            table.scenario.flows.iter().map(|flow| flow.tcp.congestion_control.as_str()).collect();
        assert_eq!(names, ["bbr", "cubic"]);
    }

    #[test]
    fn uploads_are_counted_by_the_server_and_add_up() {
        let mut table = table(vec![Flow { bytes: Some(300), ..flow(Direction::Up) }]);
        let mut rows = Vec::new();
        for (ms, bytes) in [(100, 100), (200, 100), (300, 300)] {
            match table.sampled(Time::from_millis(ms), sample(0, bytes)).unwrap() {
                Some(ServerRow::Throughput(row, 0)) => rows.push(row.bytes),
                other => panic!("{other:?}"),
            }
        }
        table.ended(0, Time::from_millis(310)).unwrap();
        assert_eq!(rows, [100, 0, 200]);
        let row = table.rows().next().unwrap();
        assert_eq!((row.delivered_bytes, row.completed), (300, Some(Time::from_millis(310))));
    }

    /// A call in `direction`, which the server was asked for.
    fn call(direction: Direction) -> FlowTable {
        let mut table = table(vec![Flow {
            udp: Some(UdpLoad::voice(40_000_000, 20_000_000)),
            ..flow(direction)
        }]);
        let request = table.request(0, 0);
        assert_eq!(request.udp.map(|udp| (udp.payload_bytes, udp.seed)), Some((172, 1)));
        assert_eq!((request.congestion, table.under_way()), (None, vec![0]));
        table
    }

    fn counts(sent_packets: u64, skipped_packets: u64) -> UdpSenderCounts {
        UdpSenderCounts { sent_packets, skipped_packets, late_max: Duration::from_nanos(7) }
    }

    #[test]
    fn a_row_of_an_upload_has_what_its_sender_did_here_and_each_count_is_told_once() {
        let mut table = call(Direction::Up);
        table.udp_sent(0, counts(4, 1)).unwrap();
        table.udp_sent(0, counts(1, 0)).unwrap();
        let received = UdpReceived { packets: 3, lost: 1, ..UdpReceived::default() };
        let heard = |ms, bytes, counted| {
            let udp = Some(UdpSample::Received(counted));
            (Time::from_millis(ms), FlowSample { udp, ..sample(0, bytes) })
        };
        let (t, first) = heard(500, 3 * 172, received);
        let Some(ServerRow::Udp(row, throughput)) = table.sampled(t, first).unwrap() else {
            panic!("no row")
        };
        assert_eq!((row.received_packets, row.lost_packets), (3, 1));
        assert_eq!(row.sender, Some(counts(5, 1)));
        assert_eq!((throughput.bytes, throughput.wire_bytes), (3 * 172, 3 * 200));
        let (end, late) = heard(1_500, 3 * 172, UdpReceived::default());
        assert_eq!(table.sampled(end, late.clone()).unwrap(), None, "it has stopped");
        table.udp_sent(0, counts(1, 0)).unwrap();
        let told = table.sampled(end, late).unwrap();
        assert!(matches!(told, Some(ServerRow::Udp(last, _)) if last.sender == Some(counts(1, 0))));
        let totals = table.rows().next().unwrap();
        assert_eq!((totals.sent_segments, totals.delivered_bytes), (Some(6), 3 * 172));
        assert_eq!(table.udp_skipped().map(|(_, skipped)| skipped).sum::<u64>(), 1);
    }

    #[test]
    fn a_row_of_a_download_has_what_its_sender_did_there() {
        let mut table = call(Direction::Down);
        let sent = UdpSample::Sent(UdpSent { packets: 2, skipped: 0, late_max_ns: 7 });
        let told = FlowSample { udp: Some(sent), ..sample(0, 344) };
        assert_eq!(table.sampled(Time::from_millis(100), told).unwrap(), None);
        let (t, mut meter) = (Time::from_millis(150), ThroughputMeter::default());
        let throughput = meter.row(t, 0, 172, Some(200));
        let row = udp_row(t, 0, &UdpReceived { packets: 1, ..UdpReceived::default() });
        let whole = table.udp_received(row, &throughput).unwrap().unwrap();
        assert_eq!((whole.sender, whole.received_packets), (Some(counts(2, 0)), 1));
        table.udp_first_data(0, Some(t)).unwrap();
        let totals = table.rows().next().unwrap();
        assert_eq!((totals.first_data, totals.delivered_bytes), (Some(t), 172));
        assert_eq!((totals.sent_bytes, totals.timeouts), (Some(344), Some(0)));
    }

    #[test]
    fn a_flow_that_nobody_asked_for_is_refused() {
        let mut table = table(vec![flow(Direction::Down)]);
        let said = "the server speaks of a flow 9 that nobody asked for";
        assert_eq!(table.sampled(Time::ZERO, sample(9, 1)).unwrap_err().to_string(), said);
        assert_eq!(table.order(9, Token(1), Way::nowhere()).unwrap_err().to_string(), said);
        assert_eq!(table.ended(9, Time::ZERO).unwrap_err().to_string(), said);
        assert_eq!(table.name(9).unwrap_err().to_string(), said);
        let named = table.sender_has(9, Direction::Up, "cubic".to_owned());
        assert_eq!(named.unwrap_err().to_string(), said);
    }
}
