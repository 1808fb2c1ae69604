//! The plan of Weir's own test: idle, download, upload, then both at once, with pings throughout.

use weir_core::Time;
use weir_scenario::file::Written;
use weir_scenario::file::quantity::read_time;
use weir_scenario::{
    Direction, Flow, Host, IpVersion, Path, Phase, Probe, ProbeKind, Sampling, Scenario,
};

use crate::flow_table::MACHINES_OWN;
use crate::{ClientError, RampPhase, RampPlan, TestLimits};

/// Settings of a test, as a user writes them.
#[derive(Clone, Debug)]
pub struct TestWords {
    /// Length of the phase without load, such as `4s`: 1 s or more.
    pub idle: String,
    /// Length of each phase with load: 3 s or more.
    pub load: String,
    /// Time between two pings: 10 us to 200 ms.
    pub ping: String,
    /// Flows at most, each way.
    pub max_flows: u32,
    /// Congestion control of all loads; `default` for each machine's own.
    pub cc: String,
    /// Whether the first routers are asked too.
    pub locate: bool,
}

impl Default for TestWords {
    fn default() -> Self {
        Self {
            idle: "4s".to_owned(),
            load: "8s".to_owned(),
            ping: "10ms".to_owned(),
            max_flows: 16,
            cc: CUBIC.to_owned(),
            locate: false,
        }
    }
}

/// A test, ready for [`measure`](crate::measure).
#[derive(Clone, Debug)]
pub struct TestPlan {
    /// Phases and probes.
    pub scenario: Scenario,
    /// In which phases flows are added until the line is full.
    pub ramp: RampPlan,
}

impl TestWords {
    /// The test that these words ask for.
    ///
    /// # Errors
    /// If a length cannot be read, or is not allowed.
    pub fn plan(&self) -> Result<TestPlan, ClientError> {
        let (idle_ns, load_ns) = (length("idle", &self.idle)?, length("load", &self.load)?);
        let ping_ns = length("ping", &self.ping)?;
        let refuse = |name: &str, text: &str, allowed: &str| {
            Err(ClientError::input(format!("{name} {text}: write {allowed}")))
        };
        if load_ns < MIN_LOAD_NS {
            return refuse("load", &self.load, "3s or more, since a line takes time to fill");
        }
        if idle_ns < MIN_IDLE_NS {
            return refuse("idle", &self.idle, "1s or more");
        }
        if ping_ns > MAX_PING_NS {
            return refuse("ping", &self.ping, "200ms or less");
        }
        if ping_ns < MIN_PING_NS {
            return refuse("ping", &self.ping, "10us or more");
        }
        let phases = phases(idle_ns, load_ns);
        let duration_ns = phases.last().map_or(0, |last| last.end_ns) + COOLDOWN_NS;
        let ramp = RampPlan {
            phases: LOADED
                .map(|(name, down, up)| RampPhase { phase: name.to_owned(), down, up })
                .to_vec(),
            most: self.max_flows,
            interval_ns: INTERVAL_NS,
            congestion: (self.cc != MACHINES_OWN).then(|| self.cc.clone()),
        };
        let scenario = Scenario {
            name: "test".to_owned(),
            duration_ns,
            phases,
            path: Path::default(),
            routes: Vec::new(),
            hosts: vec![Host { name: "server".to_owned(), delay_ns: 0, route: None }],
            tunnels: Vec::new(),
            flows: Vec::new(),
            probes: self.probes(ping_ns, duration_ns),
            methods: Vec::new(),
            shaper: None,
            start_jitter_ns: START_JITTER_NS,
            sampling: Sampling { throughput_ns: SAMPLE_NS, tcp_ns: SAMPLE_NS, queue_ns: SAMPLE_NS },
            ip_version: IpVersion::V4,
            mtu_bytes: 1500,
        };
        Ok(TestPlan { scenario, ramp })
    }

    /// Holds the words to the limits of a server: shortens the loads where nobody asked for their length (`is_load_given`),
    /// and says so in a sentence.
    ///
    /// # Errors
    /// If the server allows no such test.
    pub fn fit(
        &mut self,
        limits: &TestLimits,
        is_load_given: bool,
    ) -> Result<Option<String>, ClientError> {
        let TestLimits { server, load_ns: longest_ns, congestion } = limits;
        let cc = &self.cc;
        if cc != MACHINES_OWN && !congestion.contains(cc) {
            let all = congestion.join(", ");
            let says =
                format!("cc {cc}: server `{server}` has {all}: write one of them, or `default`");
            return Err(ClientError::input(says));
        }
        if length("load", &self.load)? <= *longest_ns {
            return Ok(None);
        }
        let (longest, asked) = (*longest_ns as f64 / 1e9, &self.load);
        if *longest_ns < MIN_LOAD_NS {
            return Err(ClientError::new(format!(
                "server `{server}` lets a load last {longest} s at most (--max-duration), and a test takes 3 s or more of each"
            )));
        }
        if is_load_given {
            return Err(ClientError::input(format!(
                "load {asked}: server `{server}` lets a load last {longest} s at most: write {longest}s or less"
            )));
        }
        let said = format!(
            "server `{server}` lets a load last {longest} s at most: each phase with load takes {longest} s instead of {asked}"
        );
        self.load = format!("{longest}s");
        Ok(Some(said))
    }

