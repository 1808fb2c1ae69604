//! From what was written to what a world runs: names looked up, defaults filled in, base units.

use std::collections::BTreeMap;

use crate::{
    Application, DnsLoad, Flow, Host, Opener, Overrides, Path, Phase, Probe, ProbeKind, Sampling,
    Scenario, SpeedTest, TcpSettings, Tunnel, TunnelKind, UdpLoad, VideoLoad, WebLoad,
};

use weir_core::Direction;

use crate::file::beside;
use crate::file::catalogue::{Files, chosen_test};
use crate::file::configurations::{Configuration, configurations, links};
use crate::file::hops::{hops, routes};
use crate::file::link::LinkSpec;
use crate::file::plain::{ByName, Integer, Word};
use crate::file::quantity::{FlowCount, MAX_FLOWS};
use crate::file::references::{
    no_such_count, parameter_fault, unknown_host, unknown_route, unknown_tunnel, unused_route,
};
use crate::file::shaping::{reflector_hosts, shaper};
use crate::file::spec::{IpNumber, MAX_SEED, ScenarioSpec};
use crate::file::test::{
    CLIENT, FlowSpec, HostSpec, HttpWord, MethodSpec, OpenerWord, PhasesSpec, ProbeSpec, ProbeWord,
    SERVER, TcpSpec, TestSpec, TunnelSpec, TunnelWord, UdpSpec,
};

/// All runs of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The test, with the lengths of phases that the scenario says.
    pub test: TestSpec,
    /// The configurations that are compared, in their order.
    pub configurations: Vec<ResolvedConfiguration>,
    /// The seeds of the runs of each configuration.
    pub seeds: Vec<u64>,
}

/// A configuration, ready for a world.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedConfiguration {
    /// The link.
    pub link: LinkSpec,
    /// The queue spec as the user wrote it, `default` for the link's own.
    pub queue: String,
    /// The congestion control that the scenario names to be compared, if it does.
    pub cc: Option<String>,
    /// The words of a scenario file that make this configuration of test and link; seed, note and tags are the run's.
    pub words: ScenarioSpec,
    /// The resolved scenario, which a world runs.
    pub scenario: Scenario,
}

/// The congestion control that servers of a kind of speed test ask for, by the kind's name.
pub type ServersOf = fn(&str) -> Option<&'static str>;

/// Resolves a scenario: for each configuration as many runs as it says, each with the next seed.
///
/// # Errors
/// If a name is unknown, or parts do not fit together, in one sentence. What only those know who build queues or TCP, such
/// as the names of disciplines, is not looked at. `servers` says of a kind of speed test which congestion control its
/// servers ask for, if they ask for one.
pub fn resolve(
    spec: &ScenarioSpec,
    files: &impl Files,
    servers: ServersOf,
) -> Result<Resolved, String> {
    let mut test = chosen_test(&spec.test, files)?;
    let links = links(spec, files)?;
    set_phases(&mut test, spec)?;
    beside::join(&mut test, &spec.beside.0, files)?;
    let seeds = seeds(spec)?;
    let configurations = configurations(spec, &test, &links)?;
    let mut found = Vec::new();
    for configuration in configurations {
        if let Some((_, says)) = unused_route(configuration.link, &test.hosts) {
            return Err(says);
        }
        let scenario = Resolver::new(spec, &test, &configuration, servers)?.scenario(files)?;
        scenario.check().map_err(|error| error.to_string())?;
        found.push(ResolvedConfiguration {
            link: configuration.link.clone(),
            words: configuration.alone(spec),
            queue: configuration.label,
            cc: configuration.cc.map(str::to_owned),
            scenario,
        });
    }
    Ok(Resolved { test, configurations: found, seeds })
}

