//! Foreign speed tests that run in a scenario, and under which numbers a record keeps what they did.

use serde::{Deserialize, Serialize};
use weir_core::{Direction, Draw, Duration, FlowKey, Protocol, Seed, Time};

use crate::check::unique;
use crate::scenario::{Scenario, ScenarioError};
use crate::tcp::TcpSettings;

/// A speed test as its official client runs it, against a server of the scenario. It ends when its method
/// does, or with the run.
///
/// In the record it counts as two flows behind the scenario's own, `<name> down` and `<name> up`, and as a
/// probe behind the scenario's own, `<name> in flow`: the round trips that TCP takes of the connections that
/// carry its load, while they do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeedTest {
    /// Name of the speed test, such as `speed test`.
    pub name: String,
    /// Method of the speed test, such as `ndt7`. Which there are is up to the world.
    pub kind: String,
    /// Number of the server.
    pub host: u32,
    /// Number of the tunnel that carries it, if one does.
    #[serde(default)]
    pub tunnel: Option<u32>,
    /// Differentiated services code point of its packets, both ways.
    pub dscp: u8,
    /// Whether its connections are secured with TLS.
    pub tls: bool,
    /// The TCP of both ends; the congestion control is that of the server, so that of downloads.
    pub tcp: TcpSettings,
    /// The congestion control of the client, so that of uploads.
    pub client_congestion_control: String,
    /// When it begins.
    pub start_ns: u64,
}

impl SpeedTest {
    /// The client's TCP.
    #[must_use]
    pub fn client_tcp(&self) -> TcpSettings {
        let congestion_control = self.client_congestion_control.clone();
        TcpSettings { congestion_control, ..self.tcp.clone() }
    }
}

impl Scenario {
    /// When speed test number `test` begins in a run with `seed`.
    #[must_use]
    pub fn method_start(&self, test: usize, seed: Seed) -> Time {
        let mut rng = seed.derive("start of method").stream(&test.to_string());
        let start = Time::from_nanos(self.methods[test].start_ns);
        start + Duration::from_nanos(rng.below(self.start_jitter_ns + 1))
    }

    /// The flow of the record that stands for one direction of speed test number `test`.
    #[must_use]
    pub fn method_flow(&self, test: usize, direction: Direction) -> u32 {
        let place = match direction {
            Direction::Down => 0,
            Direction::Up => 1,
        };
        (self.flows.len() + 2 * test + place) as u32
    }

    /// The probe of the record that stands for round trips within speed test number `test`.
    #[must_use]
    pub fn method_probe(&self, test: usize) -> u32 {
        (self.probes.len() + test) as u32
    }

    /// The 5-tuple of what the client sends over connection number `connection`, counted over all speed tests and
    /// applications, to one of its servers.
    #[must_use]
    pub fn method_key(&self, connection: usize, host: u32) -> FlowKey {
        self.key(self.connection_number(connection), host, Protocol::TCP)
    }

    /// The number of a connection that is opened during the run, among all that have ports.
    pub(crate) fn connection_number(&self, connection: usize) -> usize {
        let reflectors = self.shaper.as_ref().map_or(0, |shaper| shaper.reflectors.len());
        self.flows.len() + self.probes.len() + reflectors + connection
    }

    pub(crate) fn check_methods(&self) -> Result<(), ScenarioError> {
        unique("method", self.methods.iter().map(|test| test.name.clone()))?;
        let names = |way| self.methods.iter().map(move |test| format!("{} {way}", test.name));
        let flows = self.flows.iter().map(|flow| flow.name.clone());
        unique("flow", flows.chain(names("down")).chain(names("up")))?;
        let probes = self.probes.iter().map(|probe| probe.name.clone());
        unique("probe", probes.chain(names("in flow")))?;
        for test in &self.methods {
            let SpeedTest { name, start_ns, .. } = test;
            self.check_ends(name, test.host, test.dscp, (*start_ns, self.duration_ns))?;
            test.tcp
                .check()
                .map_err(|error| ScenarioError::new(format!("method `{name}`: {error}")))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        let test = r#"{"name": "t", "kind": "ndt7", "host": 0, "dscp": 0, "tls": true, "start_ns": 5,
            "tcp": {"profile": "linux", "congestion_control": "bbr"}, "client_congestion_control": "cubic"}"#;
        let text = r#"{"name": "s", "duration_ns": 1000, "phases": [], "path": {"up": [], "down": []},
            "hosts": [{"name": "server", "delay_ns": 0}], "flows": [], "probes": [], "methods": [TEST],
            "sampling": {"throughput_ns": 0, "tcp_ns": 0, "queue_ns": 0}, "ip_version": "4",
            "mtu_bytes": 1500}"#;
        Scenario::from_json(&text.replace("TEST", test)).unwrap()
    }

    #[test]
    fn numbers_come_behind_those_of_the_scenario() {
        let mut scenario = scenario();
        assert_eq!(scenario.method_flow(0, Direction::Down), 0);
        assert_eq!(scenario.method_flow(0, Direction::Up), 1);
        scenario.methods.push(scenario.methods[0].clone());
        assert_eq!(scenario.method_flow(1, Direction::Down), 2);
        assert_eq!(scenario.method_probe(1), 1);
        assert_eq!(scenario.method_key(3, 0).sport, 10_003);
        assert_eq!(scenario.methods[0].client_tcp().congestion_control, "cubic");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = |change: fn(&mut Scenario)| {
            let mut scenario = scenario();
            change(&mut scenario);
            scenario.check().unwrap_err().to_string()
        };
        assert_eq!(
            error(|s| s.methods.push(s.methods[0].clone())),
            "two are called method `t`: name them apart"
        );
        assert_eq!(
            error(|s| s.methods[0].start_ns = 2_000_000),
            "`t`: it starts at 2ms and stops before, at 1us"
        );
        assert_eq!(
            error(|s| s.methods[0].tcp.overrides.initial_window = Some(0)),
            "method `t`: initial window 0: write 1 segment or more"
        );
    }
}