    fn probes(&self, period_ns: u64, stop_ns: u64) -> Vec<Probe> {
        let pings = Probe {
            name: "UDP".to_owned(),
            kind: ProbeKind::Udp,
            host: 0,
            tunnel: None,
            dscp: 0,
            ip_version: None,
            payload_bytes: PING_BYTES,
            period_ns,
            start_ns: 0,
            stop_ns,
            ttl: None,
        };
        let router = |ttl| Probe {
            name: format!("router {ttl}"),
            kind: ProbeKind::UdpTtl,
            period_ns: ROUTER_PERIOD_NS,
            ttl: Some(ttl),
            ..pings.clone()
        };
        let routers = if self.locate { ROUTERS } else { 0 };
        let mut probes = vec![pings.clone()];
        probes.extend((1..=routers).map(router));
        probes
    }
}

/// Nothing but loads: `count` downloads and as many uploads for `duration_ns`, as the test `rrul_be` has four of each.
#[must_use]
pub fn loads_each_way(count: usize, duration_ns: u64) -> Scenario {
    let span = (Time::ZERO, Time::from_nanos(duration_ns));
    let flows = [Direction::Down, Direction::Up].map(|way| {
        (1..=count)
            .map(move |number| Flow::new(format!("{} {number}", way.transfer()), way, CUBIC, span))
    });
    Scenario { flows: flows.into_iter().flatten().collect(), ..empty("load", duration_ns) }
}

/// A scenario of the path to one server, without loads and probes.
fn empty(name: &str, duration_ns: u64) -> Scenario {
    Scenario {
        name: name.to_owned(),
        duration_ns,
        phases: Vec::new(),
        path: Path::default(),
        routes: Vec::new(),
        hosts: vec![Host { name: "server".to_owned(), delay_ns: 0, route: None }],
        tunnels: Vec::new(),
        flows: Vec::new(),
        probes: Vec::new(),
        methods: Vec::new(),
        shaper: None,
        start_jitter_ns: START_JITTER_NS,
        sampling: Sampling { throughput_ns: SAMPLE_NS, tcp_ns: SAMPLE_NS, queue_ns: SAMPLE_NS },
        ip_version: IpVersion::V4,
        mtu_bytes: 1500,
    }
}

/// The phases, in order, for those without load of that length and those with load.
fn phases(idle_ns: u64, load_ns: u64) -> Vec<Phase> {
    let mut start_ns = idle_ns;
    let mut phases = vec![Phase { name: IDLE.to_owned(), start_ns: 0, end_ns: idle_ns }];
    for (name, _, _) in LOADED {
        phases.push(Phase { name: name.to_owned(), start_ns, end_ns: start_ns + load_ns });
        start_ns += load_ns + GAP_NS;
    }
    phases
}

/// The length `name` that is written so, in nanoseconds: no longer than a day.
fn length(name: &str, text: &str) -> Result<u64, ClientError> {
    let read = read_time(&Written::from(text.to_owned()));
    let ns = read.map_err(|says| ClientError::input(format!("{name}: {says}")))?;
    if ns > MAX_LENGTH_NS {
        return Err(ClientError::input(format!("{name} {text}: write 86400s or less")));
    }
    Ok(ns)
}

/// The phase without load.
pub(crate) const IDLE: &str = "idle";
/// The phases with load, in order: whether there are downloads, and uploads.
pub(crate) const LOADED: [(&str, bool, bool); 3] =
    [("download", true, false), ("upload", false, true), ("load", true, true)];