fn set_phases(test: &mut TestSpec, spec: &ScenarioSpec) -> Result<(), String> {
    let has_loads = !(test.flows.is_empty() && test.methods.is_empty());
    let phases = &mut test.phases;
    let had_time = phases.load.0 > 0;
    phases.idle = spec.phases.idle.unwrap_or(phases.idle);
    phases.load = spec.phases.load.unwrap_or(phases.load);
    phases.cooldown = spec.phases.cooldown.unwrap_or(phases.cooldown);
    phases.keys.add(&["idle", "load", "cooldown"]);
    phases.duration_ns()?;
    if has_loads && had_time && phases.load.0 == 0 {
        return Err(
            "phases.load: 0 leaves the loads of the test no time, and they would run while the line is to be idle: \
             write a length above 0"
                .to_owned(),
        );
    }
    Ok(())
}

fn seeds(spec: &ScenarioSpec) -> Result<Vec<u64>, String> {
    let (seed, repeat) = (spec.seed.fitting::<u64>(), spec.repeat.fitting::<u64>());
    let max = MAX_SEED.unsigned_abs();
    if seed + repeat > max + 1 {
        return Err(format!(
            "seed {seed}, repeat {repeat}: the last seed would be above {max} (2^63 - 1): write a seed of {} or less",
            max + 1 - repeat
        ));
    }
    Ok((seed..seed + repeat).collect())
}

/// Resolves the parts of one configuration, which need one another.
struct Resolver<'s> {
    spec: &'s ScenarioSpec,
    test: &'s TestSpec,
    configuration: &'s Configuration<'s>,
    servers: ServersOf,
    tcp: TcpSpec,
    phases: Vec<Phase>,
    duration_ns: u64,
    /// When loads run that say nothing themselves.
    window: (u64, u64),
    parameters: Vec<(&'s str, i64)>,
    /// Numbers of the machines in the client's network.
    client_hosts: BTreeMap<&'s str, u32>,
}

impl<'s> Resolver<'s> {
    fn new(
        spec: &'s ScenarioSpec,
        test: &'s TestSpec,
        configuration: &'s Configuration<'s>,
        servers: ServersOf,
    ) -> Result<Self, String> {
        let cc = configuration.cc.map(|cc| Word(cc.to_owned()));
        let tcp = TcpSpec { congestion_control: cc, ..crate::file::field::blank() }.over(&spec.tcp);
        let phases = all_phases(test)?;
        let duration_ns = test.phases.duration_ns()?;
        let window = load_window(&test.phases)?;
        let parameters = parameters(&spec.parameters, test)?;
        let of_flows = test.flows.iter().map(|flow| &flow.client_host);
        let of_tunnels = test.tunnels.iter().map(|tunnel| &tunnel.client_host);
        let mut client_hosts = BTreeMap::from([(CLIENT, 0)]);
        for name in of_flows.chain(of_tunnels) {
            let next = client_hosts.len() as u32;
            client_hosts.entry(name.as_str()).or_insert(next);
        }
        Ok(Self {
            spec,
            test,
            configuration,
            servers,
            tcp,
            phases,
            duration_ns,
            window,
            parameters,
            client_hosts,
        })
    }

