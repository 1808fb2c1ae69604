//! Whether a server can do what is asked of it, before anything is sent.

use weir_core::Duration;
use weir_scenario::{Application, Direction, Flow, Opener, Overrides, Probe, ProbeKind, Scenario};
use weir_sockets::Grant;
use weir_sockets::load::udp::packets_per_second;
use weir_speedtest::protocol::weir::LOAD_BYTES;

use crate::ClientError;

/// What of a scenario goes to one server over one Internet protocol.
pub(crate) struct Share<'s> {
    pub flows: Vec<&'s Flow>,
    pub probes: Vec<&'s Probe>,
}

/// Whether `scenario` has nothing that no server could do.
///
/// # Errors
/// If it has: the first thing.
pub(crate) fn check_scenario(scenario: &Scenario) -> Result<(), ClientError> {
    let refuse = |sentence: String| Err(ClientError::new(sentence));
    scenario.check_elsewhere().map_err(|error| ClientError::new(error.to_string()))?;
    if let Some(test) = scenario.methods.first() {
        return refuse(format!(
            "method `{}`: the world net drives none within a scenario: run `weir test --method {}`, or the \
             scenario in the world `sim`",
            test.name, test.kind
        ));
    }
    if let Some(tunnel) = scenario.tunnels.first() {
        return refuse(format!(
            "tunnel `{}`: the world net makes none: run the scenario in the world `sim`, or bring a real VPN up \
             and leave the tunnel out",
            tunnel.name
        ));
    }
    if let Some(route) = scenario.first_route() {
        return refuse(format!(
            "route `{route}`: the world net has the routes of the network that it measures: run the scenario in the \
             world `sim`"
        ));
    }
    for flow in &scenario.flows {
        check_opening(flow)
            .map_err(|reason| ClientError::new(format!("flow `{}`: {reason}", flow.name)))?;
    }
    if let Some(probe) = scenario.probes.iter().find(|probe| probe.kind == ProbeKind::Tcp) {
        return refuse(format!(
            "probe `{}`: kind tcp: servers elsewhere answer udp and icmp only",
            probe.name
        ));
    }
    Ok(())
}

/// Whether this machine can open a load as it is asked for.
fn check_opening(flow: &Flow) -> Result<(), String> {
    if flow.opened_by == Opener::Server {
        return Err("opened_by server: the world net opens all connections from here".into());
    }
    if flow.client_host != 0 {
        return Err("it is of another machine: the world net measures from this one".into());
    }
    let Overrides { ecn, .. } = flow.tcp.overrides;
    if !flow.is_tcp() || flow.tcp.overrides == Overrides::default() {
        return Ok(());
    }
    if ecn.is_some() && flow.tcp.overrides == (Overrides { ecn, ..Overrides::default() }) {
        return Err(
            "tcp.ecn: the world net cannot ask for ECN by flow, since that is a setting of the whole machine \
             (net.ipv4.tcp_ecn): leave it out, or run the scenario in the world `sim`"
                .into(),
        );
    }
    Err("its TCP is changed: the world net speaks the two machines' own TCP, of which only \
         the congestion control can be chosen"
        .into())
}

/// Whether the server that gave `grant` can do its share.
///
/// # Errors
/// If it cannot: the first thing.
pub(crate) fn check(share: &Share<'_>, grant: &Grant) -> Result<(), ClientError> {
    let refuse = |sentence: String| Err(ClientError::new(sentence));
    for flow in &share.flows {
        check_flow(flow, grant)
            .map_err(|reason| ClientError::new(format!("flow `{}`: {reason}", flow.name)))?;
    }
    check_udp(share, grant)?;
    let most = grant.limits.flows as usize;
    let at_once = |one: &&Flow| {
        share
            .flows
            .iter()
            .filter(|f| f.start_ns <= one.start_ns && one.start_ns < f.stop_ns)
            .count()
    };
    if let Some(count) = share.flows.iter().map(at_once).max().filter(|&count| count > most) {
        return refuse(format!("{count} flows at once: this server allows {most}"));
    }
    let longest = grant.limits.duration_ns;
    if let Some(flow) = share.flows.iter().find(|flow| flow.stop_ns - flow.start_ns > longest) {
        return refuse(format!(
            "flow `{}` lasts {}: this server allows {}",
            flow.name,
            Duration::from_nanos(flow.stop_ns - flow.start_ns),
            Duration::from_nanos(longest)
        ));
    }
    let flows = share.flows.iter().map(|flow| flow.stop_ns);
    let last = flows.chain(share.probes.iter().map(|probe| probe.stop_ns)).max().unwrap_or(0);
    if last.saturating_add(BESIDE_THE_RUN.as_nanos()) > grant.limits.session_ns {
        return refuse(format!(
            "the run lasts {}: this server ends a session after {}, of which {BESIDE_THE_RUN} are for its \
             beginning and its results",
            Duration::from_nanos(last),
            Duration::from_nanos(grant.limits.session_ns)
        ));
    }
    check_probes(share, grant)
}