const CUBIC: &str = "cubic";
const MIN_IDLE_NS: u64 = 1_000_000_000;
const MIN_LOAD_NS: u64 = 3_000_000_000;
const MAX_LENGTH_NS: u64 = 86_400_000_000_000;
const MIN_PING_NS: u64 = 10_000;
/// Five within the shortest idle phase.
const MAX_PING_NS: u64 = 200_000_000;
/// Between two looks whether the line is full.
const INTERVAL_NS: u64 = 500_000_000;
/// A full buffer of two seconds has to run empty before something else is measured.
const GAP_NS: u64 = 2_000_000_000;
/// Pause at the end, so that the last pings of the load are answered.
const COOLDOWN_NS: u64 = 500_000_000;
/// Trains of pings begin up to a period later, and loads up to so much.
const START_JITTER_NS: u64 = 50_000_000;
const SAMPLE_NS: u64 = 100_000_000;
/// Payload of a ping.
const PING_BYTES: u32 = 60;
/// Routers that are asked: the home's, the access line's and the provider's first.
const ROUTERS: u8 = 6;
/// Between two probes of one router: Linux answers a sender once a second after a burst of 6
/// (`net.ipv4.icmp_ratelimit`), others ten times.
const ROUTER_PERIOD_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_each_other_with_pauses_after_loads() {
        let words = TestWords { load: "3s".to_owned(), locate: true, ..TestWords::default() };
        let TestPlan { scenario, ramp } = words.plan().unwrap();
        let spans = scenario
            .phases
            .iter()
            .map(|phase| {
                (phase.name.as_str(), phase.start_ns / 1_000_000, phase.end_ns / 1_000_000)
            })
            .collect::<Vec<_>>();
        assert_eq!(
            spans,
            [
                ("idle", 0, 4_000),
                ("download", 4_000, 7_000),
                ("upload", 9_000, 12_000),
                ("load", 14_000, 17_000)
            ]
        );
        assert_eq!(scenario.duration_ns, 17_500_000_000);
        let names: Vec<_> = scenario.probes.iter().map(|probe| probe.name.as_str()).collect();
        assert_eq!(names[..2], ["UDP", "router 1"]);
        assert_eq!((names.len(), scenario.probes[6].ttl), (7, Some(6)));
        assert_eq!((ramp.phases.len(), ramp.congestion.as_deref()), (3, Some("cubic")));
        assert!(Scenario::from_json(&scenario.to_json()).is_ok());
    }

    #[test]
    fn a_test_fits_what_its_server_allows() {
        let limits = |seconds: u64| TestLimits {
            server: "s:8080".to_owned(),
            load_ns: seconds * 1_000_000_000,
            congestion: vec!["cubic".to_owned(), "reno".to_owned()],
        };
        let mut words = TestWords::default();
        assert_eq!(words.fit(&limits(8), false), Ok(None));
        let given = words.fit(&limits(5), true).unwrap_err();
        let why = "load 8s: server `s:8080` lets a load last 5 s at most: write 5s or less";
        assert_eq!((given.to_string().as_str(), given.is_input()), (why, true));
        let shorter = words.fit(&limits(5), false).unwrap().unwrap();
        assert!(shorter.ends_with("each phase with load takes 5 s instead of 8s"), "{shorter}");
        assert_eq!(words.load, "5s");
        assert_eq!(words.plan().unwrap().scenario.phases[1].end_ns, 9_000_000_000);
        let too_short = words.fit(&limits(2), false).unwrap_err();
        assert!(too_short.to_string().contains("2 s at most (--max-duration)"), "{too_short}");
        words.cc = "nosuch".to_owned();
        let unknown = words.fit(&limits(8), false).unwrap_err();
        let why_not = "cc nosuch: server `s:8080` has cubic, reno: write one of them, or `default`";
        assert_eq!((unknown.to_string().as_str(), unknown.is_input()), (why_not, true));
        words.cc = MACHINES_OWN.to_owned();
        assert_eq!(words.fit(&limits(8), false), Ok(None));
    }

    #[test]
    fn loads_each_way_are_a_scenario() {
        let scenario = loads_each_way(4, 10_000_000_000);
        assert_eq!(scenario.flows.len(), 8);
        assert!(scenario.flows.iter().all(|flow| flow.stop_ns == 10_000_000_000));
        assert!(Scenario::from_json(&scenario.to_json()).is_ok());
    }

    #[test]
    fn lengths_that_measure_nothing_are_refused() {
        type Change = fn(&mut TestWords);
        let cases: [(Change, &str); 6] = [
            (
                |words| words.load = "2s".into(),
                "load 2s: write 3s or more, since a line takes time to fill",
            ),
            (|words| words.idle = "0s".into(), "idle 0s: write 1s or more"),
            (|words| words.idle = "500ms".into(), "idle 500ms: write 1s or more"),
            (|words| words.ping = "1s".into(), "ping 1s: write 200ms or less"),
            (|words| words.ping = "1us".into(), "ping 1us: write 10us or more"),
            (|words| words.load = "900000s".into(), "load 900000s: write 86400s or less"),
        ];
        for (change, said) in cases {
            let mut words = TestWords::default();
            change(&mut words);
            let error = words.plan().unwrap_err();
            assert_eq!((error.to_string().as_str(), error.is_input()), (said, true));
        }
        let words = TestWords { load: "8".to_owned(), ..TestWords::default() };
        let said = words.plan().unwrap_err().to_string();
        assert!(said.starts_with("load: `8` is a time without its unit"), "{said}");
    }
}