    fn scenario(&self, files: &impl Files) -> Result<Scenario, String> {
        let Self { spec, test, configuration, .. } = self;
        let shaped = configuration.shaper.spec()?;
        let reflectors = shaped.iter().flat_map(reflector_hosts);
        let [up, down] = Direction::ALL.map(|direction| {
            hops(
                configuration.link,
                direction,
                shaped.as_ref(),
                configuration.queues.of_directions()[direction as usize],
            )
        });
        let path = Path { up, down };
        let routes = routes(configuration.link, &path);
        let hosts = test
            .hosts
            .iter()
            .map(|host| server(host, configuration.link))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Scenario {
            name: test.name.0.clone(),
            duration_ns: self.duration_ns,
            phases: self.phases.clone(),
            path,
            routes,
            hosts: hosts.into_iter().chain(reflectors).collect(),
            tunnels: test.tunnels.iter().map(|one| self.tunnel(one)).collect::<Result<_, _>>()?,
            flows: self.all_flows()?,
            probes: test.probes.iter().map(|one| self.probe(one)).collect::<Result<_, _>>()?,
            methods: test
                .methods
                .iter()
                .chain(&spec.methods)
                .map(|one| self.method(one))
                .collect::<Result<_, _>>()?,
            shaper: match &shaped {
                Some(shaped) => {
                    Some(shaper(shaped, test.hosts.len() as u32, configuration.link, files)?)
                }
                None => None,
            },
            start_jitter_ns: spec.start_jitter.0,
            sampling: Sampling {
                throughput_ns: spec.sampling.throughput.0,
                tcp_ns: spec.sampling.tcp.0,
                queue_ns: spec.sampling.queue.0,
            },
            ip_version: spec.ip.version(),
            mtu_bytes: configuration.link.mtu.fitting(),
        })
    }

    /// Number of the server of that name, to which what is called `of` goes.
    fn host(&self, of: &str, host: &str) -> Result<u32, String> {
        // Of several of one name the last counts.
        let place = self.test.hosts.iter().rposition(|known| known.name.0 == host);
        place.map(|place| place as u32).ok_or_else(|| {
            let says = unknown_host(self.test, host).unwrap_or_default();
            format!("`{of}`: {says}")
        })
    }

    /// To which server something goes, and through which tunnel; where a tunnel ends need not be said again.
    fn path(
        &self,
        of: &Word,
        host: Option<&str>,
        tunnel: Option<&str>,
    ) -> Result<(u32, Option<u32>), String> {
        let Some(tunnel) = tunnel else {
            return Ok((self.host(&of.0, host.unwrap_or(SERVER))?, None));
        };
        let tunnels = &self.test.tunnels;
        let Some(place) = tunnels.iter().rposition(|known| known.name.0 == tunnel) else {
            return Err(format!("`{}`: {}", of.0, unknown_tunnel(self.test, tunnel)));
        };
        let host = host.unwrap_or(&tunnels[place].host);
        Ok((self.host(&of.0, host)?, Some(place as u32)))
    }

    fn tunnel(&self, tunnel: &TunnelSpec) -> Result<Tunnel, String> {
        Ok(Tunnel {
            name: tunnel.name.0.clone(),
            kind: match tunnel.kind {
                TunnelWord::WireGuard => TunnelKind::WireGuard,
                TunnelWord::Ipsec => TunnelKind::Ipsec,
            },
            host: self.host(&tunnel.name.0, &tunnel.host)?,
            client_host: self.client_hosts[tunnel.client_host.as_str()],
            on_first_hop: tunnel.on_first_hop,
        })
    }

    fn all_flows(&self) -> Result<Vec<Flow>, String> {
        let mut all = Vec::new();
        for flow in &self.test.flows {
            all.extend(self.flows(flow)?);
            if all.len() > MAX_ALL_FLOWS {
                return Err(format!("the test has more than {MAX_ALL_FLOWS} flows: write fewer"));
            }
        }
        Ok(all)
    }

    fn flows(&self, flow: &FlowSpec) -> Result<Vec<Flow>, String> {
        let count = self.count(flow)?;
        let host = flow.host.as_deref();
        let (host, tunnel) = self.path(&flow.name, host, flow.tunnel.as_deref())?;
        let window = self.flow_window(flow)?;
        let one = Flow {
            name: flow.name.0.clone(),
            direction: flow.direction,
            host,
            tunnel,
            client_host: self.client_hosts[flow.client_host.as_str()],
            opened_by: match flow.opened_by {
                OpenerWord::Client => Opener::Client,
                OpenerWord::Server => Opener::Server,
            },
            dscp: flow.dscp.0,
            ip_version: flow.ip.map(IpNumber::version),
            tcp: settings(&flow.tcp.over(&self.tcp)),
            udp: udp_load(flow)?,
            application: application(flow),
            start_ns: flow.start.map_or(window.0, |start| start.0),
            stop_ns: flow.stop.map_or(window.1, |stop| stop.0),
            bytes: flow.bytes.map(|bytes| bytes.0),
        };
        if flow.count == FlowCount::Number(1) {
            return Ok(vec![one]);
        }
        let name = |number| format!("{}::{number}", flow.name.0);
        Ok((1..=count).map(|number| Flow { name: name(number), ..one.clone() }).collect())
    }

    /// When a flow runs that says neither start nor stop.
    fn flow_window(&self, flow: &FlowSpec) -> Result<(u64, u64), String> {
        let Some(during) = &flow.during else {
            let always = flow.runs_all_the_time();
            return Ok(if always { (0, self.duration_ns) } else { self.window });
        };
        let named = self.phases.iter().find(|phase| phase.name == *during);
        named.map(|phase| (phase.start_ns, phase.end_ns)).ok_or_else(|| {
            let there: Vec<_> = self.phases.iter().map(|phase| phase.name.as_str()).collect();
            format!(
                "flow `{}`: the test has no phase `{during}` (it has: {})",
                flow.name.0,
                there.join(", ")
            )
        })
    }

    fn count(&self, flow: &FlowSpec) -> Result<u64, String> {
        let name = match &flow.count {
            FlowCount::Number(count) => return Ok(*count),
            FlowCount::Parameter(name) => name,
        };
        let flow = &flow.name.0;
        let Some((_, count)) = self.parameters.iter().find(|(known, _)| known == name) else {
            return Err(format!("flow `{flow}`: {}", no_such_count(name)));
        };
        flow_count(flow, name, *count)
    }

    fn probe(&self, probe: &ProbeSpec) -> Result<Probe, String> {
        let host = probe.host.as_deref();
        let (host, tunnel) = self.path(&probe.name, host, probe.tunnel.as_deref())?;
        let (kind, usual_bytes) = match probe.kind {
            ProbeWord::Icmp => (ProbeKind::Icmp, PING_BYTES),
            ProbeWord::Udp => (ProbeKind::Udp, IRTT_BYTES),
            ProbeWord::UdpTtl => (ProbeKind::UdpTtl, IRTT_BYTES),
            ProbeWord::Tcp => (ProbeKind::Tcp, IRTT_BYTES),
        };
        Ok(Probe {
            name: probe.name.0.clone(),
            kind,
            host,
            tunnel,
            dscp: probe.dscp.0,
            ip_version: probe.ip.map(IpNumber::version),
            payload_bytes: probe.payload.map_or(usual_bytes, |payload| payload.0),
            period_ns: probe.period.unwrap_or(self.spec.sampling.ping).0,
            start_ns: probe.start.map_or(0, |start| start.0),
            stop_ns: probe.stop.map_or(self.duration_ns, |stop| stop.0),
            ttl: probe.ttl.map(crate::file::plain::Whole::fitting),
        })
    }

    fn method(&self, method: &MethodSpec) -> Result<SpeedTest, String> {
        let host = method.host.as_deref();
        let (host, tunnel) = self.path(&method.name, host, method.tunnel.as_deref())?;
        let tcp = settings(&method.tcp.over(&self.tcp));
        let usual = tcp.congestion_control.clone();
        let asked_for = (self.servers)(&method.kind).map_or_else(|| usual.clone(), str::to_owned);
        let or = |word: &Option<Word>, other| word.as_ref().map_or(other, |word| word.0.clone());
        Ok(SpeedTest {
            name: method.name.0.clone(),
            kind: method.kind.clone(),
            host,
            tunnel,
            dscp: method.dscp.0,
            tls: method.tls,
            tcp: TcpSettings { congestion_control: or(&method.cc, asked_for), ..tcp },
            client_congestion_control: or(&method.client_cc, usual),
            start_ns: method.start.map_or(self.window.0, |start| start.0),
        })
    }
}