fn check_flow(flow: &Flow, grant: &Grant) -> Result<(), String> {
    if let Some(application) = &flow.application {
        check_application(application, grant)?;
    }
    if flow.udp.is_some() {
        return Ok(());
    }
    let name = &flow.tcp.congestion_control;
    match flow.direction {
        Direction::Up => weir_sockets::check_congestion_control(name),
        Direction::Down if grant.congestion.contains(name) => Ok(()),
        Direction::Down => {
            let there = grant.congestion.join(", ");
            Err(format!("congestion control `{name}`: this server has {there}"))
        }
    }
}

/// Whether the server answers what an application asks for.
fn check_application(application: &Application, grant: &Grant) -> Result<(), String> {
    let key = application.key();
    let Some(limits) = grant.limits.applications else {
        return Err(format!(
            "`{key}`: the server ({}) has no applications: start a newer `weir serve` there, or run the test in the world \
             `sim`",
            grant.software
        ));
    };
    if application.name_period_ns().is_some() && grant.udp_port.is_none() {
        return Err(format!(
            "`{key}`: this server answers no datagrams, by which names are looked up"
        ));
    }
    let connections = application.max_connections();
    if connections > limits.connections {
        return Err(format!(
            "`{key}`: {connections} connections: this server allows {}",
            limits.connections
        ));
    }
    Ok(())
}

/// Whether the server has UDP loads, and lets them have what they send at once.
fn check_udp(share: &Share<'_>, grant: &Grant) -> Result<(), ClientError> {
    let udp = |flow: &Flow| Some((flow.udp?, flow.direction));
    for flow in &share.flows {
        let Some((load, direction)) = udp(flow) else { continue };
        let refuse = |why: String| Err(ClientError::new(format!("flow `{}`: {why}", flow.name)));
        let Some(limits) = grant.limits.udp else {
            return refuse(format!(
                "the server ({}) has no UDP loads: start a newer `weir serve` there, or run the test in the world `sim`",
                grant.software
            ));
        };
        let payloads = LOAD_BYTES as u32..=limits.payload_bytes;
        if !payloads.contains(&load.payload_bytes) {
            return refuse(format!(
                "udp.payload {}: in the world net write {} to {} bytes",
                load.payload_bytes,
                payloads.start(),
                payloads.end()
            ));
        }
        let at_once = share
            .flows
            .iter()
            .filter(|other| other.start_ns <= flow.start_ns && flow.start_ns < other.stop_ns)
            .filter_map(|&other| udp(other))
            .filter(|(_, other)| *other == direction);
        let (bps, pps) = at_once.fold((0_u64, 0_u64), |(bps, pps), (one, _)| {
            let packets = packets_per_second(one.rate_bps, one.payload_bytes);
            (bps.saturating_add(one.rate_bps), pps.saturating_add(packets))
        });
        if bps > limits.rate_bps || pps > limits.rate_pps {
            return refuse(format!(
                "UDP loads of {} Mbit/s and {pps} packets a second at once: this server allows one address {} Mbit/s \
                 (`weir serve --max-udp-rate`) and {} packets a second each way",
                bps as f64 / 1e6,
                limits.rate_bps as f64 / 1e6,
                limits.rate_pps
            ));
        }
    }
    Ok(())
}

fn check_probes(share: &Share<'_>, grant: &Grant) -> Result<(), ClientError> {
    let mut datagrams: f64 = share
        .flows
        .iter()
        .filter_map(|flow| Some(1e9 / flow.application.as_ref()?.name_period_ns()? as f64))
        .sum();
    for probe in &share.probes {
        let refuse = |why: String| Err(ClientError::new(format!("probe `{}`: {why}", probe.name)));
        match probe.kind {
            ProbeKind::Udp if grant.udp_port.is_none() => {
                return refuse("this server answers no datagrams".into());
            }
            ProbeKind::Udp => {
                let (least, most) =
                    (weir_speedtest::protocol::weir::ECHO_BYTES as u32, grant.limits.echo_bytes);
                if !(least..=most).contains(&probe.payload_bytes) {
                    let bytes = probe.payload_bytes;
                    return refuse(format!("payload {bytes} bytes: write {least} to {most}"));
                }
                datagrams += 1e9 / probe.period_ns as f64;
            }
            ProbeKind::Icmp | ProbeKind::UdpTtl | ProbeKind::Tcp => {}
        }
    }
    let most = grant.limits.echo_rate_pps;
    if datagrams > f64::from(most) {
        return Err(ClientError::new(format!(
            "{datagrams:.0} UDP pings and names a second: this server answers {most}"
        )));
    }
    Ok(())
}