/// A server of a test on that link.
fn server(host: &HostSpec, link: &LinkSpec) -> Result<Host, String> {
    if let Some(says) = unknown_route(host, link) {
        return Err(says);
    }
    let place = |route: &Word| link.routes.0.iter().position(|(name, _)| *name == route.0);
    Ok(Host {
        name: host.name.0.clone(),
        delay_ns: host.delay.0,
        route: host.route.as_ref().and_then(place).map(|place| place as u32),
    })
}

/// The packets of a UDP flow; `None` for TCP.
fn udp_load(flow: &FlowSpec) -> Result<Option<UdpLoad>, String> {
    if let Some(voice) = &flow.voice {
        return Ok(Some(UdpLoad::voice(voice.jitter_buffer.0, voice.packet_time.0)));
    }
    let load = |udp: &UdpSpec| {
        Ok(UdpLoad {
            rate_bps: udp.rate.0,
            payload_bytes: udp.payload.0,
            pattern: udp.pattern_of_packets()?,
            jitter_buffer_ns: None,
        })
    };
    flow.udp.as_ref().map(load).transpose()
}

/// What the application of a flow asks for; `None` for loads of data or packets.
fn application(flow: &FlowSpec) -> Option<Application> {
    let web = flow.web.as_ref().map(|web| {
        Application::Web(WebLoad {
            document_bytes: web.document.0,
            objects: web.objects.fitting(),
            object_bytes: web.object.0,
            connections: web.connections.fitting(),
            http2: web.http == HttpWord::Http2,
            tls: web.tls,
            dns: web.dns,
            every_ns: web.every.0,
            timeout_ns: web.timeout.0,
        })
    });
    let video = flow.video.as_ref().map(|video| {
        let rates: Vec<_> = video.bitrates.0.iter().map(|rate| rate.0).collect();
        Application::Video(VideoLoad {
            bitrates_bps: if rates.is_empty() { USUAL_BITRATES_BPS.to_vec() } else { rates },
            segment_ns: video.segment.0,
            buffer_ns: video.buffer.0,
        })
    });
    let dns = flow.dns.as_ref().map(|dns| Application::Dns(DnsLoad { every_ns: dns.every.0 }));
    web.or(video).or(dns)
}

fn phases(phases: &PhasesSpec) -> Vec<Phase> {
    let mut found = Vec::new();
    let mut now = 0;
    for (name, length) in
        [("idle", phases.idle), ("load", phases.load), ("cooldown", phases.cooldown)]
    {
        if length.0 > 0 {
            let end_ns = now + length.0;
            found.push(Phase { name: name.to_owned(), start_ns: now, end_ns });
            now = end_ns;
        }
    }
    found
}

/// The phases of a test: the usual ones, and behind them the stages of its load.
fn all_phases(test: &TestSpec) -> Result<Vec<Phase>, String> {
    let mut found = phases(&test.phases);
    if test.stages.0.is_empty() {
        return Ok(found);
    }
    let (mut now, end) = match found.iter().find(|phase| phase.name == "load") {
        Some(load) => (load.start_ns, load.end_ns),
        None => {
            return Err("stages: they divide the load, and phases.load has no length".to_owned());
        }
    };
    for (name, length) in &test.stages.0 {
        if USUAL_PHASES.contains(&name.as_str()) {
            return Err(format!(
                "stages.{name}: the phase of that name is one of `phases`: write another"
            ));
        }
        let end_ns = now.saturating_add(length.0);
        if end_ns > end {
            return Err(format!(
                "stages.{name}: it would end {} s behind the load: make stages shorter, or phases.load longer",
                (end_ns - end) as f64 / 1e9
            ));
        }
        found.push(Phase { name: name.clone(), start_ns: now, end_ns });
        now = end_ns;
    }
    Ok(found)
}

/// When the load of a test runs, from its start on: all of the time if it has no such phase.
///
/// # Errors
/// If the test lasts no time, or too long.
pub(crate) fn load_window(lengths: &PhasesSpec) -> Result<(u64, u64), String> {
    let duration_ns = lengths.duration_ns()?;
    let found = phases(lengths);
    let load = found.iter().find(|phase| phase.name == "load");
    Ok(load.map_or((0, duration_ns), |load| (load.start_ns, load.end_ns)))
}