/// What a session has beside its run: flows are opened and clocks compared before, and results told behind.
const BESIDE_THE_RUN: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use weir_core::IpVersion;
    use weir_scenario::file::catalogue::read_file;
    use weir_scenario::file::spec::ScenarioSpec;
    use weir_scenario::file::{NoFiles, resolve, shipped_tests};
    use weir_scenario::{DnsLoad, Path, VideoLoad, WebLoad};
    use weir_speedtest::protocol::weir::{ApplicationLimits, Limits, Token};

    use super::*;

    fn grant(applications: Option<ApplicationLimits>, udp_port: Option<u16>) -> Grant {
        let limits = Limits {
            flows: 64,
            duration_ns: 1,
            session_ns: 1,
            ticket_ns: 1,
            sample_ns: 1,
            echo_rate_pps: 1,
            echo_bytes: 1,
            rate_bps: None,
            udp: None,
            applications,
        };
        let here = "192.0.2.1:1".parse().unwrap();
        Grant {
            software: "weir 0.1.0".to_owned(),
            token: Token(1),
            local: here,
            seen: here,
            udp_port,
            congestion: vec![],
            limits,
        }
    }

    #[test]
    fn all_shipped_tests_run_here_but_one_that_asks_for_ecn() {
        let mut refused = Vec::new();
        for name in shipped_tests() {
            let text = format!("test = \"{name}\"\nlink = \"cable-20-8\"");
            let spec: ScenarioSpec = read_file(&text, name).unwrap();
            let resolved = resolve(&spec, &NoFiles, |_| None).unwrap();
            let scenario = resolved.configurations[0].scenario.clone();
            let scenario = Scenario { path: Path::default(), ..scenario };
            if let Err(error) = check_scenario(&scenario) {
                refused.push((name, error.to_string()));
            }
        }
        let ecn = "flow `TCP upload BE`: tcp.ecn: the world net cannot ask for ECN by flow, since that is a setting of the \
                   whole machine (net.ipv4.tcp_ecn): leave it out, or run the scenario in the world `sim`";
        assert_eq!(refused, [("rrul_spec", ecn.to_owned())]);
    }

    #[test]
    fn a_run_that_is_longer_than_a_session_is_refused_before_it_starts() {
        let text = "test = \"tcp_download\"\nlink = \"line-50\"\nphases = { load = \"2h\" }";
        let spec: ScenarioSpec = read_file(text, "long.toml").unwrap();
        let resolved = resolve(&spec, &NoFiles, |_| None).unwrap();
        let scenario = &resolved.configurations[0].scenario;
        let mut grant = grant(None, Some(1));
        let second = 1_000_000_000;
        grant.congestion = vec!["cubic".to_owned()];
        let end = scenario.duration_ns + BESIDE_THE_RUN.as_nanos();
        grant.limits = Limits {
            duration_ns: 24 * 3600 * second,
            session_ns: end,
            echo_rate_pps: 1000,
            ..grant.limits
        };
        let share = Share::of(scenario, 0, IpVersion::V4);
        check(&share, &grant).unwrap();
        grant.limits.session_ns = end - 1;
        assert!(check(&share, &grant).is_err(), "it would be cut short after two hours");
        grant.limits.session_ns = 3600 * second;
        let said = check(&share, &grant).unwrap_err().to_string();
        let lasts = Duration::from_nanos(scenario.duration_ns);
        assert_eq!(
            said,
            format!(
                "the run lasts {lasts}: this server ends a session after 3600s, of which 20s are for its \
                 beginning and its results"
            )
        );
    }

    #[test]
    fn an_application_that_a_server_does_not_have_is_refused_in_a_sentence() {
        let names = Application::Dns(DnsLoad { every_ns: 1 });
        let old = check_application(&names, &grant(None, Some(1))).unwrap_err();
        assert_eq!(
            old,
            "`dns`: the server (weir 0.1.0) has no applications: start a newer `weir serve` there, or run the test in the \
             world `sim`"
        );
        let few = Some(ApplicationLimits { connections: 5 });
        let deaf = grant(few, None);
        let unheard = check_application(&names, &deaf).unwrap_err();
        assert_eq!(
            unheard,
            "`dns`: this server answers no datagrams, by which names are looked up"
        );
        let page = WebLoad {
            document_bytes: 1,
            objects: 0,
            object_bytes: 1,
            connections: 6,
            http2: false,
            tls: true,
            dns: false,
            every_ns: 1,
            timeout_ns: 1,
        };
        let bounded = check_application(&Application::Web(page), &deaf).unwrap_err();
        assert_eq!(bounded, "`web`: 6 connections: this server allows 5");
        let video = VideoLoad { bitrates_bps: vec![1], segment_ns: 1, buffer_ns: 2 };
        assert_eq!(check_application(&Application::Video(video), &deaf), Ok(()));
    }
}