/// How many flows a parameter's value means.
///
/// # Errors
/// If a test cannot have so many.
pub(crate) fn flow_count(flow: &str, parameter: &str, value: i64) -> Result<u64, String> {
    if !(1..=MAX_FLOWS).contains(&value) {
        return Err(format!(
            "flow `{flow}`: parameter `{parameter}` is {value}: write a number from 1 to {MAX_FLOWS}"
        ));
    }
    Ok(value.unsigned_abs())
}

/// The values of the test's parameters, of which `given` says some.
///
/// # Errors
/// If one is unknown, or out of its bounds.
pub(crate) fn parameters<'s>(
    values: &ByName<Integer>,
    test: &'s TestSpec,
) -> Result<Vec<(&'s str, i64)>, String> {
    let given = values.0.iter().map(|(name, value)| (name, value.0));
    if let Some(says) = given.filter_map(|(name, value)| parameter_fault(test, name, value)).next()
    {
        return Err(says);
    }
    let value = |(name, parameter): &'s (String, crate::file::test::ParameterSpec)| {
        let value = values.get(name).unwrap_or(&parameter.default).0;
        match parameter_fault(test, name, value) {
            None => Ok((name.as_str(), value)),
            Some(says) => Err(says),
        }
    };
    test.parameters.0.iter().map(value).collect()
}

impl TcpSpec {
    /// These settings, and where they say nothing those of `other`.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        let word = |own: &Option<Word>, usual: &Option<Word>| own.clone().or_else(|| usual.clone());
        Self {
            profile: word(&self.profile, &other.profile),
            congestion_control: word(&self.congestion_control, &other.congestion_control),
            sack: self.sack.or(other.sack),
            ecn: self.ecn.or(other.ecn),
            timestamps: self.timestamps.or(other.timestamps),
            pacing: self.pacing.or(other.pacing),
            bursts: self.bursts.or(other.bursts),
            delayed_ack: self.delayed_ack.or(other.delayed_ack),
            initial_window: self.initial_window.or(other.initial_window),
            receive_window: self.receive_window.or(other.receive_window),
            rto_min: self.rto_min.or(other.rto_min),
            keys: self.keys.clone(),
        }
    }
}

fn settings(tcp: &TcpSpec) -> TcpSettings {
    let or = |word: &Option<Word>, usual: &str| {
        word.as_ref().map_or(usual, |word| word.0.as_str()).to_owned()
    };
    TcpSettings {
        profile: or(&tcp.profile, "linux"),
        congestion_control: or(&tcp.congestion_control, "cubic"),
        overrides: Overrides {
            timestamps: tcp.timestamps,
            sack: tcp.sack,
            ecn: tcp.ecn,
            pacing: tcp.pacing,
            bursts: tcp.bursts,
            delayed_ack: tcp.delayed_ack,
            initial_window: tcp.initial_window.map(crate::file::plain::Whole::fitting),
            receive_window_bytes: tcp.receive_window.map(|window| window.0),
            rto_min_ns: tcp.rto_min.map(|time| time.0),
        },
    }
}

/// Bitrates of videos before they were chosen by title (A. Aaron and others, "Per-title encode optimization", Netflix
/// technology blog, 2015).
const USUAL_BITRATES_BPS: [u64; 10] = [
    235_000, 375_000, 560_000, 750_000, 1_050_000, 1_750_000, 2_350_000, 3_000_000, 4_300_000,
    5_800_000,
];

/// Phases that every test may have.
const USUAL_PHASES: [&str; 3] = ["idle", "load", "cooldown"];

/// Flows of a test: a file of a megabyte could otherwise stand for more than any memory holds.
const MAX_ALL_FLOWS: usize = 100_000;

/// Bytes of payload that `ping` sends.
const PING_BYTES: u32 = 56;

/// The least payload that irtt sends with its statistics, in bytes.
const IRTT_BYTES: u32 = 60;
